#!/bin/bash
# A model stores its items' skills and groups: data without them get the same predictions and updates, on any number of
# ranks, and data that contradict them are refused.
. "$(dirname "$0")/../lib/lib.sh"

cp tests/golden/v1/answers.csv "$TMP"
cd "$TMP" || exit 70
columns=(--student student --item item --outcome correct --time time --factors teacher --seed 1)
# data NAME FILE OPTION...
data() {
    run "$COHORT" import csv "$2" "${columns[@]}" --split by-student=60/20/20 -o "$1.h5" "${@:3}" || fail "import $1"
}
data full answers.csv --skills skills --group unit
data bare answers.csv --skills none
# q3 lacks a skill; q1 is in the other unit; items come in another order, and one of them has no skill
sed 's/adding;taking/adding/' answers.csv >less.csv
sed 's/\(,q1,.*\),u2,/\1,u1,/' answers.csv >moved.csv
(head -1 answers.csv && tail -n +2 answers.csv | tac | sed 's/,q5,\(.*\),taking,u2,/,q5,\1,,,/') >gaps.csv
data less less.csv --skills skills --group unit
data moved moved.csv --skills skills --group unit
data gaps gaps.csv --skills skills --group unit

# train NAME WORD...
train() {
    run "$COHORT" train data=full.h5 run="$1" train.epochs=4 train.batch=6 train.block=2 "${@:2}" || fail "train $1"
}
adam=(optimizer.method=adam optimizer.rate=0.1)
train dkt model.kind=dkt model.hidden=4 model.input=skill "${adam[@]}"
train dkt_both model.kind=dkt model.hidden=4 model.input=both "${adam[@]}"
train rtrbm model.kind=rtrbm model.hidden=2 model.structure=skills "${adam[@]}"
train vae model.kind=vae model.hidden=4 "${adam[@]}"
train lme model.kind=lme "model.factors=item group skill teacher"
train bkt model.kind=bkt
train ktm model.kind=ktm "model.features=item skill previous_skill wins_skill:log fails_skill"
train rbm model.kind=rbm model.hidden=3
run "$COHORT" blend rbm ktm dkt --method logistic -o blend || fail "blend"

for run in dkt dkt_both rtrbm vae lme bkt ktm blend rbm; do
    section "$run: data without skills and groups"
    expect_status 0 "$COHORT" predict "$run" -o with.csv
    expect_status 0 ranks 3 "$COHORT" predict "$run" --data bare.h5 -o without.csv
    expect_same with.csv without.csv
    expect_status 0 "$COHORT" predict "$run" --data gaps.h5 -o gaps-answers.csv
    expect_equal "$(cut -d, -f1-7 with.csv | sort)" "$(cut -d, -f1-7 gaps-answers.csv | sort)" "items in another order, one without a skill"

    section "$run: data that contradict the model"
    if [ "$run" = rbm ]; then # which knows nothing of skills
        expect_status 0 "$COHORT" predict rbm --data less.h5 -o less-answers.csv
        expect_same with.csv less-answers.csv
        expect_status 0 "$COHORT" evaluate rbm --data moved.h5 --groups
        expect_match "u1"
        continue
    fi
    expect_status 0 ranks 2 "$COHORT" predict "$run" --data less.h5 -o less-answers.csv
    expect_match "^note: less.h5: item 'q3' has skills 'adding', but 'adding', 'taking' in the model's training data; the model's are used"
    expect_same with.csv less-answers.csv
    expect_status 1 ranks 2 "$COHORT" predict "$run" --data less.h5 --strict -o never.csv
    expect_match "^cohort: less.h5: item 'q3' has skills 'adding', but 'adding', 'taking' in the model's training data; import"
    check "nothing is written" test ! -e never.csv
    if [ "$run" = lme ]; then
        expect_status 0 "$COHORT" predict lme --data moved.h5 -o moved-answers.csv
        expect_match "^note: moved.h5: item 'q1' is in group 'u1', but in 'u2' in the model's training data; the model's are used"
        expect_same with.csv moved-answers.csv
        expect_status 1 "$COHORT" evaluate lme --data moved.h5 --strict
        expect_match "^cohort: moved.h5: item 'q1' is in group 'u1', but in 'u2' in the model's training data; import"
    else
        expect_status 0 "$COHORT" predict "$run" --data moved.h5 -o moved-answers.csv
        expect_same with.csv moved-answers.csv
    fi
done

section "a model without skills"
run "$COHORT" train data=bare.h5 run=plain model.kind=ktm train.epochs=2 || fail "train plain"
expect_status 0 "$COHORT" predict plain -o with.csv
expect_status 0 "$COHORT" predict plain --data full.h5 -o more.csv
expect_same with.csv more.csv

# The same log at a later day, with another split: with skills; without; with those of q1 alone.
awk -F, -v OFS=, 'NR > 1 && $2 != "q1" { $5 = $6 = "" } { print }' answers.csv >mixed.csv
# later NAME FILE OPTION...
later() {
    run "$COHORT" import csv "$2" "${columns[@]}" --split by-last -o "$1.h5" "${@:3}" || fail "import $1"
}
later later answers.csv --skills skills --group unit
later later-bare answers.csv --skills none
later later-mixed mixed.csv --skills skills --group unit
for run in dkt dkt_both rtrbm vae lme bkt ktm rbm; do
    section "$run: an update on data without skills and groups"
    expect_status 0 "$COHORT" update "$run" --data later.h5 run="$run-with"
    expect_no_match '^note: (new )?items without'
    expect_status 0 "$COHORT" predict "$run-with" -o with.csv
    expect_status 0 ranks 3 "$COHORT" update "$run" --data later-bare.h5 run="$run-bare"
    expect_no_match '^note: new items without'
    expect_status 0 "$COHORT" predict "$run-bare" -o without.csv
    expect_same with.csv without.csv
    case $run in
        lme | bkt | ktm) ;; # which are fitted to the new data alone
        *) continue ;;
    esac
    expect_status 0 "$COHORT" update "$run" --data later-mixed.h5 run="$run-mixed"
    expect_match "^note: items without skills in later-mixed.h5: 6 of 7; those of $run are used"
    [ "$run" != lme ] || expect_match "^note: items without groups in later-mixed.h5: 6 of 7; those of lme are used"
    expect_status 0 "$COHORT" predict "$run-mixed" -o without.csv
    expect_same with.csv without.csv
done
