#!/bin/bash
# limit: 7200
# The same bits with every compiler, MPI, BLAS kernel and instruction set that this machine has. Trains a small model of
# every kind, predicts, compares the bytes and prints the first digits of the checkpoint's checksum:
#
#     gcc and clang   x   Open MPI and MPICH, on 2 ranks
#     BLAS kernels    x   instruction sets, on 1 rank
#
# lme, whose dense factorization is LAPACK's, may differ by 1e-9, or in the last bit of a float, if the BLAS kernels differ.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/bits.sh
unset OPENBLAS_CORETYPE COHORT_ISA
mkdir "$TMP/data"
run bits_data "$TMP/data" "$COHORT" || fail "the classes"

# compare HERE COMMAND...: trains every kind with the program COMMAND... in $TMP/HERE and compares it with the first that
# was trained.
first=''
compare() {
    local here=$1 name sums
    shift
    mkdir "$TMP/$here"
    cp "$TMP"/data/*.h5 "$TMP/$here"
    for name in $bits_names; do
        run bits_run "$TMP/$here" "$name" "$name" "$@" || fail "$name"
        sums=$(bits_sums "$TMP/$here" "$name")
        printf '%-13s %-20s %s\n' "$name" "$here" "${sums:0:16}"
        if [ -z "$first" ]; then
            check "$name has checkpoints" test ${#sums} -ge 130
        elif [ "$name" = lme ]; then
            check "lme agrees to the last bit of its floats" bits_near "$TMP/$first" lme "$TMP/$here" lme
        else
            expect_equal "$(bits_sums "$TMP/$first" "$name")" "$sums" "$name, compared with $first"
        fi
    done
    first=${first:-$here}
}

# builds MPI COMPILER: builds the program in $TMP/build; whether that worked.
builds() {
    local wrapper=mpicc
    [ "$1" = openmpi ] || wrapper=mpicc.mpich
    command -v "$2" >/dev/null && command -v $wrapper >/dev/null && command -v "mpirun.$1" >/dev/null || return
    OMPI_CC=$2 MPICH_CC=$2 expect_status 0 make "BUILD=$TMP/build/$1-$2" "CC=$wrapper" all
    [ -x "$TMP/build/$1-$2/cohort" ]
}

n_built=0
for mpi in openmpi mpich; do
    for compiler in gcc clang; do
        section "$mpi, $compiler"
        if ! builds $mpi $compiler; then
            (skip "not installed, or the build fails")
            continue
        fi
        compare $mpi-$compiler mpirun.$mpi -n 2 "$TMP/build/$mpi-$compiler/cohort"
        n_built=$((n_built + 1))
    done
done
check "there is something to compare" test $n_built -gt 1

# OpenBLAS obeys without asking the CPU: kernels with AVX-512 only where it has that.
kernels="Nehalem Sandybridge"
! COHORT_ISA=avx2 run "$COHORT" --version || kernels+=" Haswell Zen"
! COHORT_ISA=avx512 run "$COHORT" --version || kernels+=" SkylakeX"
[ "$(uname -m)" = x86_64 ] || kernels=''
for kernel in $kernels; do
    for isa in plain avx2 avx512; do
        COHORT_ISA=$isa run "$COHORT" --version || continue
        section "$kernel, $isa"
        compare "$kernel-$isa" env OPENBLAS_CORETYPE="$kernel" COHORT_ISA=$isa "$COHORT"
        # With one kernel, lme too has the same bytes.
        expect_equal "$(bits_sums "$TMP/$kernel-plain" lme)" "$(bits_sums "$TMP/$kernel-$isa" lme)" "lme, with $isa"
    done
done
