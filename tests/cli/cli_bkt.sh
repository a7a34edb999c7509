#!/bin/bash
# Bayesian knowledge tracing on the command line: the same bits at any number of ranks and after stops and kills, a
# loss that never rises, tables, nothing learned from random outcomes, errors for impossible input, and its results on
# ASSISTments 2009.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}

# Long tails, unknown outcomes, hidden attempts, items with one skill and with several.
run "$COHORT" simulate grockit --students 240 --items 50 --seed 3 -o "$TMP/tails.h5" || fail "simulate grockit"
run "$COHORT" simulate bkt --students 300 --skills 5 --forget 0.03 --seed 3 -o "$TMP/class.h5" || fail "simulate bkt"

# train RANKS RUN DATA WORD...: a run.
train() {
    local n=$1 run=$2 data=$3
    shift 3
    run on "$n" "$COHORT" train "data=$TMP/$data.h5" model.kind=bkt model.forget=no model.items=no train.batch=60 \
        train.block=7 train.epochs=30 train.valid_every=1 "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}

sum() { sha256sum <"$TMP/$1/last.h5"; }
result() { json_of "$TMP/$1/result.json" "${@:2}"; }

# expect_falling RUN: a test: no epoch's loss exceeds the previous one, except in the last digit of a float.
expect_falling() {
    local rises
    rises=$(sed -E 's/.*"loss": ([-+.e0-9]+),.*/\1/' "$TMP/$1/log.jsonl" |
        awk 'NR > 1 && $1 > last * (1 + 2e-7) { print NR ": " last " to " $1 } { last = $1 }')
    expect_equal '' "$rises" "epochs in which the loss of $1 rises"
    check "$1 has learned something" awk 'match($0, /"loss": [0-9.]+/) { loss = substr($0, RSTART + 8, RLENGTH - 8) }
        NR == 1 { first = loss } END { exit !(NR > 5 && loss < first - 0.001) }' "$TMP/$1/log.jsonl"
}

section "the same bits"
# same NAME RANKS DATA WORD...: a test for each number of ranks.
same() {
    local name=$1 ranks=$2 data=$3 n
    shift 3
    for n in 1 $ranks; do
        train $n "$name-$n" "$data" "$@"
        [ $n = 1 ] || expect_equal "$(sum "$name-1")" "$(sum "$name-$n")" "the checkpoints of 1 and $n ranks, $name"
    done
    expect_falling "$name-1"
}
hard="model.forget=yes model.items=yes model.restarts=4 model.explore=6"
same standard 3 tails
# shellcheck disable=SC2086
same all "2 3 5" tails $hard
same items 2 class model.trace=item model.prior=0
same skills 5 class model.forget=yes model.several=weakest train.folds=3 train.fold=2
# shellcheck disable=SC2086
COHORT_SHARED=no train 3 sent tails $hard
expect_equal "$(sum all-1)" "$(sum sent)" "the checkpoints of 1 rank and of 3 that send"
for isa in plain avx2 avx512; do
    COHORT_ISA=$isa run "$COHORT" --version || continue
    # shellcheck disable=SC2086
    COHORT_ISA=$isa train 1 "isa-$isa" tails $hard
    expect_equal "$(sum all-1)" "$(sum "isa-$isa")" "the checkpoints of the best instruction set and of $isa"
    COHORT_ISA=$isa train 1 "isa-standard-$isa" tails
    expect_equal "$(sum standard-1)" "$(sum "isa-standard-$isa")" "likewise with standard options"
done
expect_equal 4 "$(sha256sum "$TMP"/{standard,all,items,skills}-1/last.h5 | cut -d ' ' -f 1 | sort -u | wc -l)" "they differ"
# shellcheck disable=SC2086
train 1 seed tails $hard train.seed=2
check "another seed, other starts" test "$(sum seed)" != "$(sum all-1)"

section "stopped and killed"
words=(model.forget=yes model.items=yes model.restarts=80 model.explore=150 train.epochs=200 train.valid_every=1 run.save_minutes=0)
train 1 whole tails "${words[@]}"
expect_match 'epoch 1: loss [0-9.]+, valid cbd 0'
start 2 "$COHORT" train "data=$TMP/tails.h5" model.kind=bkt train.batch=60 train.block=7 "${words[@]}" "run=$TMP/cut"
until_epoch 3 "$TMP/cut"
kill -USR1 "$JOB"
finish
expect_equal 85 "$ENDED" "exit code after USR1"
start 1 "$COHORT" train "data=$TMP/tails.h5" model.kind=bkt train.batch=60 train.block=7 "${words[@]}" "run=$TMP/cut"
until_epoch 60 "$TMP/cut"
pause 200
kill_job all
finish
train 3 cut tails "${words[@]}"
expect_match '^continuing'
expect_equal "$(sum whole)" "$(sum cut)" "the checkpoints of a run in one piece and of one in three"
train 1 first tails model.tolerance=1e-4 train.epochs=8
train 2 first tails model.tolerance=1e-4 train.epochs=60
train 1 second tails model.tolerance=1e-4 train.epochs=60
expect_equal "$(sum second)" "$(sum first)" "settled skills, in one piece and in two"

section "tables"
train 1 tables class train.epochs=300 model.forget=yes model.items=yes
expect_match '^done: [0-9]+ epochs in [0-9.]+ s, converged'
expect_status 0 "$COHORT" inspect "$TMP/tables"
expect_match '^skill +p0 +learn +guess +slip +forget +attempts +log_likelihood$'
expect_match '^skill-5 +0\.[0-9]+ '
expect_match '^item-20 +0\.[0-9]+ +0\.[0-9]+$'
expect_match '^all +0\.[0-9]+ '
expect_status 0 "$COHORT" inspect "$TMP/tables" --truth --json
for rate in p0 learn guess slip; do
    expect_match "\"name\": \"$rate\""
done
for n in 1 3; do
    expect_status 0 on $n "$COHORT" export "$TMP/tables" -o "$TMP/exported-$n"
done
expect_same "$TMP"/exported-{1,3}/table_skills.csv
expect_equal 'skill,p0,learn,guess,slip,forget,attempts,log_likelihood' "$(head -1 "$TMP/exported-1/table_skills.csv")"
expect_equal 6 "$(wc -l <"$TMP/exported-1/table_skills.csv")" "lines of table_skills.csv"
check "chances, with guess + slip < 1" awk -F , 'NR > 1 { for (c = 2; c <= 6; c++) if (!($c > 0 && $c < 1)) exit 1
    if ($4 + $5 >= 1) exit 1 }' "$TMP/exported-1/table_skills.csv"
# With as many skills as items, rows are still named correctly, and logits are labelled as logits.
run "$COHORT" simulate bkt --students 40 --skills 4 --items 4 --seed 2 -o "$TMP/square.h5" || fail "simulate bkt"
train 1 square square train.epochs=3 model.items=yes
expect_status 0 "$COHORT" export "$TMP/square" -o "$TMP/square-tables"
expect_equal 'skill,logit_p0 skill-1' "$(cut -d , -f 1-2 "$TMP/square-tables/logit_p0.csv" | sed '2s/,.*//' | head -2 |
    paste -sd ' ')" "the first line and row of logit_p0.csv"
expect_equal 'item,logit_item_guess item-1' "$(sed '2s/,.*//' "$TMP/square-tables/logit_item_guess.csv" | head -2 |
    paste -sd ' ')" "the first line and row of logit_item_guess.csv"
check "the table's probabilities are those of the logits" awk -F , 'NR == FNR { logit[$1] = $2; next }
    FNR > 1 && ($2 - 1 / (1 + exp(-logit[$1])))^2 > 1e-10 { exit 1 }' "$TMP/square-tables/logit_p0.csv" \
    "$TMP/square-tables/table_skills.csv"
expect_status 0 "$COHORT" export "$TMP/square" --tensor learn -o "$TMP/learn.csv"
expect_equal 'skill,logit_learn' "$(head -1 "$TMP/learn.csv")" "columns of one tensor"
expect_status 0 "$COHORT" inspect "$TMP/standard-1"
expect_no_match '^items$' # there is no such table without model.items

section "shuffled outcomes"
for shuffle in '' --shuffle-outcomes; do
    # shellcheck disable=SC2086
    run "$COHORT" simulate bkt --students 800 --skills 2 --items 30 --attempts 40 --seed 5 --split by-student=60/10/30 \
        $shuffle -o "$TMP/random$shuffle.h5" || fail "simulate"
done
train 1 chance random--shuffle-outcomes model.items=yes
check "nothing is learned where there is nothing ($(result chance test auc))" \
    awk -v n="$(result chance test n)" -v auc="$(result chance test auc)" 'BEGIN {
        off = auc - 0.5; exit !(n > 3000 && off * off < 16 / (12 * n * 0.3 * 0.7)) }'
train 1 true random
check "what was not shuffled is learned ($(result true test auc))" \
    awk -v auc="$(result true test auc)" 'BEGIN { exit !(auc > 0.68) }'

section "items without skills, skills without attempts, new skills"
printf '4\n1,2,3,1\n1,0,1,1\n3\n2,2,1\n0,1,1\n2\n3,3\n0,1\n' >"$TMP/train.csv"
printf '3\n3,1,2\n1,0,1\n' >"$TMP/test.csv"
import() { run "$COHORT" import three-line --train "$TMP/train.csv" --test "$TMP/test.csv" "$@" || fail "import"; }
import -o "$TMP/bare.h5"
for n in 1 2; do
    train $n bare-$n bare
done
expect_equal "$(sum bare-1)" "$(sum bare-2)" "without skills, items are traced: 1 and 2 ranks"
expect_status 0 "$COHORT" inspect "$TMP/bare-1"
expect_match '^item +p0 +learn +guess +slip +attempts +log_likelihood$'
printf '1,0,0\n0,1,0\n0,0,0\n' >"$TMP/q.csv" # item 3 in no skill, skill 3 of no item
import --q-matrix "$TMP/q.csv" -o "$TMP/partly.h5"
train 2 partly partly
expect_match "^warning: items without a skill: 1 of 3, for example '3'; they are not learned from"
expect_match '^note: skills without training attempts: 1 of 3; they get the mean rates of all skills'
expect_equal 1 "$(errors | grep -c '^warning: items')" 'says so once'
expect_status 0 "$COHORT" export "$TMP/partly" -o "$TMP/partly-tables"
expect_equal "$(sed -n '2s/^all,//p' "$TMP/partly-tables/table_common.csv")" \
    "$(sed -n 4p "$TMP/partly-tables/table_skills.csv" | cut -d , -f 2-5)" "the third skill has the common rates"
printf '1,0,0,0\n0,0,0,1\n0,0,0,0\n' >"$TMP/q-new.csv" # item 2 in a skill that the model has never heard of
import --q-matrix "$TMP/q-new.csv" -o "$TMP/new.h5"
expect_status 1 "$COHORT" predict "$TMP/partly" --data "$TMP/new.h5" --strict --split test -o "$TMP/new.csv"
expect_match "item '2' has skills '4', but '2' in the model's training data"
expect_status 0 "$COHORT" predict "$TMP/partly" --split test -o "$TMP/new.csv"
expect_equal "$(awk -F , 'NR == 2 { p = $2 + 0; l = $3; g = $4; s = $5; printf "%.5f", p * (1 - s) + (1 - p) * g }' \
    "$TMP/partly-tables/table_common.csv")" "$(awk -F , 'NR == 2 { printf "%.5f", $5 }' "$TMP/new.csv")" \
    "what is predicted for an item in no skill"

section "impossible input"
# refused PATTERN DATA WORD...: a test on 2 ranks: one error message.
refused() {
    local pattern=$1 data=$2
    shift 2
    expect_status 1 on 2 "$COHORT" train "data=$TMP/$data.h5" model.kind=bkt "run=$TMP/none" "$@"
    expect_match "$pattern"
    expect_equal 1 "$(errors | grep -c '^cohort: ')" 'says so once'
}
refused '^cohort: model.trace = skill, but the data set has no skills; import it with' bare model.trace=skill
refused '^cohort: model.items = yes, but the data set has no skills: every item already has its own guess' bare model.items=yes
refused '^cohort: model.items = yes, but model.trace = item: ' class model.items=yes model.trace=item
refused '^cohort: model.most_guess = 0.7 and model.most_slip = 0.4 must add up to less than 1' class model.most_guess=0.7
printf '0,0\n0,0\n0,0\n' >"$TMP/q-none.csv"
import --q-matrix "$TMP/q-none.csv" -o "$TMP/none.h5"
refused 'none of its items belongs to any of its 2 skills, so there is nothing to trace' none
printf 'student,item,outcome,skill\na,x,1,\nb,x,0,\n' >"$TMP/unskilled.csv"
printf 'student,item,outcome,skill\nc,y,1,k\n' >"$TMP/skilled.csv"
run "$COHORT" import csv --train "$TMP/unskilled.csv" --test "$TMP/skilled.csv" --student student --item item \
    --outcome outcome --skills skill -o "$TMP/unskilled.h5" || fail "import"
refused 'no student has a training attempt that this model can learn from: the outcome must be known and, if' unskilled

section "ASSISTments 2009"
data=../shared/data/assist2009/assist2009_updated
(
    [ -f ${data}_train1.csv.gz ] || skip "there is no ../shared/data/assist2009"
    run "$COHORT" import three-line --train ${data}_train1.csv.gz --valid ${data}_valid1.csv.gz \
        --test ${data}_test.csv.gz -o "$TMP/a09.h5" || fail "import"
    expect_status 0 "$COHORT" train jobs/bkt_assist2009.ini "data=$TMP/a09.h5" "run=$TMP/a09"
    check "AUC with forgetting: $(result a09 test auc)" \
        awk -v auc="$(result a09 test auc)" 'BEGIN { exit !(auc > 0.717) }'
    expect_falling a09
    expect_status 0 "$COHORT" train jobs/bkt_assist2009.ini "data=$TMP/a09.h5" "run=$TMP/a09-plain" model.forget=no
    check "AUC without: $(result a09-plain test auc)" \
        awk -v auc="$(result a09-plain test auc)" 'BEGIN { exit !(auc > 0.710) }'
    expect_falling a09-plain
)
