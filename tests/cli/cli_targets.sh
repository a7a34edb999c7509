#!/bin/bash
# One target per student: import, training, scores and predictions; DKT's penalties; unusual students and skills.
. "$(dirname "$0")/../lib/lib.sh"

# Students of 6 to 40 answers, each correct with probability squash(ability - difficulty). The score is 60 + 15 times
# the ability, with a little noise; a student passes if the ability is above 0. Some have no score.
awk 'BEGIN {
    srand(7)
    print "student,item,correct,skill,score" >"'"$TMP"'/answers.csv"
    print "student,passed" >"'"$TMP"'/passed.csv"
    for (s = 0; s < 400; s++) {
        ability = 3 * rand() - 1.5 + rand() - rand()
        score = s % 50 == 49 ? "" : sprintf("%.3f", 60 + 15 * ability + 4 * (rand() - rand()))
        n = 6 + int(35 * rand())
        for (t = 0; t < n; t++) {
            item = int(12 * rand())
            right = rand() < 1 / (1 + exp(item / 6 - 1 - 2 * ability))
            printf "s%d,i%d,%d,k%d;k%d,%s\n", s, item, right, item % 3, item % 4,
                t < n - 1 ? "" : score >"'"$TMP"'/answers.csv"
        }
        printf "s%d,%d\n", s, (ability > 0) >"'"$TMP"'/passed.csv"
    }
}'
small="model.kind=dkt model.task=final model.hidden=12 train.batch=40 train.block=8 train.epochs=12
    optimizer.method=adam optimizer.rate=0.01 optimizer.average=0.95"

section "import of targets"
expect_status 0 "$COHORT" import csv "$TMP/answers.csv" --skills skill --target score -o "$TMP/score.h5"
expect_match '^targets: 392 of 400 students$'
expect_status 0 "$COHORT" import csv "$TMP/answers.csv" --skills skill --targets "$TMP/passed.csv" -o "$TMP/passed.h5"
expect_match '^targets: 400 of 400 students$'
expect_status 0 "$COHORT" verify "$TMP/score.h5" "$TMP/passed.h5"
expect_status 0 "$COHORT" import csv "$TMP/answers.csv" --skills skill -o "$TMP/none.h5"
digest() { run "$COHORT" inspect "$TMP/$1.h5" --json; json digest; }
expect_equal 3 "$(for d in score passed none; do digest $d; done | sort -u | wc -l)" "the digest covers targets"
expect_status 0 "$COHORT" inspect "$TMP/passed.h5"
expect_match '^  targets +students: 400, range 0 to 1, mean 0\.[45]'
expect_status 0 "$COHORT" inspect "$TMP/none.h5"
expect_equal 0 "$(output | grep -c '^  targets')" "no targets, no line"
printf 's1,1\ns2,high\n' >"$TMP/bad.csv"
expect_status 3 "$COHORT" import csv "$TMP/answers.csv" --targets "$TMP/bad.csv" -o "$TMP/bad.h5"
expect_match 'bad.csv:2: expected a student, a comma or a tab, and a number'
sed '9s/,[^,]*$/,many/' "$TMP/answers.csv" >"$TMP/bad.csv"
expect_status 3 "$COHORT" import csv "$TMP/bad.csv" --target score -o "$TMP/bad.h5"
expect_match "bad.csv:9: target 'many' is not a number"
printf 'nobody,1\n' >"$TMP/bad.csv"
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" --targets "$TMP/bad.csv" -o "$TMP/bad.h5"
expect_match 'no student of the data has a target'

# train RANKS RUN WORD...
train() {
    local n=$1 run=$2
    shift 2
    # shellcheck disable=SC2086
    run ranks "$n" "$COHORT" train $small "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}
sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5 result.json) | awk '{ printf "%s ", $1 }'; }

section "scores"
for loss in squared gaussian; do
    for n in 1 2 3 5; do
        train $n $loss-$n data="$TMP/score.h5" model.loss=$loss model.center=60 model.unit=15 model.input=both model.dropout=0.2
        [ $n = 1 ] || expect_equal "$(sums $loss-1)" "$(sums $loss-$n)" "$loss: the run of 1 and $n ranks"
    done
    expect_match '^test   n [0-9]+  log-loss [0-9.]+  rmse [0-9.]+  r2 0\.[5-9]'
    expect_status 0 ranks 3 "$COHORT" evaluate "$TMP/$loss-1" --json
    expect_number r2 '>' 0.5
    expect_number 'log_loss' '<' "$(json mean_target log_loss)"
    output >"$TMP/three.json"
    expect_status 0 "$COHORT" evaluate "$TMP/$loss-1" --json
    output >"$TMP/one.json"
    expect_same "$TMP/one.json" "$TMP/three.json"
    expect_status 0 "$COHORT" evaluate "$TMP/$loss-1" --split all
    expect_match '^dkt +392 '
    expect_match '^mean of training targets +392 '
    expect_status 0 "$COHORT" predict "$TMP/$loss-1" -o "$TMP/$loss.csv"
    expect_equal 401 "$(wc -l <"$TMP/$loss.csv")" "a line for each student"
    expect_equal 8 "$(grep -c '^s[0-9]*,,[0-9.]*,' "$TMP/$loss.csv")" "students without a score are predicted too"
done
# The error of the scores matches the predicted standard deviations, within a third.
check "deviations are true" awk -F , 'NR > 1 && $2 != "" { n++; z += (($2 - $3) / $4) ^ 2 }
    END { exit !(n == 392 && z / n > 0.6 && z / n < 1.7) }' "$TMP/gaussian.csv"

section "pass or fail"
for n in 1 3; do train $n pass-$n data="$TMP/passed.h5" model.cell=gru model.after=10; done
expect_equal "$(sums pass-1)" "$(sums pass-3)" "the run of 1 and 3 ranks"
expect_status 0 "$COHORT" evaluate "$TMP/pass-1" --json
expect_number auc '>' 0.8
expect_number accuracy '>' "$(json mean_target accuracy)"

section "an update scores both runs, one after the other"
sed '/^s[0-9]*5,/s/,i3,/,i12,/' "$TMP/answers.csv" >"$TMP/later.csv"
expect_status 0 "$COHORT" import csv "$TMP/later.csv" --skills skill --target score -o "$TMP/later.h5"
expect_status 0 ranks 2 "$COHORT" update "$TMP/squared-1" --data "$TMP/later.h5" run="$TMP/later" train.epochs=2
expect_match "^$TMP/later/.*: dkt after epoch [0-9]*, on the test students of $TMP/later.h5"
expect_match "^$TMP/squared-1/.*: dkt after epoch [0-9]*, on the test students of $TMP/later.h5"
expect_match "^the updated run is $TMP/later"

section "contradictory settings"
expect_status 1 "$COHORT" train model.kind=dkt model.task=final data="$TMP/none.h5" run="$TMP/none"
expect_match 'model.task=final needs targets, and the data set has none; import it with --target COLUMN or --targets FILE'
expect_status 1 "$COHORT" train model.kind=dkt model.task=final data="$TMP/score.h5" run="$TMP/none"
expect_match 'student [0-9]+ has the target .* but model.loss=cross_entropy'
expect_status 1 "$COHORT" train model.kind=dkt model.loss=squared data="$TMP/score.h5" run="$TMP/none"
expect_match 'needs model.task=final'
expect_status 1 "$COHORT" train model.kind=dkt model.task=final model.waviness=1 data="$TMP/passed.h5" run="$TMP/none"
expect_match 'need model.task=trace'
expect_status 1 ranks 2 "$COHORT" evaluate "$TMP/pass-1" --groups
expect_match 'one target per student'

section "penalties"
smooth="model.task=trace model.input=skill model.dropout=0.2 train.epochs=6 data=$TMP/none.h5"
plus="model.reconstruction=0.1 model.waviness=0.1 model.waviness2=300"
for n in 1 2 3 5; do
    # shellcheck disable=SC2086
    train $n plus-$n $smooth $plus
    [ $n = 1 ] || expect_equal "$(sums plus-1)" "$(sums plus-$n)" "the run of 1 and $n ranks"
done
# shellcheck disable=SC2086
train 1 plain $smooth
# jumps RUN: the mean jump between successive probabilities of a student.
jumps() {
    run "$COHORT" predict "$TMP/$1" --split test -o "$TMP/p.csv"
    awk -F , 'NR > 1 { if ($1 == s) { n++; sum += $5 > p ? $5 - p : p - $5 } s = $1; p = $5 } END { print sum / n }' "$TMP/p.csv"
}
check "predictions jump less ($(jumps plus-1), without penalties $(jumps plain))" \
    awk -v a="$(jumps plus-1)" -v b="$(jumps plain)" 'BEGIN { exit !(a < 0.9 * b) }'

section "a student of 100 000 attempts, skills never seen"
# Items of one, two and three skills; only test students have seen the last skill.
awk 'BEGIN {
    srand(3)
    for (s = 0; s < 6; s++) {
        n = s == 0 ? 100000 : s == 1 ? 1 : 30
        for (t = 0; t < n; t++) {
            item = int((s == 5 ? 9 : 8) * rand())
            printf "%s,i%d,%d,%s\n", "s" s, item, rand() < 0.3 + item / 20, \
                item == 8 ? "new" : item % 3 == 0 ? "a" : item % 3 == 1 ? "a;b" : "a;b;c" >"'"$TMP"'/" (s == 5 ? "test" : "long") ".csv"
        }
    }
}'
for file in long test; do
    { echo "student,item,correct,skill"; cat "$TMP/$file.csv"; } >"$TMP/whole-$file.csv"
done
expect_status 0 "$COHORT" import csv --train "$TMP/whole-long.csv" --test "$TMP/whole-test.csv" --skills skill -o "$TMP/long.h5"
for input in item skill both; do
    expect_status 0 "$COHORT" train model.kind=dkt model.hidden=8 model.input=$input data="$TMP/long.h5" run="$TMP/long-$input" \
        train.batch=4 train.block=2 train.epochs=1 optimizer.method=adam
    expect_status 0 "$COHORT" predict "$TMP/long-$input" -o "$TMP/long-answers.csv"
    expect_equal 100121 "$(awk -F , 'NR > 1 && $5 > 0 && $5 < 1' "$TMP/long-answers.csv" | wc -l)" "probabilities, input $input"
done
