#!/bin/bash
# The exact RTRBM on ASSISTments 2009, 200 hidden units, batches of 16 students: answers a second on 1 and 2 ranks, beside
# an obvious PyTorch version with autograd on as many threads, in the same run.
set -eu
data=../shared/data/assist2009/assist2009_updated_train1.csv.gz
hidden=200 rounds='1 2 3'
if [ -n "${BENCH_SHORT:-}" ]; then
    hidden=10 rounds=1
else
    [ -f "$data" ] || { echo "skipped: there is no $data"; exit 0; }
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${BENCH_SHORT:-}" ]; then
    "$COHORT" simulate bkt --students 60 --skills 10 --seed 1 -o "$scratch/a09.h5" >/dev/null 2>&1
else
    "$COHORT" import three-line --train "$data" -o "$scratch/a09.h5" 2>/dev/null
fi
for n in 1 2; do
    best=0
    for round in $rounds; do
        mpirun -n $n "$COHORT" train data="$scratch/a09.h5" run="$scratch/run$n$round" model.kind=rtrbm model.hidden=$hidden \
            model.scale=0.05 optimizer.method=adam optimizer.rate=0.01 optimizer.clip=1 train.batch=16 train.block=8 \
            train.epochs=2 train.valid_every=3 >"$scratch/log" 2>&1
        rate=$(sed -E 's/.*"attempts_per_second": ([0-9.e+]+).*/\1/' "$scratch/run$n$round/log.jsonl" | sort -g | tail -1)
        best=$(awk -v a="$best" -v b="$rate" 'BEGIN { printf "%.0f", (a > b ? a : b) }')
    done
    echo "cohort, ranks: $n: $best answers a second, the best of its epochs"
    [ -z "${BENCH_SHORT:-}" ] || continue
    if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
        echo "skipped: there is no python3-torch to compare with"
        continue
    fi
    torch=$(OPENBLAS_NUM_THREADS=$n /usr/bin/python3 tests/bench/rtrbm_torch.py "$data" 200 16 20 $n)
    echo "PyTorch, threads: $n: $torch"
    awk -v a="$best" -v b="${torch%% *}" 'BEGIN { printf "cohort is %.0f times as fast\n", a / b }'
done
