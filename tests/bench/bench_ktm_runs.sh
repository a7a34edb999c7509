#!/bin/bash
# How long whole runs of knowledge tracing machines take on 220 000 answers, from the command to the result: best
# of three, on two ranks; and how the machine starts and ends ranks at all.
set -eu
class=$BENCH_DIRECTORY/answers.h5
students=4400 rounds='1 2 3'
if [ -n "${BENCH_SHORT:-}" ]; then students=50 rounds=1; fi
[ -f "$class" ] || "$COHORT" simulate bkt --students $students --skills 110 --items 2200 --attempts 50 --seed 1 -o "$class"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# best WORD...: the shortest of three times in seconds of a command on two ranks.
best() {
    local start end
    for _ in $rounds; do
        rm -rf "$work/run"
        start=$(date +%s%N)
        mpirun -n 2 "$COHORT" "$@" >"$work/out" 2>"$work/err"
        end=$(date +%s%N)
        echo $((end - start))
    done | sort -n | awk 'NR == 1 { printf "%.2f", $1 / 1e9 }'
}
echo "two ranks that do nothing: $(best --version) s"
for preset in pfa bestlr afm fm; do
    seconds=$(best train "data=$class" model.kind=ktm model.preset=$preset "run=$work/run")
    echo "$preset: $seconds s; $(sed -n 's/^done: //p' "$work/err"); $(sed -n 's/^test *//p' "$work/out")"
done
