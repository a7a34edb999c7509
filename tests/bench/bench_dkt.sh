#!/bin/bash
# Deep knowledge tracing on ASSISTments 2009 beside the same network in PyTorch, on the same cores with the same
# BLAS kernels.
files=../shared/data/assist2009/assist2009_updated
data=$BENCH_DIRECTORY/assist2009_train1.h5
if [ -n "${BENCH_SHORT:-}" ]; then
    data=$BENCH_CLASS
elif [ ! -f ${files}_train1.csv.gz ]; then
    echo "skipped: there is no ${files}_train1.csv.gz"
    exit 0
fi
[ -f "$data" ] || "$COHORT" import three-line --train ${files}_train1.csv.gz --split none -o "$data"
ours=$(mpirun -n 2 "$BUILD/bench/bench_dkt" "$data" | tail -1)
if [ -n "${BENCH_SHORT:-}" ]; then
    echo "$ours answers a second"
    exit 0
fi
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo 'no comparison: python3-torch is not installed'
    exit 0
fi
# The kernels that cohort chose for this CPU.
OPENBLAS_CORETYPE=$("$COHORT" doctor 2>/dev/null | awk '$1 == "kernel" { print $2 }')
export OPENBLAS_CORETYPE
theirs=$(env -u OPENBLAS_NUM_THREADS OMP_NUM_THREADS=2 /usr/bin/python3 tests/bench/dkt_torch.py ${files}_train1.csv.gz 200)
awk -v ours="$ours" -v theirs="$theirs" 'BEGIN {
    printf "PyTorch, both threads: %.1f thousand answers a second; cohort is %.0f times as fast\n", theirs / 1e3,
        ours / theirs }'
