#!/bin/bash
# Results of the models: on simulated students, and on public data if ../shared/data exists.
. "$(dirname "$0")/../lib/lib.sh"

section 'grockit shape'
expect_status 0 "$COHORT" simulate grockit --seed 1 -o "$TMP/grockit.h5"
for preset in binomial softmax; do
    expect_status 0 ranks 2 "$COHORT" train model.kind=rbm model.preset=$preset data="$TMP/grockit.h5" \
        run="$TMP/$preset" train.epochs=8 train.monitor=cbd
    expect_status 0 ranks 2 "$COHORT" evaluate "$TMP/$preset" --split valid --json
    expect_number cbd '<' "$(json item_mean cbd)"
done
expect_number cbd '>=' "$(json_of "$TMP/binomial/result.json" valid cbd)"

data=../shared/data
if [ ! -d $data ]; then
    section 'public data'
    skip "there is no $data"
fi

section eedi
expect_status 0 "$COHORT" import csv --train $data/eedi/train_data.csv.gz --valid $data/eedi/valid_data.csv \
    --test $data/eedi/test_data.csv --student user_id --item question_id --outcome is_correct --withheld -o "$TMP/eedi.h5"
expect_status 0 ranks 2 "$COHORT" train jobs/eedi.ini data="$TMP/eedi.h5" run="$TMP/eedi"
expect_status 0 "$COHORT" evaluate "$TMP/eedi" --json
expect_equal 3543 "$(json n)"
expect_number auc '>=' 0.77
expect_status 0 "$COHORT" train jobs/ktm_eedi.ini data="$TMP/eedi.h5" run="$TMP/fm"
for run in eedi fm; do
    expect_status 0 "$COHORT" train refit="$TMP/$run" run="$TMP/${run}_all"
done
expect_status 0 "$COHORT" blend "$TMP/eedi_all" "$TMP/fm_all" -o "$TMP/blend" --json
expect_number 'blend test auc' '>=' 0.78

section assist2009
files=$data/assist2009/assist2009_updated
expect_status 0 "$COHORT" import three-line --train ${files}_train1.csv.gz --valid ${files}_valid1.csv.gz \
    --test ${files}_test.csv.gz -o "$TMP/a09.h5"
expect_status 0 ranks 2 "$COHORT" train jobs/assist2009.ini data="$TMP/a09.h5" run="$TMP/a09"
expect_status 0 "$COHORT" evaluate "$TMP/a09" --json
expect_equal 101419 "$(json n)"
expect_number auc '>=' 0.725
expect_number 'skip_first auc' '>=' 0.725
for kind in gaussian relu; do # rates that are for binary units
    expect_status 0 "$COHORT" train model.kind=rbm model.preset=binomial model.hidden_kind=$kind data="$TMP/a09.h5" \
        run="$TMP/a09_$kind"
    expect_status 0 "$COHORT" evaluate "$TMP/a09_$kind" --split valid --json
    expect_number log_loss '<' "$(json item_mean log_loss)"
done

section chorales
files=$data/chorales/JSB_Chorales
expect_status 0 "$COHORT" import sequences --train ${files}_train.txt.gz --valid ${files}_valid.txt --test ${files}_test.txt \
    --items 88 -o "$TMP/jsb.h5"
expect_status 0 ranks 2 "$COHORT" train jobs/rtrbm_chorales.ini data="$TMP/jsb.h5" run="$TMP/jsb" train.epochs=10 \
    train.monitor=log_loss train.valid_every=10
expect_status 0 ranks 2 "$COHORT" evaluate "$TMP/jsb" --json
expect_equal 415800 "$(json n)"
expect_number log_loss '<' 0.118
expect_number 'item_mean log_loss' '>' 0.12

section synthetic5
files=$data/synthetic5/naive_c5_q50_s4000_v0
expect_status 0 "$COHORT" import three-line --train ${files}_train1.csv.gz --valid ${files}_valid1.csv \
    --test ${files}_test.csv.gz -o "$TMP/synthetic5.h5"
expect_status 0 ranks 2 "$COHORT" train jobs/dkt_synthetic5.ini data="$TMP/synthetic5.h5" run="$TMP/synthetic5" train.epochs=8
expect_status 0 "$COHORT" evaluate "$TMP/synthetic5" --json
expect_equal 100000 "$(json n)"
expect_number 'skip_first auc' '>=' 0.815
