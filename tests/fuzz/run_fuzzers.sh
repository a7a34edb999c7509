#!/bin/bash
# Runs the fuzzers that have been built, each for LIMIT (60) seconds, as many at once as there are cores:
#
#     tests/fuzz/run_fuzzers.sh [PATTERN...]      only fuzzers whose name contains one of the patterns
#
# BUILD (build/fuzz) holds the programs. Their corpus of inputs is in BUILD/corpus, from which the next run
# continues; the first starts with tests/fuzz/seeds. Findings are in BUILD/findings, and `BUILD/fuzz/NAME FILE`
# reproduces one. Exit code 0 only if something ran and nothing was found.
cd "$(dirname "$0")/../.." || exit 70
. tests/lib/mpi.sh
build=$(realpath "${BUILD:-build/fuzz}")
patterns=("${@:-}")
mkdir -p "$build/findings"
# Other tests check for leaks: HDF5 leaks when it refuses a file.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export build limit=${LIMIT:-60}

# one PATH: runs a fuzzer; prints the end of its output if it found something, else one line.
one() {
    local name=${1##*/fuzz_} words=() corpus log
    corpus=$build/corpus/$name log=$build/findings/$name.log
    mkdir -p "$corpus"
    [ ! -e "tests/fuzz/$name.dict" ] || words+=(-dict="$PWD/tests/fuzz/$name.dict")
    words+=("$corpus")
    words+=("$PWD/tests/fuzz/seeds/$name")
    # These create good files themselves and damage them; an input is a short list of edits.
    case $name in dataset | checkpoint) words+=(-max_len=150 -len_control=0) ;; esac
    if timeout -k 10 $((limit + 120)) "$1" -max_total_time="$limit" -timeout=120 -rss_limit_mb=4000 -close_fd_mask=2 \
        -artifact_prefix="$build/findings/$name-" -print_final_stats=1 "${words[@]}" >"$log" 2>&1; then
        awk -v name="$name" '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { s = $2 }
            END { printf "ok     %-12s %9d inputs, %d a second\n", name, n, s }' "$log"
    else
        echo "FOUND  $name"
        tail -n 60 "$log" | cut -c1-200 | sed 's/^/       | /'
        return 1
    fi
}
export -f one

wanted=()
for path in "$build"/fuzz/fuzz_*; do
    for pattern in "${patterns[@]}"; do
        if [ -x "$path" ] && [[ $path != *.d && ${path##*/} == *"$pattern"* ]]; then
            wanted+=("$path")
            break
        fi
    done
done
[ ${#wanted[@]} -gt 0 ] || { echo "there is no fuzzer of this name in $build/fuzz"; exit 1; }
printf '%s\0' "${wanted[@]}" | xargs -0 -n1 -P"$(nproc)" bash -c 'one "$0"'
