#!/bin/bash
# Runs the benchmarks: the programs of tests/bench/bench_*.c (under mpirun with each of the numbers that a comment
# `ranks: 1 2` in the first ten lines gives), then the scripts tests/bench/bench_*.sh, which may run a program of
# the same name themselves. `make bench` builds and then calls this; arguments select by name.
#
#     tests/bench/run_benches.sh [--short] [NAME...]     --short: seconds each, on small classes, to see that they all run
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/mpi.sh
export BUILD=${BUILD:-build}
export COHORT=$BUILD/cohort
# Ranks that own their core need not yield it.
unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl_vader_single_copy_mechanism
export BENCH_DIRECTORY=$BUILD/bench
size=()
if [ "${1:-}" = --short ]; then
    shift
    export BENCH_SHORT=yes OMPI_MCA_mpi_yield_when_idle=1
    BENCH_DIRECTORY=$(mktemp -d)
    trap 'rm -rf "$BENCH_DIRECTORY"' EXIT
    size=(--students 500 --items 100)
fi
# A grockit-shaped class for all of them, simulated once.
export BENCH_CLASS=$BENCH_DIRECTORY/grockit.h5
[ -f "$BENCH_CLASS" ] || "$COHORT" simulate grockit --seed 1 "${size[@]}" -o "$BENCH_CLASS"
# ASSISTments 2009 with all its training students, where it is there; the Eedi answer matrix, likewise.
export BENCH_A09=$BENCH_DIRECTORY/assist2009.h5 BENCH_EEDI=$BENCH_DIRECTORY/eedi.h5
a09=../shared/data/assist2009/assist2009_updated
eedi=../shared/data/eedi
if [ -z "${BENCH_SHORT:-}" ]; then
    [ -f "$BENCH_A09" ] || [ ! -f ${a09}_train.csv.gz ] ||
        "$COHORT" import three-line --train ${a09}_train.csv.gz --test ${a09}_test.csv.gz -o "$BENCH_A09"
    [ -f "$BENCH_EEDI" ] || [ ! -f $eedi/train_data.csv.gz ] ||
        "$COHORT" import csv --train $eedi/train_data.csv.gz --valid $eedi/valid_data.csv --test $eedi/test_data.csv \
            --student user_id --item question_id --outcome is_correct --withheld -o "$BENCH_EEDI"
fi
ran=0
shopt -s nullglob
for source in tests/bench/bench_*.c tests/bench/bench_*.sh; do
    [[ $source == *.sh || ! -f ${source%.c}.sh ]] || continue # which runs it
    name=$(basename "${source%.*}")
    name=${name#bench_}
    [ $# = 0 ] || [[ " $* " == *" $name "* || $name == *"$1"* ]] || continue
    ran=$((ran + 1))
    echo "== $name"
    if [[ $source == *.sh ]]; then
        bash "$source"
        continue
    fi
    ranks=$(head -10 "$source" | sed -n 's|^[/# *]*ranks: *\([0-9 ]*\).*|\1|p' | head -1)
    if [ -z "$ranks" ]; then "$BUILD/bench/bench_$name"; fi
    for n in $ranks; do
        mpirun -n "$n" "$BUILD/bench/bench_$name"
    done
done
if [ "$ran" = 0 ]; then
    echo 'There is no such benchmark in tests/bench.' >&2
    exit 1
fi
