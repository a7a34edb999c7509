#!/bin/bash
# Models learn something true: every kind of RBM predicts the test attempts of a simulated class better than the
# items' shares of correct answers, from which a model without hidden units starts.
. "$(dirname "$0")/../lib/lib.sh"

# train RUN WORD...: train with settings for a small class.
train() {
    local run=$1
    shift
    run "$COHORT" train "data=$TMP/class.h5" "run=$TMP/$run" model.kind=rbm model.preset=binomial model.hidden=6 model.start=log_odds \
        model.scale=0.1 train.batch=100 train.epochs=10 optimizer.rate=0.0002 "$@" || fail "training $run"
}

auc() { json_of "$TMP/$1/result.json" test auc; }

# expect_gain RUN GAIN: a test: the AUC exceeds that of the items by GAIN.
expect_gain() {
    if awk -v auc="$(auc "$1")" -v base="$(auc items)" -v gain="$2" 'BEGIN { exit !(auc > base + gain) }'; then
        pass "$1: AUC $(auc "$1"), of the items $(auc items)"
    else
        fail "$1: AUC $(auc "$1"), of the items $(auc items); expected $2 more"
    fi
}

run "$COHORT" simulate irt --students 1500 --items 40 --skills 2 --seed 1 -o "$TMP/class.h5" || fail simulate
section "an RBM on simulated answers"
train items model.scale=0 train.epochs=0
check "the items alone have an AUC of 0.69" \
    awk -v auc="$(auc items)" 'BEGIN { exit !(auc > 0.67 && auc < 0.71) }'

# Measured: .767 to .773, and .689 for the items. Bernoulli units treat unanswered items as incorrect: .727.
train softmax model.copies=1
expect_gain softmax 0.07
train two-copies model.copies=2
expect_gain two-copies 0.07
train three-copies model.copies=3
expect_gain three-copies 0.07
train bernoulli model.visible=bernoulli model.copies=1 optimizer.rate=0.002
expect_gain bernoulli 0.025
train conditional model.conditional=yes
expect_gain conditional 0.07
train factored model.factors=3
expect_gain factored 0.07
train gaussian model.hidden_kind=gaussian model.copies=1 optimizer.rate=0.002
expect_gain gaussian 0.07
train relu model.hidden_kind=relu optimizer.rate=0.005 optimizer.bias_rate=0.05
expect_gain relu 0.07
train persistent model.persistent=yes
expect_gain persistent 0.07
train mean-field model.prediction=mean_field
expect_gain mean-field 0.07
train adam optimizer.method=adam optimizer.rate=0.01 optimizer.clip=100 optimizer.schedule=cosine
expect_gain adam 0.07

# The learning rates of the presets are for binary units, whose means are at most 1.
section "unbounded hidden units, with the settings of the source"
expect_status 0 "$COHORT" evaluate "$TMP/items" --split valid --json
items=$(json item_mean log_loss)
for kind in gaussian relu; do
    for preset in binomial softmax; do
        expect_status 0 "$COHORT" train "data=$TMP/class.h5" "run=$TMP/$kind-$preset" model.kind=rbm model.preset=$preset \
            model.hidden_kind=$kind train.epochs=40
        check "$kind, $preset: log-loss $(json_of "$TMP/$kind-$preset/result.json" valid log_loss), of the items $items" \
            awk -v a="$(json_of "$TMP/$kind-$preset/result.json" valid log_loss)" -v b="$items" 'BEGIN { exit !(a > 0 && a < b) }'
    done
done

# An untrained `average` is the baseline of running means, found by another path.
section "baselines"
run "$COHORT" simulate bkt --students 300 --skills 4 --seed 2 -o "$TMP/bkt.h5" || fail simulate
expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" "run=$TMP/start" model.kind=average train.epochs=0
expect_status 0 "$COHORT" evaluate "$TMP/start" --json
expect_equal "$(json log_loss)" "$(json running_mean log_loss)" "log-loss of running means"
expect_equal "$(json skip_first auc)" "$(json running_mean skip_first auc)" "AUC of running means"
expect_number 'running_mean log_loss' '<' "$(json item_mean log_loss)"
expect_no_match 'item means have'
expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" "run=$TMP/average" model.kind=average
expect_match '^test log-loss [0-9.]+; item means have [0-9.]+, running means [0-9.]+$'
expect_no_match '^warning'
expect_status 0 ranks 3 "$COHORT" evaluate "$TMP/average"
expect_match '^running mean, all +1200 '
expect_no_match '^warning'
expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" "run=$TMP/poor" model.kind=rbm model.preset=binomial train.epochs=1
expect_match '^warning: the model is no better than '
expect_status 0 ranks 2 "$COHORT" evaluate "$TMP/poor"
expect_match '^warning: the model is no better than '
