# shellcheck shell=bash
# The functions of tests/cli/cli_*.sh and tests/soak/soak_*.sh. A script begins like this:
#
#     . "$(dirname "$0")/../lib/lib.sh"
#     section "unknown settings"
#     expect_status 1 "$COHORT" train jobs/rbm.ini model.hiden=3
#     expect_match 'model\.hidden'
#
# $COHORT is the program, $TMP an empty directory for the script; the working directory is the root of the project.
# Each expect_* and check is one test; a failed one is printed and the script continues. Runs under tests/run.sh, which
# counts the tests, or alone.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 70
. tests/lib/mpi.sh
COHORT=${COHORT:-build/cohort}
case $COHORT in /*) ;; *) COHORT=$PWD/$COHORT ;; esac
if [ -z "${LIB_RECORD:-}" ]; then
    TMP=$(mktemp -d)
    LIB_RECORD=$TMP/.record
    # shellcheck disable=SC2154
    trap 'status=$?; grep -q "^fail" "$LIB_RECORD" && status=1; rm -rf "$TMP"; exit $status' EXIT
fi
export COHORT TMP
# Characters beyond ASCII, and points in numbers, whatever the user's language.
export LC_ALL=C.UTF-8
mpi_files "$TMP/.mpi"
LIB_SECTION=$(basename "$0" .sh)
LIB_OUT=$TMP/.stdout LIB_ERR=$TMP/.stderr
touch "$LIB_OUT" "$LIB_ERR" "$LIB_RECORD"

# section NAME: the subject of the tests that follow.
section() { LIB_SECTION=$1; }

pass() { echo "pass $LIB_SECTION: $*" >>"$LIB_RECORD"; }

# fail WHAT: records a failed test and prints the output of the last command.
fail() {
    echo "fail $LIB_SECTION: $*" >>"$LIB_RECORD"
    echo "FAILED $LIB_SECTION: $*"
    sed 's/^/    stdout: /;$a\' "$LIB_OUT" | head -20
    sed 's/^/    stderr: /' "$LIB_ERR" | head -20
}

# skip WHY: exits the script (or the subshell around it); counts as one skipped test.
skip() {
    echo "skip $LIB_SECTION: $*" >>"$LIB_RECORD"
    echo "skipped $LIB_SECTION: $*"
    exit 0
}

# run COMMAND...: keeps its stdout and stderr for expect_match; returns its status.
run() { "$@" >"$LIB_OUT" 2>"$LIB_ERR"; }

# output, errors: print stdout and stderr of the last command.
output() { cat "$LIB_OUT"; }
errors() { cat "$LIB_ERR"; }

# expect_status CODE COMMAND...: tests that the command exits with this code.
expect_status() {
    local expected=$1 got=0
    shift
    run "$@" || got=$?
    if [ "$got" = "$expected" ]; then
        pass "exit $expected: $*"
    else
        fail "exit code $got instead of $expected: $*"
    fi
}

# expect_match PATTERN [FILE...]: tests that the extended regular expression matches a line of the files, or of the last
# command's stdout or stderr.
expect_match() {
    local pattern=$1
    shift
    if [ $# = 0 ]; then set -- "$LIB_OUT" "$LIB_ERR"; fi
    if grep -Eq -e "$pattern" "$@"; then pass "/$pattern/"; else fail "no line matches /$pattern/"; fi
}

# expect_no_match PATTERN [FILE...]: tests that no line matches.
expect_no_match() {
    local pattern=$1
    shift
    if [ $# = 0 ]; then set -- "$LIB_OUT" "$LIB_ERR"; fi
    local found
    if found=$(grep -Ehm1 -e "$pattern" "$@"); then
        fail "a line matches /$pattern/: $found"
    else
        pass "not /$pattern/"
    fi
}

# expect_equal EXPECTED GOT [WHAT]: tests that two texts are the same.
expect_equal() {
    if [ "$1" = "$2" ]; then pass "${3:-equal}"; else fail "${3:-equal}: '$2' instead of '$1'"; fi
}

# expect_same FILE FILE...: tests that all files have the same bytes.
expect_same() {
    local first=$1 other
    shift
    for other; do
        if ! cmp -s "$first" "$other"; then
            fail "$first and $other differ"
            return
        fi
    done
    pass "same bytes: $first $*"
}

# check WHAT COMMAND...: tests that the command succeeds.
check() {
    local what=$1
    shift
    if "$@"; then pass "$what"; else fail "$what: $*"; fi
}

# ranks N COMMAND...: runs the command on N ranks; use it after expect_status, run or check.
ranks() {
    local n=$1
    shift
    mpirun -n "$n" "$@"
}

# json KEY...: prints the value under nested keys of the JSON object that the last command printed.
json() { json_of "$LIB_OUT" "$@"; }

# json_of FILE KEY...: the same for a file. Numbers and texts are printed as they are; prints nothing if there is no such
# key.
json_of() {
    local file=$1
    shift
    awk -v path="$*" '
        { text = text $0 "\n" }
        function blank() { while (substr(text, at, 1) ~ /[ \t\r\n]/) at++ }
        function string(   from, c) {
            from = ++at
            while ((c = substr(text, at, 1)) != "\"" && c != "") at += c == "\\" ? 2 : 1
            return substr(text, from, at++ - from)
        }
        function value(depth, on,   c, from, key, i) {
            blank()
            c = substr(text, at, 1)
            if (c == "\"") { key = string(); if (on && depth == n) print key; return }
            if (c == "{" || c == "[") {
                at++
                for (i = 0;; i++) {
                    blank()
                    if (substr(text, at, 1) ~ /^[]}]?$/) { at++; return }
                    if (c == "{") { key = string(); blank(); at++ } else key = i
                    value(depth + 1, on && depth < n && key == want[depth + 1])
                    blank()
                    if (substr(text, at, 1) == ",") at++
                }
            }
            from = at
            while (substr(text, at, 1) ~ /[-+.0-9A-Za-z]/) at++
            if (at == from) at = length(text) + 1
            if (on && depth == n) print substr(text, from, at - from)
        }
        END { n = split(path, want, " "); at = 1; value(0, 1) }' "$file"
}

# expect_number KEYS RELATION NUMBER: tests a number in the last command's JSON: expect_number "skip_first auc" ">=" 0.7
expect_number() {
    local got
    # shellcheck disable=SC2086
    got=$(json $1)
    if awk -v a="$got" -v b="$3" "BEGIN { exit !(a != \"\" && a + 0 $2 b + 0) }"; then
        pass "$1 = $got $2 $3"
    else
        fail "$1 is '$got', expected $2 $3"
    fi
}
