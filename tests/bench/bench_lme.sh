#!/bin/bash
# The mixed model beside lme4's glmer on the same answers in the same run (skipped where there is no R), and at
# the grockit shape on two ranks, with its memory.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# beside NAME DATA: fits with both, says how far apart they are and how much faster one is. Seconds are of the fit
# alone, without starting and reading, of the best of three runs.
rounds='1 2 3' students=2000
if [ -n "${BENCH_SHORT:-}" ]; then rounds=1 students=100; fi
beside() {
    local seconds theirs
    seconds=$(for run in $rounds; do
        mpirun -n 2 "$COHORT" train "data=$2" model.kind=lme train.epochs=50 train.valid_every=50 \
            "run=$work/$1-$run" 2>&1
    done | sed -n 's/^done: .* in \([0-9.]*\) s.*/\1/p' | sort -n | head -1)
    mv "$work/$1-1" "$work/$1"
    "$COHORT" predict "$work/$1" --split train -o "$work/$1.csv" 2>/dev/null
    "$COHORT" export "$work/$1" --hidden -o "$work/$1" 2>/dev/null
    theirs=$(Rscript tests/lib/glmer.R "$work/$1.csv" "$work/$1" "$work/$1/hidden.csv")
    echo "$1: cohort $seconds s on two ranks; glmer $theirs" |
        awk '{ printf "%s; %.0f times as fast\n", $0, $10 / $3 }'
}
if Rscript -e 'library(lme4)' >/dev/null 2>&1; then
    "$COHORT" simulate irt --students $students --items 300 --skills 1 --model 1pl --split none --seed 3 \
        -o "$work/class.h5" 2>/dev/null >&2
    beside class "$work/class.h5"
    data=../shared/data/statics
    if [ -f $data/STATICS_train1.csv.gz ] && [ -z "${BENCH_SHORT:-}" ]; then
        "$COHORT" import three-line --train $data/STATICS_train1.csv.gz --split none -o "$work/statics.h5" \
            2>/dev/null >&2
        beside statics "$work/statics.h5"
    fi
else
    echo 'beside glmer: skipped, there is no R with lme4'
fi

mpirun -n 2 "$COHORT" train "data=$BENCH_CLASS" "run=$work/grockit" model.kind=lme train.epochs=50 \
    train.valid_every=50 2>&1 | sed 's/^/grockit shape, 2 ranks: /'
