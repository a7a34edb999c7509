#!/bin/bash
# Blends: created from runs on any number of ranks, with weights from the validation attempts alone; afterwards a run
# like any other.
. "$(dirname "$0")/../lib/lib.sh"

small="model.hidden=8 train.epochs=4 train.batch=100"
run "$COHORT" simulate irt --students 600 --items 30 --skills 2 --seed 3 --split by-student=60/20/20 \
    -o "$TMP/class.h5" || fail "simulate"
run "$COHORT" simulate irt --students 600 --items 30 --skills 2 --seed 4 --split by-student=60/20/20 \
    -o "$TMP/other.h5" || fail "simulate"
run "$COHORT" simulate irt --students 300 --items 30 --skills 2 --seed 4 --split by-student=80/0/20 \
    -o "$TMP/no-valid.h5" || fail "simulate"
# train RUN DATA WORD...
train() {
    # shellcheck disable=SC2086
    run "$COHORT" train "run=$TMP/$1" "data=$TMP/$2.h5" $small "${@:3}" || fail "train $1"
}
train rbm class model.kind=rbm optimizer.rate=0.01
train dkt class model.kind=dkt model.input=item optimizer.method=adam optimizer.rate=0.01
train third class model.kind=rbm model.hidden=3 model.visible=bernoulli optimizer.rate=0.003
train other other model.kind=rbm
train none no-valid model.kind=rbm
train fold class model.kind=rbm train.folds=3 train.fold=1

section "a blend"
expect_status 0 "$COHORT" blend "$TMP/rbm" "$TMP/dkt" "$TMP/third" -o "$TMP/one"
expect_match "^1 [^ ]+ \(rbm\) "
expect_match "^1 \+ 3 "
expect_match "^blend = [01]\.[0-9]+ p1 \+ "
expect_status 0 "$COHORT" blend "$TMP/rbm" "$TMP/dkt" "$TMP/third" -o "$TMP/one" --json
blend_loss=$(json blend test log_loss)
best_loss=$(for m in 0 1 2; do json members $m valid log_loss; done | sort -g | head -1)
check "the blend is no worse than its best member on validation" \
    awk -v a="$(json blend valid log_loss)" -v b="$best_loss" 'BEGIN { exit !(a <= b + 1e-9) }'
for n in 2 3 5; do
    expect_status 0 ranks $n "$COHORT" blend "$TMP/rbm" "$TMP/dkt" "$TMP/third" -o "$TMP/ranks$n"
    expect_same "$TMP/one/last.h5" "$TMP/ranks$n/last.h5"
done
for n in 1 3; do
    expect_status 0 ranks $n "$COHORT" blend "$TMP/rbm" "$TMP/dkt" --method logistic -o "$TMP/stack$n"
done
expect_match "^blend = sigma\("
expect_same "$TMP/stack1/last.h5" "$TMP/stack3/last.h5"

section "a run like any other"
mv "$TMP/rbm" "$TMP/rbm-elsewhere" # it does not need its members
expect_status 0 "$COHORT" evaluate "$TMP/one" --json
check "evaluate finds the score that blend showed" \
    awk -v a="$(json log_loss)" -v b="$blend_loss" 'BEGIN { d = a - b; exit !(a != "" && d * d < 1e-12) }'
expect_status 0 "$COHORT" predict "$TMP/one" --split test -o "$TMP/p.csv"
expect_match "^student,item" "$TMP/p.csv"
expect_status 0 "$COHORT" inspect "$TMP/one"
expect_match "^1 rbm "
expect_status 0 "$COHORT" inspect "$TMP/one" --json
expect_equal blend "$(json model)"
expect_status 0 "$COHORT" export "$TMP/one" -o "$TMP/tables"
expect_match "^3 rbm,0?" "$TMP/tables/table_members.csv"
expect_status 0 "$COHORT" verify "$TMP/one"
expect_status 0 "$COHORT" evaluate "$TMP/one" --data "$TMP/other.h5"
mv "$TMP/rbm-elsewhere" "$TMP/rbm"

section "mistakes"
expect_status 1 "$COHORT" blend "$TMP/rbm" "$TMP/other" -o "$TMP/bad"
expect_match "members of a blend must use the same data set"
expect_status 1 "$COHORT" blend "$TMP/rbm" "$TMP/fold" -o "$TMP/bad"
expect_match "hold out the same attempts"
expect_status 1 "$COHORT" blend "$TMP/none" "$TMP/none" -o "$TMP/bad"
expect_match "no validation attempt has a known outcome"
expect_status 1 "$COHORT" blend "$TMP/one" "$TMP/rbm" -o "$TMP/bad"
expect_match "this is already a blend"
expect_status 1 "$COHORT" blend "$TMP/rbm" "$TMP/dkt" -o "$TMP/third"
expect_match "which the blend would overwrite"
expect_status 0 "$COHORT" evaluate "$TMP/third"
expect_status 2 "$COHORT" blend "$TMP/rbm" -o "$TMP/bad"
expect_status 2 "$COHORT" blend "$TMP/rbm" "$TMP/dkt"
expect_status 1 "$COHORT" blend "$TMP/rbm" "$TMP/missing" -o "$TMP/bad"
expect_status 1 ranks 3 "$COHORT" blend "$TMP/rbm" "$TMP/missing" -o "$TMP/bad"
expect_status 1 "$COHORT" train model.kind=blend "data=$TMP/class.h5" "run=$TMP/bad"
expect_match "not trained but built by .cohort blend"
check "nothing half-made" test ! -e "$TMP/bad"
