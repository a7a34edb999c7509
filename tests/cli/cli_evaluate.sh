#!/bin/bash
# evaluate with several runs: one table, paired differences, the same bytes at any number of ranks, and a sentence where
# runs cannot be compared. The differences themselves are recomputed in tests/unit/test_paired.c.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

quick=(data=class.h5 model.kind=rbm model.hidden=4 train.epochs=3 train.batch=60 train.block=6 optimizer.rate=0.003)
run "$COHORT" simulate irt --students 240 --items 20 --skills 2 --seed 1 -o class.h5
expect_status 0 "$COHORT" train run=rbm "${quick[@]}" train.seed=7
expect_status 0 "$COHORT" train run=mean data=class.h5 model.kind=average train.epochs=1

section "the same bytes at 1, 2, 3 and 5 ranks"
expect_status 0 "$COHORT" evaluate rbm mean rbm/last.h5 --json --confidence 100
output >all1.json
expect_equal "" "$(errors)" "talk beside --json"
expect_status 0 "$COHORT" evaluate rbm mean rbm/last.h5
output >all1.txt
for n in 2 3 5; do
    run ranks $n "$COHORT" evaluate rbm mean rbm/last.h5 --json --confidence 100
    output >all$n.json
    run ranks $n "$COHORT" evaluate rbm mean rbm/last.h5
    output >all$n.txt
done
expect_same all1.json all2.json all3.json all5.json
expect_same all1.txt all2.txt all3.txt all5.txt

section "the scores of each run alone"
for run in rbm mean; do
    expect_status 0 "$COHORT" evaluate $run --json --confidence 100
    place=$([ $run = rbm ] && echo 0 || echo 1)
    for key in n students log_loss auc cbd "interval low auc" "interval high log_loss"; do
        # shellcheck disable=SC2086
        expect_equal "$(json $key)" "$(json_of all1.json runs $place $key)" "$run, $key"
        # shellcheck disable=SC2086
        expect_equal "$(json item_mean $key)" "$(json_of all1.json item_mean $key)" "item mean, $key"
    done
done

expect_equal 100 "$(json interval bootstrap_samples)" "samples of one run"
expect_equal 100 "$(json_of all1.json bootstrap_samples)" "samples of several"

section "the table"
expect_match '^3 runs on the test attempts of class.h5 \(attempts: 480, students: 24, ' all1.txt
expect_match '^rbm +rbm +[0-9]+ +0\.' all1.txt
expect_match '^item mean +0\.' all1.txt
expect_match '^differences from .*, with 95 % intervals \(bootstrap samples of the students: 1000\)' all1.txt
expect_match '^in log-loss, where a difference is real if its interval excludes 0:' all1.txt
check "sorted by log-loss" sort -C -g <(sed -n '4,8p' all1.txt | awk '{ print $(NF - 4) }')
expect_status 0 "$COHORT" evaluate rbm mean --confidence 50 --skip-first
expect_match 'excluding first attempts \(attempts: 456'
expect_match '^ +97\.5 %'

section "a run and itself"
expect_status 0 "$COHORT" evaluate rbm rbm
expect_match '^  rbm has no real difference from rbm'
expect_status 0 "$COHORT" evaluate rbm rbm --json
for key in "difference 0.0" "low 0.0" "high 0.0" "better null"; do
    expect_equal "${key#* }" "$(json pairs 0 log_loss "${key% *}")" "log-loss, ${key% *}"
    expect_equal "${key#* }" "$(json pairs 0 auc "${key% *}")" "AUC, ${key% *}"
done
expect_equal 5 "$(output | grep -c '"a":')" "pairs: one of runs, and each run with each baseline"

section "one student gives no interval, few students rough ones"
for n in 3 30; do # students, of which 1 and 3 are for testing
    awk -v n=$n 'BEGIN { srand(1); print "student,item,correct"
        for (s = 0; s < n; s++) for (t = 0; t < 60; t++) print "s" s ",i" t % 7 "," (rand() < 0.3 + 0.1 * (s % 5)) }' >few.csv
    run "$COHORT" import csv few.csv -o few$n.h5
    for kind in average bkt; do
        run "$COHORT" train data=few$n.h5 run=$kind$n model.kind=$kind train.epochs=3
    done
done
expect_status 0 "$COHORT" evaluate average3 bkt3
expect_match '^note: the attempts are of 1 student, and intervals need at least 2 students'
expect_match '^differences from [a-z0-9 ]*$'
expect_no_match '[0-9] to |is better|real difference from'
expect_status 0 "$COHORT" evaluate average3 bkt3 --json
for key in "runs 0 interval" "pairs 0 log_loss low" "pairs 0 log_loss better"; do
    # shellcheck disable=SC2086
    expect_equal null "$(json $key)" "$key"
done
expect_status 0 "$COHORT" evaluate bkt3 --confidence 20
expect_match '^note: the attempts are of 1 student'
expect_no_match '97\.5 %'
expect_status 0 "$COHORT" evaluate bkt3 --confidence 20 --json
expect_equal null "$(json interval)" "the interval"
expect_status 0 "$COHORT" evaluate bkt30 --confidence 20
expect_match '^note: intervals from only 3 students are rough'
expect_match '97\.5 %'
expect_status 0 "$COHORT" auto few3.h5 run=auto3 --trials 2
expect_no_match 'worse|really|as good|[0-9] to '
expect_match '^place,.*,above_best,low,high,verdict,' auto3/leaderboard.csv
expect_no_match '(worse|as good|nan),' auto3/leaderboard.csv

section "what cannot be compared"
run "$COHORT" simulate irt --students 200 --items 20 --skills 2 --seed 2 -o other.h5
run "$COHORT" train run=other data=other.h5 model.kind=average train.epochs=1
for n in 1 2; do
    expect_status 1 ranks $n "$COHORT" evaluate rbm other
    expect_match 'other/.*h5 was trained on other.h5 \(digest .*\), but rbm on class.h5 .*--data'
done
expect_status 0 "$COHORT" evaluate rbm other --data other.h5
expect_match 'note: other.h5 is not the data set that rbm/best.h5 was trained on: .* should hold their whole log'
expect_match '^item mean and running mean: from the training attempts of other$'

section "baselines do not depend on the order of the runs"
run "$COHORT" simulate irt --students 100 --items 20 --skills 2 --seed 3 -o third.h5
for data in other third; do
    expect_status 0 "$COHORT" evaluate rbm other --data $data.h5 --json
    output >ab.json
    expect_status 0 "$COHORT" evaluate other rbm --data $data.h5 --json
    output >ba.json
    for key in baselines_of "item_mean log_loss" "running_mean log_loss" "running_mean auc"; do
        # shellcheck disable=SC2086
        expect_equal "$(json_of ab.json $key)" "$(json_of ba.json $key)" "$data, $key"
    done
done

section "baselines of a new item are those of all its stand-ins, whatever its name"
run "$COHORT" predict other -o other.csv
for name in a b c d e; do
    sed "s/,item-7,/,never-$name,/" other.csv >new.csv
    run "$COHORT" import csv new.csv --split none -o new.h5
    for key in "item_mean auc" "running_mean log_loss"; do
        expect_status 0 "$COHORT" evaluate rbm --data new.h5 --split all --json
        # shellcheck disable=SC2086
        echo "$key $(json $key)"
    done
done >of-new
expect_equal 2 "$(sort -u of-new | wc -l)" "scores"

section "scores on training attempts, unfinished runs"
expect_status 0 "$COHORT" evaluate rbm --split all
expect_match '^note: rbm/best.h5 was trained on most of these attempts'
expect_status 0 "$COHORT" evaluate rbm mean --split train
expect_match '^note: mean/.*h5 was trained on all of these attempts'
expect_status 0 "$COHORT" evaluate rbm
expect_no_match '^note:'
cp -r rbm unfinished && rm unfinished/result.json
expect_status 0 "$COHORT" evaluate unfinished
expect_match '^note: unfinished is not finished; .*used is unfinished/best.h5, after epoch'
for fold in 1 2; do
    run "$COHORT" train run=cv data=class.h5 model.kind=average train.epochs=1 train.folds=3 train.fold=$fold
    mv cv fold$fold 2>/dev/null
done
expect_status 1 "$COHORT" evaluate fold1 fold2
expect_match 'hold out different attempts .*same fold'
expect_status 0 "$COHORT" evaluate fold1 fold2 --split all
expect_status 1 "$COHORT" evaluate rbm mean --groups
expect_match 'groups is for one run'
expect_status 1 "$COHORT" evaluate rbm nowhere
expect_match 'nowhere: No such file'
expect_status 0 "$COHORT" train refit=rbm run=again
expect_status 0 "$COHORT" evaluate rbm again
expect_match 'warning: again is a refit and has learned the validation attempts too, unlike rbm'
