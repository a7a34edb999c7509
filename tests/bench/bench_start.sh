#!/bin/bash
# How long commands take that no launcher started, from the shell and back, beside `git --version`: the median of
# many runs. Such a command starts no MPI: what is left is the loading of the libraries.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$COHORT" simulate irt --students 200 --items 30 --skills 1 --seed 1 -o "$work/class.h5" >/dev/null 2>&1
n=41
if [ -n "${BENCH_SHORT:-}" ]; then n=3; fi

# median COMMAND...: milliseconds.
median() {
    local start
    for _ in $(seq $n); do
        start=$EPOCHREALTIME
        "$@" >/dev/null 2>&1
        echo "$start $EPOCHREALTIME"
    done | awk '{ print 1000 * ($2 - $1) }' | sort -n | awk '{ t[NR] = $1 } END { printf "%.1f", t[(NR + 1) / 2] }'
}
show() { printf '%-28s %6s ms%s\n' "$1" "$2" "${3:-}"; }
! command -v git >/dev/null || show 'git --version' "$(median git --version)"
show 'cohort --version' "$(median "$COHORT" --version)" ', at most 20 on a quiet machine'
show 'cohort help' "$(median "$COHORT" help)" ', at most 20'
show 'cohort inspect, small file' "$(median "$COHORT" inspect "$work/class.h5")" ', at most 50'
show 'the same with MPI' "$(median env COHORT_MPI=yes "$COHORT" inspect "$work/class.h5")"
