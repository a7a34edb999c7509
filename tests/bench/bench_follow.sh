#!/bin/bash
# How fast `predict --follow` answers with a gru of 200 units: 10 000 students in memory, on one core. Then how fast
# --next and --mastery write a class.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
students=10000 lines=400000
if [ -n "${BENCH_SHORT:-}" ]; then students=500 lines=2000; fi
"$COHORT" simulate bkt --students "$students" --skills 25 --attempts 40 -o "$work/class.h5" >/dev/null 2>&1
"$COHORT" train "data=$work/class.h5" "run=$work/run" model.kind=dkt model.cell=gru model.hidden=200 \
    optimizer.method=adam train.epochs=1 >/dev/null 2>&1
one=()
! command -v taskset >/dev/null || one=(taskset -c 0)
"${one[@]}" "$BUILD/bench/bench_follow" "$work/run" "$students" 100 "$lines"
for table in next mastery mastery=each; do
    start=$EPOCHREALTIME
    "$COHORT" predict "$work/run" --$table -o "$work/table.csv" 2>/dev/null
    echo "$start $EPOCHREALTIME $(wc -l <"$work/table.csv")" |
        awk -v table="$table" '{ printf "--%s: %d rows in %.1f s\n", table, $3 - 1, $2 - $1 }'
done
