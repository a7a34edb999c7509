#!/bin/bash
# Refits: a finished run retrained on training and validation attempts together, with its settings and for as many
# epochs as its best; the same bits on any number of ranks and after kills; and blends of refits.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}

# answers SEED_OF_VALID SEED_OF_TEST: 90 students x 24 items, for csv imports: $TMP/train.csv, valid.csv, test.csv.
answers() {
    rm -f "$TMP"/{train,valid,test}.csv
    awk -v valid="$1" -v test="$2" -v to="$TMP/" 'BEGIN {
        srand(5)
        for (f = split("train valid test", name, " "); f > 0; f--) print "student,item,correct" > (to name[f] ".csv")
        for (s = 0; s < 90; s++)
            for (i = 0; i < 24; i++) {
                u = rand(); r = rand()
                f = u < 0.6 ? "train" : u < 0.8 ? "valid" : "test"
                p = 1 / (1 + exp(-(s % 9 - 4) / 2 + (i % 7 - 3) / 2))
                right = r < p
                if ((f == "valid" && valid != 1 || f == "test" && test != 1) && (s + i) % 3 == 0) right = !right
                print "s" s ",i" i "," right > (to f ".csv")
            }
    }'
}

# import_as NAME OPTION...
import_as() {
    expect_status 0 "$COHORT" import csv "${@:2}" --student student --item item --outcome correct --withheld --seed 2 \
        -o "$TMP/$1.h5"
}
parts=(--train "$TMP/train.csv" --valid "$TMP/valid.csv" --test "$TMP/test.csv")
rbm=(model.kind=rbm model.preset=softmax model.copies=1 model.hidden=6 optimizer.rate=0.001 optimizer.average=0.9 train.batch=30 train.block=5 train.patience=2
    train.epochs=40 train.seed=3)
ktm=(model.kind=ktm model.preset=fm model.l2_factors=0.01 train.epochs=40)
lme=(model.kind=lme model.grid=1x1 train.epochs=30)

# train NAME DATA WORD...
train() { expect_status 0 "$COHORT" train data="$TMP/$2.h5" run="$TMP/$1" "${@:3}"; }

# refit NAME: the refit of a run, next to it.
refit() { expect_status 0 "$COHORT" train refit="$TMP/$1" run="$TMP/$1_all" "${@:2}"; }

# expect_same_tensors RUN RUN, expect_other_tensors RUN RUN: tests that compare the trained tensors of two runs.
tensors() {
    rm -rf "$TMP/tensors"
    run "$COHORT" export "$TMP/$1" -o "$TMP/tensors" || fail "export $1"
    rm -f "$TMP"/tensors/table_*
    cat "$TMP"/tensors/*
}
expect_same_tensors() { check "$1 and $2 have learned the same" test "$(tensors "$1")" = "$(tensors "$2")"; }
expect_other_tensors() { check "$1 and $2 have not learned the same" test "$(tensors "$1")" != "$(tensors "$2")"; }

answers 1 1
import_as class "${parts[@]}"
head -1 "$TMP/train.csv" >"$TMP/both.csv"
sed -s 1d "$TMP/train.csv" "$TMP/valid.csv" >>"$TMP/both.csv"
import_as both --train "$TMP/both.csv" --test "$TMP/test.csv"

section 'settings and epochs'
train rbm class "${rbm[@]}"
best=$(json_of "$TMP/rbm/result.json" best_epoch)
check "a best epoch before the last ($best)" test "$best" -gt 2
refit rbm
expect_match "^refit of $TMP/rbm: $best epochs?; validation attempts added to training: [0-9]+"
expect_match "^done: $best epochs? in [0-9.]+ s\$"
expect_no_match '^(best epoch|valid)'
expect_match '^test '
expect_log "$TMP/rbm_all/log.jsonl" "$best"
check 'the running mean of the parameters is kept at the end' test -s "$TMP/rbm_all/best.h5"
expect_equal "$(sed '/^refit = /d;/^directory = /d' "$TMP/rbm/config.ini")" \
    "$(sed '/^refit = /d;/^directory = /d' "$TMP/rbm_all/config.ini")" 'all other settings'
expect_match "^refit = $TMP/rbm\$" "$TMP/rbm_all/config.ini"
expect_status 0 "$COHORT" inspect "$TMP/rbm/best.h5" --json
digest=$(json digest)
expect_status 0 "$COHORT" inspect "$TMP/rbm_all" --json
expect_equal "$digest" "$(json config refit digest)" 'names the best checkpoint of the run'
expect_equal "$best" "$(json config refit epochs)"
expect_equal '' "$(json config train refit)" 'places are not in the checkpoint'

section 'equal to training on both parts'
train rbm_both both "${rbm[@]}" train.epochs="$best"
expect_same_tensors rbm_all rbm_both
expect_other_tensors rbm_all rbm
train ktm class "${ktm[@]}"
refit ktm
train ktm_both both "${ktm[@]}" train.epochs="$(json_of "$TMP/ktm/result.json" best_epoch)"
expect_same_tensors ktm_all ktm_both
# settings that override a preset still override it
train preset class model.kind=ktm model.preset=fm model.factors=3 train.epochs=5
refit preset
expect_match '^factors = 3$' "$TMP/preset_all/config.ini"
train preset_both both model.kind=ktm model.preset=fm model.factors=3 \
    train.epochs="$(json_of "$TMP/preset/result.json" best_epoch)"
expect_same_tensors preset_all preset_both
train lme class "${lme[@]}"
refit lme
train lme_both both "${lme[@]}"
expect_same_tensors lme_all lme_both
linear=("${rbm[@]}" optimizer.schedule=linear train.epochs=20)
train linear class "${linear[@]}"
best=$(json_of "$TMP/linear/result.json" best_epoch)
check "a schedule that was left early (after $best of 20)" test "$best" -lt 20
refit linear
train linear_both both "${linear[@]}"
losses() { sed -E 's/.*("loss": [^,]*),.*/\1/' "$TMP/$1/log.jsonl" | head -n "$best"; }
expect_equal "$(losses linear_both)" "$(losses linear_all)" 'the rate falls as it did'

section 'the test part is not used'
answers 1 2
import_as other_test "${parts[@]}"
answers 2 1
import_as other_valid "${parts[@]}"
once=(model.kind=rbm model.preset=binomial model.hidden=6 optimizer.rate=0.02 train.batch=30 train.epochs=1)
for data in class other_test other_valid; do
    train "once_$data" $data "${once[@]}"
    refit "once_$data"
done
check 'the data sets differ' test "$(json_of "$TMP/once_class/result.json" test auc)" \
    != "$(json_of "$TMP/once_other_test/result.json" test auc)"
expect_same_tensors once_class once_other_test
expect_same_tensors once_class_all once_other_test_all
expect_same_tensors once_class once_other_valid
expect_other_tensors once_class_all once_other_valid_all

section 'the same bits'
run "$COHORT" simulate irt --students 400 --items 20 --seed 1 --split by-student=60/20/20 -o "$TMP/students.h5" || fail simulate
gibbs=200
if [ -n "${COHORT_QUICK:-}" ]; then gibbs=40; fi # builds that are slow
slow=(model.kind=rbm model.preset=binomial model.hidden=30 model.cd_steps=$gibbs optimizer.rate=0.0005 optimizer.average=0.9 train.batch=20
    train.block=4 train.epochs=5 run.save_minutes=0)
train slow students "${slow[@]}"
best=$(json_of "$TMP/slow/result.json" best_epoch)
refit slow
for n in 2 3 5; do
    expect_status 0 on $n "$COHORT" train refit="$TMP/slow" run="$TMP/slow_$n"
    for file in last.h5 best.h5 result.json; do expect_same "$TMP/slow_all/$file" "$TMP/slow_$n/$file"; done
done
for run in rbm ktm lme; do
    expect_status 0 on 3 "$COHORT" train refit="$TMP/$run" run="$TMP/${run}_3"
    expect_same "$TMP/${run}_all/last.h5" "$TMP/${run}_3/last.h5"
done
storm 4 "$TMP/storm" refit="$TMP/slow" run.save_minutes=0
expect_same "$TMP/slow_all/last.h5" "$TMP/storm/last.h5"
expect_same "$TMP/slow_all/best.h5" "$TMP/storm/best.h5"
expect_log "$TMP/storm/log.jsonl" "$best"
expect_status 0 on 2 "$COHORT" train refit="$TMP/slow" run="$TMP/storm"
expect_match "is already finished after $best epochs?; nothing to do\$"
expect_status 0 "$COHORT" train "$TMP/slow_all/config.ini" run="$TMP/again"
expect_same "$TMP/slow_all/last.h5" "$TMP/again/last.h5"

section 'a run like any other'
expect_status 0 "$COHORT" evaluate "$TMP/rbm_all" --json
expect_equal "$(json_of "$TMP/rbm_all/result.json" test auc | cut -c 1-10)" "$(json auc | cut -c 1-10)"
expect_status 1 "$COHORT" evaluate "$TMP/rbm_all" --split valid
expect_match "this refit of $TMP/rbm was trained on the validation attempts too"
expect_status 1 on 2 "$COHORT" predict "$TMP/rbm_all" --split valid -o "$TMP/p.csv"
expect_match 'was trained on the validation attempts too'
expect_status 0 "$COHORT" evaluate "$TMP/rbm_all" --split train --json
n_train=$(json n)
expect_status 0 "$COHORT" evaluate "$TMP/rbm" --split train --json
check 'it has more training attempts' test "$n_train" -gt "$(json n)"
expect_status 0 "$COHORT" evaluate "$TMP/rbm_all" --split valid --data "$TMP/other_valid.h5"
expect_status 0 "$COHORT" predict "$TMP/rbm_all" --split test -o "$TMP/p.csv"
expect_status 0 "$COHORT" verify "$TMP/rbm_all"

section 'folds'
train fold class "${rbm[@]}" train.folds=4 train.fold=2
refit fold
n=$(json_of "$TMP/fold_all/result.json" test n)
expect_equal "$(json_of "$TMP/fold/result.json" test n)" "$n" 'the test fold'
expect_status 0 "$COHORT" evaluate "$TMP/fold_all" --json
expect_equal "$n" "$(json n)"
train cv class "${once[@]}" train.folds=3
expect_status 1 "$COHORT" train refit="$TMP/cv" run="$TMP/bad"
expect_match 'train.refit: .*/cv: this is a cross-validation.*name one of them, such as .*/cv/fold-1'
expect_status 0 "$COHORT" train refit="$TMP/cv/fold-1" run="$TMP/cv_all"

section blends
train dkt class model.kind=dkt model.hidden=8 optimizer.method=adam optimizer.rate=0.01 train.epochs=8 train.batch=30
refit dkt
expect_status 0 "$COHORT" blend "$TMP/rbm" "$TMP/dkt" "$TMP/ktm" -o "$TMP/blend" --json
weights=$(for m in 0 1 2; do json blend weights $m; done)
valid=$(json blend valid log_loss)
check 'more than one member counts' test "$(grep -cv '^0\(\.0\)\?$' <<<"$weights")" -gt 1
expect_status 0 "$COHORT" blend "$TMP/rbm_all" "$TMP/dkt_all" "$TMP/ktm_all" -o "$TMP/blend_all" --json
expect_equal "$weights" "$(for m in 0 1 2; do json blend weights $m; done)" 'the weights of the runs'
expect_equal "$valid" "$(json blend valid log_loss)" 'the validation score of the runs'
expect_equal "$TMP/rbm" "$(json members 0 refit_of)"
for m in 0 1 2; do
    name=$(basename "$(json members $m run)")
    expect_equal "$(json_of "$TMP/$name/result.json" test auc | cut -c 1-8)" "$(json members $m test auc | cut -c 1-8)"
done
log_loss=$(json blend test log_loss)
expect_status 0 "$COHORT" evaluate "$TMP/blend_all" --json
expect_equal "${log_loss:0:9}" "$(json log_loss | cut -c 1-9)" 'predicts as it was scored'
expect_status 1 "$COHORT" evaluate "$TMP/blend_all" --split valid
expect_match 'was trained on the validation attempts too'
expect_status 0 on 3 "$COHORT" blend "$TMP/rbm_all" "$TMP/dkt_all" "$TMP/ktm_all" -o "$TMP/blend_3"
expect_match '^1 .*\(rbm, refit\) '
expect_match '^A refit was trained on the validation attempts'
expect_same "$TMP/blend_all/last.h5" "$TMP/blend_3/last.h5"

expect_status 0 "$COHORT" blend "$TMP/rbm" "$TMP/dkt_all" "$TMP/ktm" -o "$TMP/partly"
expect_match '^1 .*\(rbm\) '
expect_match '^2 .*\(dkt, refit\) '
expect_match '^All members see the validation outcomes'
expect_status 0 on 2 "$COHORT" blend "$TMP/rbm" "$TMP/dkt_all" "$TMP/ktm" -o "$TMP/partly_2" --json
expect_same "$TMP/partly/last.h5" "$TMP/partly_2/last.h5"
expect_equal "$weights" "$(for m in 0 1 2; do json blend weights $m; done)" 'the weights of the runs'
log_loss=$(json blend test log_loss)
expect_status 0 "$COHORT" evaluate "$TMP/partly" --json
expect_equal "${log_loss:0:9}" "$(json log_loss | cut -c 1-9)" 'predicts as it was scored'

section 'runs that are missing or have changed'
expect_status 0 on 2 "$COHORT" train run="$TMP/rbm_all"
expect_match 'is already finished'
mv "$TMP/rbm" "$TMP/gone"
expect_status 1 on 2 "$COHORT" blend "$TMP/rbm_all" "$TMP/dkt_all" -o "$TMP/bad"
expect_match "rbm_all is a refit of $TMP/rbm, whose predictions"
expect_status 1 "$COHORT" train refit="$TMP/rbm" run="$TMP/rbm_all"
expect_match 'No such file or directory; expected the directory of a finished run'
train rbm class "${rbm[@]}" train.seed=4
expect_status 1 "$COHORT" blend "$TMP/rbm_all" "$TMP/dkt_all" -o "$TMP/bad"
expect_match 'refit it again'
expect_status 1 on 2 "$COHORT" train refit="$TMP/rbm" run="$TMP/rbm_all"
expect_match "seed = 3.*seed = 4"
rm -rf "$TMP/rbm"
mv "$TMP/gone" "$TMP/rbm"
train changing class "${once[@]}"
refit changing
expect_status 0 "$COHORT" train data="$TMP/class.h5" run="$TMP/changing" "${once[@]}" train.epochs=4
expect_status 1 "$COHORT" train refit="$TMP/changing" run="$TMP/changing_all"
expect_match "the original run of this refit has changed: it had 'epochs = 1' and now has 'epochs = [2-4]'"

section mistakes
# bad PATTERN WORD...: tests: an error message.
bad() {
    expect_status 1 on 2 "$COHORT" train "${@:2}" run="$TMP/bad"
    expect_match "$1"
}
bad 'refit = .*missing: No such file or directory; expected the directory of a finished run' refit="$TMP/missing"
bad 'not a directory' refit="$TMP/class.h5"
mkdir "$TMP/empty"
bad 'no checkpoint in this directory' refit="$TMP/empty"
bad 'this is already a refit' refit="$TMP/rbm_all"
bad 'this is a blend, which is built from other runs' refit="$TMP/blend"
train none both "${once[@]}"
bad 'there are no validation attempts, so a refit' refit="$TMP/none"
start 1 "$COHORT" train data="$TMP/students.h5" run="$TMP/unfinished" "${slow[@]}" train.epochs=100000
until_epoch 1 "$TMP/unfinished"
kill_job all
finish
bad 'this run is not finished \(epochs so far: [0-9]+\)' refit="$TMP/unfinished"
bad "model.hidden = 7: a refit keeps all settings, and .*/rbm was trained with 'hidden = 6'" refit="$TMP/rbm" model.hidden=7
bad 'train.epochs = 7: a refit keeps all settings' refit="$TMP/rbm" train.epochs=7
bad 'train.folds = 3: a refit keeps all settings' refit="$TMP/rbm" train.folds=3
bad 'was trained with rbm, and a refit keeps all settings' refit="$TMP/rbm" model.kind=dkt
bad 'unknown setting model.hiden' refit="$TMP/rbm" model.hiden=7
bad 'a refit needs the same data' refit="$TMP/rbm" data="$TMP/students.h5"
flip "$TMP/changing/last.h5"
expect_status 3 "$COHORT" train refit="$TMP/changing" run="$TMP/bad"
expect_status 1 "$COHORT" train refit="$TMP/rbm" run="$TMP/rbm/"
expect_match 'run= and refit= both name'
expect_status 1 "$COHORT" train refit="$TMP/rbm"
expect_match 'run= is not set'
printf '[train]\nrefit = %s\n[model]\nkind = rbm\nhidden = {3, 6}\n' "$TMP/rbm" >"$TMP/sweep.ini"
expect_status 1 "$COHORT" sweep "$TMP/sweep.ini" data="$TMP/class.h5" run="$TMP/bad"
expect_match 'use it with .cohort train. or .cohort submit. only'
check 'nothing half-made' test ! -e "$TMP/bad"

section 'settings allowed with refit'
cp "$TMP/class.h5" "$TMP/moved.h5"
expect_status 0 "$COHORT" train refit="$TMP/rbm" run="$TMP/moved" data="$TMP/moved.h5" "${rbm[@]}" run.save_minutes=2
expect_same "$TMP/rbm_all/last.h5" "$TMP/moved/last.h5"
mv "$TMP/moved.h5" "$TMP/moved_again.h5"
expect_status 1 "$COHORT" train refit="$TMP/rbm" run="$TMP/moved"
expect_match 'moved.h5: No such file'
expect_status 0 "$COHORT" train refit="$TMP/rbm" run="$TMP/moved" data="$TMP/moved_again.h5"
expect_match 'is already finished'
expect_status 1 "$COHORT" train run="$TMP/moved" data="$TMP/students.h5"
expect_match 'a refit needs the same data'
expect_status 1 "$COHORT" train run="$TMP/moved" data="$TMP/moved_again.h5" optimizer.rate=7
expect_match 'optimizer.rate = 7: a refit keeps all settings'
expect_status 0 "$COHORT" submit refit="$TMP/rbm" run="$TMP/job" --ranks 2 --dry-run
expect_match "train.refit=.*/rbm"
