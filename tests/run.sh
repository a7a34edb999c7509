#!/bin/bash
# Runs the tests that have been built: the cmocka programs of tests/unit/test_*.c and the scripts tests/cli/cli_*.sh,
# several at a time, each with a time limit. `make test` builds them and calls this.
#
#     tests/run.sh [--soak] [PATTERN...]     only tests whose name contains one of the patterns
#
# BUILD (default: build) holds the programs. LIMIT (default: 1200) is the time limit in seconds, against hanging tests:
# more than ten times the slowest test, since machines differ. JOBS (default: 2) is how many run at once; most of them
# wait for disks and clocks most of the time. A comment in the first ten lines of a test sets what it needs:
#
#     ranks: 1 2 3 5       run under mpirun, once with each number of ranks (default for test_mpi_*: 1 2 3 5)
#     builds: double       also run in the double-precision build, if there is one
#     not under: sanitize  skip in this build
#     limit: 3600          time limit in seconds
#     alone: yes           run no other test at the same time
#
# The last line is `N passed, N failed`; N counts cmocka tests and single checks of scripts. The exit code is 0 only if
# something passed and nothing failed.
cd "$(dirname "$0")/.." || exit 70
. tests/lib/mpi.sh
build=${BUILD:-build}
limit=${LIMIT:-1200}
jobs=${JOBS:-2}
scripts=cli
if [ "${1:-}" = --soak ]; then
    scripts=soak
    shift
fi
patterns=("$@")
work=$(mktemp -d) || exit 74
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/counts"
shopt -s nullglob
unset MAKEFLAGS MFLAGS MAKELEVEL

export CMOCKA_MESSAGE_OUTPUT=TAP
# For build/sanitize: an exit code that no test expects. Leaks are checked only in unit tests without mpirun, since the
# check fails with the threads of MPI's ranks. It needs slow unwinding: the libraries have no frame pointers, and the
# suppressions name them.
export ASAN_OPTIONS=print_legend=0:exitcode=99:detect_leaks=0
leaks=detect_leaks=1:fast_unwind_on_malloc=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:exitcode=99
export LSAN_OPTIONS=suppressions=$PWD/tests/lib/leaks.supp:print_suppressions=0

wanted() {
    local pattern
    [ ${#patterns[@]} -gt 0 ] || return 0
    for pattern in "${patterns[@]}"; do
        [[ $1 == *"$pattern"* ]] && return 0
    done
    return 1
}

# says FILE WORD: prints what follows `WORD:` in the comments at the head of a test.
says() { head -10 "$1" | sed -n "s|^[/# *]*$2: *\([^*]*[^* ]\).*|\1|p" | head -1; }

# timed SECONDS COMMAND...: runs the command; sets `status`, `seconds` and `late`.
timed() {
    local start=$EPOCHREALTIME most=$1
    shift
    timeout -k 10 "$most" "$@" </dev/null
    status=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    late=
    if awk -v s="$seconds" -v m="$most" 'BEGIN { exit s < m }'; then late="timed out after $most s"; fi
}

# verdict NAME PASSED FAILED SKIPPED LOG: prints the result of the test that `timed` ran last, and its log if it failed.
# An unexpected exit code is a failure, and so is a test that ran no checks.
verdict() {
    local name=$1 p=$2 f=$3 s=$4 log=$5
    if [ "$f" = 0 ] && [ "$status" != 0 ]; then
        f=1
        echo "exit code $status" >>"$log"
    elif [ $((p + f + s)) = 0 ]; then
        f=1
        echo "it ran no checks" >>"$log"
    fi
    [ -z "$late" ] || echo "$late" >>"$log"
    echo "$p $f $s" >"$work/counts/${name//[^a-z0-9_]/-}"
    {
        printf '%-6s %-40s %4d passed' "$([ "$f" = 0 ] && echo ok || echo FAILED)" "$name" "$p"
        [ "$f" = 0 ] || printf ', %d failed' "$f"
        [ "$s" = 0 ] || printf ', %d skipped' "$s"
        printf '  (%s s)\n' "$seconds"
        if [ "$f" != 0 ]; then
            tail -n 200 "$log" | sed 's/^/       | /'
        else
            grep '^skipped' "$log" | sed 's/^/       | /'
        fi
    } >"$log.said"
    cat "$log.said"
}

# start ALONE COMMAND...: calls one of the functions below, in parallel with others unless ALONE is set.
start() {
    local alone=$1
    shift
    if [ -n "$alone" ]; then
        wait
        "$@"
        return
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    "$@" &
}

# program NAME PATH LIMIT RANKS: runs a cmocka program. RANKS is a number, or "" to run without mpirun. Every rank writes
# its own log; a test passed if it passed on all ranks.
program() {
    local name=$1 path=$2 most=$3 n=$4 logs=$work/${1//[^a-z0-9_]/-}
    mkdir -p "$logs"
    touch "$logs/0" "$logs/mpirun"
    mpi_files "$logs/mpi"
    if [ -z "$n" ]; then
        ASAN_OPTIONS=$ASAN_OPTIONS:$leaks timed "$most" "$path" >"$logs/0" 2>&1
    else
        # shellcheck disable=SC2016
        timed "$most" mpirun -n "$n" bash -c '
            exec "$0" >"$1/${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}}" 2>&1' \
            "$path" "$logs" >"$logs/mpirun" 2>&1
    fi
    local counts
    counts=$(awk '
        FNR == 1 { group = 0 }
        /^1\.\.[0-9]+$/ { group++; n = substr($0, 4) + 0; for (i = 1; i <= n; i++) plan[group, i] = 1 }
        /^ok [0-9]+/ { good[group, $2]++ }
        /^not ok [0-9]+ # SKIP/ { skip[group, $3] = 1; next }
        /^not ok [0-9]+/ { bad[group, $3] = 1 }
        END {
            p = f = s = 0
            for (t in plan)
                if (t in bad) f++; else if (t in skip) s++; else if (good[t] == ranks) p++; else f++
            print p, f, s
        }' ranks="${n:-1}" "$logs"/[0-9]*)
    local p f s
    read -r p f s <<<"$counts"
    (cd "$logs" && grep -H '' [0-9]* mpirun) |
        sed -E '/^mpirun:-+$/d; s/^([0-9]+):/rank \1: /; s/^mpirun:/mpirun: /' >"$logs.log"
    verdict "$name" "$p" "$f" "$s" "$logs.log"
}

script() {
    local name=$1 path=$2 most=$3
    local TMP=$work/$name LIB_RECORD=$work/$name.record
    mkdir -p "$TMP"
    : >"$LIB_RECORD"
    export TMP LIB_RECORD COHORT=$build/cohort
    timed "$most" bash "$path" >"$work/$name.log" 2>&1
    local p f s
    p=$(grep -c '^pass' "$LIB_RECORD")
    f=$(grep -c '^fail' "$LIB_RECORD")
    s=$(grep -c '^skip' "$LIB_RECORD")
    verdict "$name" "$p" "$f" "$s" "$work/$name.log"
    rm -rf "$TMP"
}

if [ "$scripts" = cli ]; then
    for source in tests/unit/test_*.c; do
        name=$(basename "$source" .c)
        wanted "$name" || continue
        [[ " $(says "$source" 'not under') " != *" $(basename "$build") "* ]] || continue
        counts=$(says "$source" ranks)
        [ -n "$counts" ] || [[ $name != test_mpi_* ]] || counts="1 2 3 5"
        most=$(says "$source" limit)
        alone=$(says "$source" alone)
        for where in "$build" "$build/double"; do
            label=$name
            if [ "$where" != "$build" ]; then
                [[ " $(says "$source" builds) " == *" double "* && -x $where/tests/$name ]] || continue
                label="$name (double)"
            fi
            if [ ! -x "$where/tests/$name" ]; then
                echo "$where/tests/$name has not been built" >"$work/missing"
                status=0 seconds=0 late=''
                verdict "$label" 0 1 0 "$work/missing"
                continue
            fi
            if [ -z "$counts" ]; then
                start "$alone" program "$label" "$where/tests/$name" "${most:-$limit}" ""
            else
                for n in $counts; do
                    start "$alone" program "$label, ranks: $n" "$where/tests/$name" "${most:-$limit}" "$n"
                done
            fi
        done
    done
fi
for source in tests/"$scripts/$scripts"_*.sh; do
    name=$(basename "$source" .sh)
    wanted "$name" || continue
    [[ " $(says "$source" 'not under') " != *" $(basename "$build") "* ]] || continue
    most=$(says "$source" limit)
    start "$(says "$source" alone)" script "$name" "$source" "${most:-$limit}"
done
wait

echo
passed=0 failed=0 skipped=0
while read -r p f s; do
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done < <(cat /dev/null "$work"/counts/*)
[ "$skipped" = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
