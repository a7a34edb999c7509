#!/bin/bash
# The same bits: the checkpoints of a run have the same sha256sum at any number of ranks, with and without shared
# memory, with every instruction set of this CPU and every BLAS kernel, and for runs that were interrupted.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/bits.sh

# Long tails, unknown outcomes and single attempts held out; and a class with many repeats and whole students held
# out.
run "$COHORT" simulate grockit --students 260 --items 60 --seed 2 -o "$TMP/grockit.h5" || fail "simulate grockit"
run "$COHORT" simulate bkt --students 130 --skills 4 --seed 2 -o "$TMP/bkt.h5" || fail "simulate bkt"

settings="model.kind=rbm model.hidden=5 model.scale=0.1 train.batch=60 train.block=7 train.epochs=3
    model.common=no model.conditional=no model.window=0 optimizer.method=sgd optimizer.gradient=sum optimizer.rate=0.002"

# train RANKS RUN DATA WORD...: a run; its words are kept.
train() {
    local n=$1 run=$2 data=$3
    shift 3
    local command=("$COHORT" train "data=$TMP/$data.h5" "run=$TMP/$run")
    # shellcheck disable=SC2206
    command+=($settings "$@")
    if [ "$n" = 1 ]; then run "${command[@]}"; else run ranks "$n" "${command[@]}"; fi
}

# sums RUN: the checksums of its two checkpoints.
sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5) | awk '{ printf "%s ", $1 }'; }

# same NAME DATA WORD...: a test for each number of ranks.
same() {
    local name=$1 data=$2 n
    shift 2
    section "$name"
    train 1 "$name-1" "$data" "$@" || fail "training on 1 rank"
    expect_match '^test +n [0-9]+ '
    for n in 2 3 5; do
        train $n "$name-$n" "$data" "$@" || fail "training on $n ranks"
        expect_equal "$(sums "$name-1")" "$(sums "$name-$n")" "the checkpoints of 1 and $n ranks"
    done
}

same bernoulli grockit model.visible=bernoulli model.copies=1
same softmax grockit model.copies=1
same two-copies grockit model.copies=2
same three-copies bkt model.copies=3 model.start=log_odds
same conditional grockit model.conditional=yes
same factored grockit model.factors=3 model.conditional=yes
same gaussian bkt model.hidden_kind=gaussian model.copies=1 optimizer.rate=0.0005
same relu grockit model.hidden_kind=relu optimizer.rate=0.0005
same persistent bkt model.persistent=yes
same schedule grockit "model.cd_schedule=1:2 2:4"
same last bkt model.repeats=last model.hidden=20
same adam grockit optimizer.method=adam optimizer.rate=0.02 optimizer.clip=5 optimizer.schedule=cosine \
    optimizer.decay=0.1
same window bkt model.window=5 model.common=yes model.conditional=yes
same folds grockit train.folds=4 train.fold=2

section "other settings give other bits"
expect_equal 14 "$(sha256sum "$TMP"/*-1/last.h5 | cut -d ' ' -f 1 | sort -u | wc -l)" "14 checkpoints"
train 1 seed grockit model.copies=2 train.seed=2
check "another seed" test "$(sums seed)" != "$(sums two-copies-1)"
train 1 epochs grockit model.copies=2 train.epochs=2
check "another number of epochs" test "$(sums epochs)" != "$(sums two-copies-1)"

section "ranks that send messages"
for n in 2 3; do
    COHORT_SHARED=no train $n "sent-$n" grockit model.factors=3 model.conditional=yes
    expect_equal "$(sums factored-1)" "$(sums "sent-$n")" "the checkpoints of 1 rank and of $n that send"
    COHORT_SHARED=no train $n "adam-sent-$n" grockit optimizer.method=adam optimizer.rate=0.02 optimizer.clip=5 \
        optimizer.schedule=cosine optimizer.decay=0.1
    expect_equal "$(sums adam-1)" "$(sums "adam-sent-$n")" "the checkpoints of 1 rank and of $n that send, adam"
done

section "an interrupted run"
train 3 cut bkt model.persistent=yes train.epochs=1
train 2 cut bkt model.persistent=yes
expect_match 'continuing'
expect_equal "$(sums persistent-1 | cut -d ' ' -f 1)" "$(sums cut | cut -d ' ' -f 1)" \
    "the last checkpoints of a run in one piece and of one continued on other ranks"

section "instruction sets"
for isa in plain avx2 avx512; do
    if ! COHORT_ISA=$isa run "$COHORT" --version; then
        expect_match 'this CPU does not have it'
        continue
    fi
    COHORT_ISA=$isa train 1 "isa-$isa" grockit model.factors=3 model.conditional=yes
    expect_equal "$(sums factored-1)" "$(sums "isa-$isa")" "the checkpoints of the best set and of $isa"
    COHORT_ISA=$isa train 1 "isa-last-$isa" bkt model.repeats=last model.hidden=20
    expect_equal "$(sums last-1)" "$(sums "isa-last-$isa")" "the checkpoints of the best set and of $isa, m = 20"
done

# Every kind, as if on two CPUs: rank 0 has no vector instructions, rank 1 has the best ones and other BLAS kernels;
# compared with one rank with a third kernel. Only lme, which uses the BLAS of rank 0 for its dense factorisation,
# needs the same kernel.
section "ranks on different CPUs"
cat >"$TMP/mixed" <<'EOF'
#!/bin/sh
case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} in
0) export OPENBLAS_CORETYPE=Haswell COHORT_ISA=plain ;;
*) export OPENBLAS_CORETYPE=Nehalem ;;
esac
exec "$@"
EOF
chmod +x "$TMP/mixed"
mkdir "$TMP/kinds"
run bits_data "$TMP/kinds" "$COHORT" || fail "the classes"
for name in $bits_names; do
    kernel=Sandybridge
    [ "$name" != lme ] || kernel=Haswell
    OPENBLAS_CORETYPE=$kernel run bits_run "$TMP/kinds" "$name" "$name-1" "$COHORT" || fail "$name on 1 rank"
    run bits_run "$TMP/kinds" "$name" "$name-2" ranks 2 "$TMP/mixed" "$COHORT" || fail "$name on 2 ranks"
    expect_match '^[0-9a-f]{64} [0-9a-f]{64} ' <(bits_sums "$TMP/kinds" "$name-1")
    expect_equal "$(bits_sums "$TMP/kinds" "$name-1")" "$(bits_sums "$TMP/kinds" "$name-2")" "$name: checkpoints and predictions"
done
