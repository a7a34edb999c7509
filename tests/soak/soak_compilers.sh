#!/bin/bash
# limit: 7200
# The same bits with every compiler and MPI that is installed: gcc and clang, Open MPI and MPICH. Trains a small model
# of every kind on 2 ranks, predicts, and prints the checksums. lme may differ by 1e-9 if the builds have different BLAS
# kernels.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/bits.sh
mkdir "$TMP/data"
run bits_data "$TMP/data" "$COHORT" || fail "the classes"

# builds MPI COMPILER: builds the program in $TMP; whether that worked.
builds() {
    local wrapper=mpicc launcher=mpirun
    if [ "$1" = mpich ]; then wrapper=mpicc.mpich launcher=mpirun.mpich; fi
    command -v "$2" >/dev/null && command -v $wrapper >/dev/null && command -v $launcher >/dev/null || return
    section "$1, $2"
    OMPI_CC=$2 MPICH_CC=$2 expect_status 0 make "BUILD=$TMP/$1-$2" "CC=$wrapper" all
    [ -x "$TMP/$1-$2/cohort" ]
}

first='' n_built=0
for mpi in openmpi mpich; do
    for compiler in gcc clang; do
        here=$mpi-$compiler
        if ! builds $mpi $compiler; then
            (section "$mpi, $compiler"; skip "not installed, or the build fails")
            continue
        fi
        mkdir "$TMP/$here-runs"
        cp "$TMP"/data/*.h5 "$TMP/$here-runs"
        launcher=mpirun
        [ $mpi = openmpi ] || launcher=mpirun.mpich
        for name in $bits_names; do
            run bits_run "$TMP/$here-runs" "$name" "$name" $launcher -n 2 "$TMP/$here/cohort" || fail "$name"
            sums=$(bits_sums "$TMP/$here-runs" "$name")
            printf '%-13s %-8s %-6s %s\n' "$name" $mpi $compiler "${sums:0:64}"
            if [ -z "$first" ]; then
                check "$name has checkpoints" test ${#sums} -ge 130
            elif [ "$name" = lme ]; then
                check "lme agrees to the last bit of its floats" bits_near "$TMP/$first-runs" lme "$TMP/$here-runs" lme
            else
                expect_equal "$(bits_sums "$TMP/$first-runs" "$name")" "$sums" "$name, compared with $first"
            fi
        done
        first=${first:-$here}
        n_built=$((n_built + 1))
    done
done
check "there is something to compare" test $n_built -gt 1
