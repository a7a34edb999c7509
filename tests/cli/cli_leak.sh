#!/bin/bash
# Random labels: with randomly shuffled outcomes there is nothing to predict, and every model must have an AUC of 0.5
# within 4 standard errors. Any leak of outcomes into predictions shows here.
. "$(dirname "$0")/../lib/lib.sh"

# Learning rates and epochs that suffice to overfit the training outcomes.
settings="model.kind=rbm model.hidden=8 model.scale=0.1 model.start=log_odds train.batch=50 train.epochs=15
    optimizer.rate=0.003"

# train RUN DATA WORD...
train() {
    local run=$1 data=$2
    shift 2
    # shellcheck disable=SC2086
    run "$COHORT" train "data=$TMP/$data.h5" "run=$TMP/$run" $settings "$@" || fail "training $run"
}

# result RUN KEY...: a number of the run's result.
result() { json_of "$TMP/$1/result.json" "${@:2}"; }

# expect_chance RUN: a test: the AUC of the test attempts is within 4 standard errors of 0.5. The standard error is
# that of n uninformative predictions, where 30 to 70 % of the answers are correct.
expect_chance() {
    local n auc
    n=$(result "$1" test n)
    auc=$(result "$1" test auc)
    if awk -v n="$n" -v auc="$auc" 'BEGIN {
            off = auc - 0.5
            exit !(n > 3000 && off * off < 16 / (12 * n * 0.3 * 0.7)) }'; then
        pass "AUC $auc of $n attempts"
    else
        fail "AUC $auc of $n attempts, expected 0.5"
    fi
}

# Students traced answer by answer; single attempts withheld; with repeats, unknown outcomes and long tails.
run "$COHORT" simulate irt --students 800 --items 40 --skills 2 --seed 5 --split by-student=60/10/30 \
    --shuffle-outcomes -o "$TMP/traced.h5" || fail "simulate"
run "$COHORT" simulate irt --students 800 --items 40 --skills 2 --seed 5 --split by-attempt=60/10/30 \
    --shuffle-outcomes -o "$TMP/withheld.h5" || fail "simulate"
run "$COHORT" simulate bkt --students 400 --skills 4 --seed 5 --split by-student=60/10/30 \
    --shuffle-outcomes -o "$TMP/repeats.h5" || fail "simulate"
run "$COHORT" simulate bkt --students 400 --skills 4 --seed 5 --split by-attempt=60/10/30 \
    --shuffle-outcomes -o "$TMP/withheld-repeats.h5" || fail "simulate"

for data in traced withheld repeats withheld-repeats; do
    section "$data"
    train "$data-plain" $data
    expect_chance "$data-plain"
    train "$data-conditional" $data model.conditional=yes model.repeats=last
    expect_chance "$data-conditional"
    train "$data-mean-field" $data model.hidden_kind=relu model.copies=1 optimizer.rate=0.001
    expect_chance "$data-mean-field"
    train "$data-factored" $data model.factors=4 model.visible=bernoulli model.persistent=yes
    expect_chance "$data-factored"
done
section "training outcomes are overfitted"
train "heart" withheld model.hidden=60 model.copies=1 train.epochs=60 "model.cd_schedule=20:3"
expect_chance heart

section "folds"
train folds withheld train.folds=3 train.fold=2
expect_chance folds

# The same settings on real outcomes must learn: otherwise the tests above would prove nothing.
section "real outcomes"
run "$COHORT" simulate irt --students 800 --items 40 --skills 2 --seed 5 --split by-attempt=60/10/30 \
    -o "$TMP/real.h5" || fail "simulate"
train real real
check "a model that has learned" awk -v auc="$(result real test auc)" 'BEGIN { exit !(auc > 0.7) }'
