#!/bin/bash
# Updates: a finished run trained further on a later log with new students, answers and items; the model starts where the
# run ended; the same bits on any number of ranks and after kills; what cannot be updated is refused.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}
cd "$TMP" || exit 70

# log STUDENTS ITEMS: the answers of the first students to the first items.
log() {
    awk -v students="$1" -v items="$2" 'BEGIN {
        print "student,item,correct,time,skill"
        for (s = 0; s < 160; s++)
            for (t = 0; t < 30; t++) {
                srand(s * 100 + t); rand(); i = int(rand() * 24); u = rand()
                p = 1 / (1 + exp(-(s % 9 - 4) / 2 + (i % 7 - 3) / 2 - t / 20))
                if (s < students && i < items) print "s" s ",i" i "," (u < p) "," t ",k" int(i / 4)
            }
    }'
}
log 100 16 >old.csv
log 160 24 >whole.csv
expect_status 0 "$COHORT" import csv old.csv -o old.h5 --split by-last
expect_status 0 "$COHORT" import csv whole.csv -o whole.h5 --split by-last
small=(train.epochs=4 train.batch=20 train.block=4 train.patience=0) # 5 blocks, for as many ranks
# shellcheck disable=SC2034 # used by name
rbm=(model.hidden=5) dkt=(model.hidden=6) rtrbm=(model.hidden=6) vae=(model.dimensions=2) average=()
old=$(sed -n 's/.*digest \([0-9a-f]*\)).*/\1/p' <("$COHORT" import csv old.csv -o again.h5 --split by-last 2>&1))
check "the digest of the old data" test -n "$old"

for kind in rbm dkt rtrbm vae average; do
    section "$kind starts where the run ended"
    declare -n options=$kind
    expect_status 0 "$COHORT" train data=old.h5 run="$kind" model.kind="$kind" "${options[@]}" "${small[@]}"
    expect_status 0 "$COHORT" update "$kind" --data whole.h5 run="$kind-0" train.epochs=0
    expect_match "^update of $kind: items so far 16, new 8; skills so far 4, new 2; the new run is $kind-0"
    expect_match "^the updated run is $kind-0"
    expect_status 0 "$COHORT" predict "$kind" --data old.h5 -o before.csv
    expect_status 0 "$COHORT" predict "$kind-0" --data old.h5 -o after.csv
    check "predictions" test -s before.csv
    expect_same before.csv after.csv
    expect_status 0 "$COHORT" predict "$kind-0" --data whole.h5 --strict -o whole.csv.gz

    section "$kind learns the new items"
    expect_status 0 "$COHORT" update "$kind" --data whole.h5
    expect_match "^  $kind(-whole)?( is better than [^;]*|.* no real difference from .*)$kind(-whole)?($|[,;])"
    expect_no_match "^  $kind is better than [^;]*$kind-whole"
    expect_status 0 "$COHORT" inspect "$kind-whole/last.h5" --json
    expect_match "$old"
    expect_status 0 on 3 "$COHORT" update "$kind" --data whole.h5 run="$kind-3"
    expect_same "$kind-whole/last.h5" "$kind-3/last.h5"
done

section "a stopped update continues"
storm 3 "$TMP/storm" update=dkt data=whole.h5 run.save_minutes=0
expect_same dkt-whole/last.h5 storm/last.h5
expect_status 0 "$COHORT" train run=dkt-whole
expect_match 'is already finished'

section "a continued update takes what is given: epochs, patience and paths"
cp -r dkt-whole raised
cp whole.h5 moved.h5
expect_status 1 "$COHORT" update dkt --data old.h5 run=raised
expect_match 'raised/last.h5: this run was trained on other data than old.h5 has now .*choose another run='
expect_same dkt-whole/last.h5 raised/last.h5
expect_status 1 "$COHORT" train run=raised optimizer.rate=77
expect_match "now 'rate = 77' is requested; continue it with the same settings"
expect_status 1 "$COHORT" update dkt --data whole.h5 run=raised model.hidden=9
expect_match 'model.hidden = 9: an update keeps the model'
expect_status 0 "$COHORT" update dkt --data moved.h5 run=raised train.epochs=6
expect_match '^done: 6 epochs'
expect_match '^file = moved.h5$' raised/config.ini
expect_status 0 "$COHORT" update dkt --data whole.h5 run=six train.epochs=6
expect_same six/last.h5 raised/last.h5

section "an update of an update"
expect_status 0 "$COHORT" update dkt-whole --data old.h5 run=back
expect_match '^update of dkt-whole: items so far 24, new 0'
expect_status 0 "$COHORT" predict back --data whole.h5 --strict -o back.csv
expect_status 0 "$COHORT" inspect back/last.h5 --json
expect_match "data = $old [0-9a-f]{32}|\"$old [0-9a-f]{32}\""

section "kinds that are solved for are fitted to the new data alone"
for kind in ktm bkt lme; do
    expect_status 0 "$COHORT" train data=old.h5 run="$kind" model.kind="$kind"
    expect_status 0 "$COHORT" update "$kind" --data whole.h5
    expect_no_match 'forgets'
    grep -v '^\(file\|directory\|update\|seed\) = ' "$kind/config.ini" >same.ini
    expect_status 0 "$COHORT" train same.ini data=whole.h5 run="$kind-same"
    expect_status 0 "$COHORT" predict "$kind-whole" -o one.csv
    expect_status 0 "$COHORT" predict "$kind-same" -o two.csv
    expect_same one.csv two.csv
    expect_status 0 "$COHORT" update "$kind-whole" --data old.h5 run="$kind-back"
    expect_match "8 items of $kind-whole have no attempts in old.h5, and $kind forgets them"
done

section "the numbers of groups, which differ between a model and a file"
for name in old whole; do
    awk -F, -v OFS=, '{ print $0, NR == 1 ? "group" : "g" 9 - int(substr($5, 2) / 2) }' $name.csv >groups.csv
    expect_status 0 "$COHORT" import csv groups.csv --group group -o "groups-$name.h5" --split by-last
done
expect_status 0 "$COHORT" train data=groups-old.h5 run=groups model.kind=bkt
expect_status 0 "$COHORT" update groups --data groups-whole.h5 run=groups-new
expect_match '^2 runs on the test attempts of groups-whole.h5'

section "without validation: as many epochs as led to the best"
expect_status 0 "$COHORT" import csv whole.csv -o train.h5 --split none
expect_status 0 "$COHORT" update rbm --data train.h5
expect_match "^done: $(json_of rbm/result.json best_epoch) epoch"
expect_no_match 'differences from|no effect'
expect_match 'train.h5 has neither test nor validation attempts, so rbm-train and rbm are not compared'

section "held-out students that the run was trained on"
expect_status 0 "$COHORT" import csv whole.csv -o students.h5 --split by-student=50/25/25
expect_status 0 "$COHORT" update rbm --data students.h5
expect_match 'students.h5 holds out [0-9]+ students that rbm was trained on, so scores on them are too good'
expect_status 0 "$COHORT" update rbm --data whole.h5 run=rbm-again
expect_no_match 'too good'

section "held-out attempts that the run was trained on: another split of the first data"
cut -d , -f 1-3,5 whole.csv >clockless.csv
cp clockless.csv clockless-old.csv
echo s999,i1,1,k0 >>clockless.csv
for name in '' clockless; do
    expect_status 0 "$COHORT" import csv "${name:-old}${name:+-old}.csv" -o "first$name.h5" --split by-student
    expect_status 0 "$COHORT" import csv "${name:-whole}.csv" -o "then$name.h5" --split by-last
    expect_status 0 "$COHORT" train data="first$name.h5" run="first$name" model.kind=average
    expect_status 0 "$COHORT" update "first$name" data="then$name.h5"
    expect_match "^warning: then$name.h5 holds out [1-9][0-9]* attempts that first$name was trained on"
done

section "the same data, a name that was used before, another run"
expect_status 0 "$COHORT" update first --data first.h5 run=same
expect_match '^warning: first.h5 is the data set that first was trained on'
cp whole.h5 today.h5
expect_status 0 "$COHORT" update first --data today.h5
expect_status 0 "$COHORT" inspect first-today
expect_match '^  update of +first, trained on first.h5'
cp train.h5 today.h5
expect_status 1 "$COHORT" update first --data today.h5
expect_match 'first-today/last.h5: this run was trained on other data than today.h5 has now .*remove first-today first'
expect_status 1 "$COHORT" update first --data whole.h5 run=rbm
expect_match 'run=rbm is another run .rbm., not this update of first; choose another run='
expect_status 2 "$COHORT" update first --data whole.h5 data=old.h5
expect_match '--data whole.h5 and data=old.h5 are two data sets'

section "what is refused"
expect_status 2 "$COHORT" update
expect_status 2 "$COHORT" update rbm
expect_match '--data NEW.h5 is missing'
expect_status 2 "$COHORT" update rbm dkt --data whole.h5
expect_status 1 "$COHORT" update missing --data whole.h5
expect_match 'train.update = missing: No such file'
expect_status 1 "$COHORT" update rbm --data whole.h5 run=rbm
expect_match 'run= and update= both name rbm'
expect_status 1 "$COHORT" update rbm --data whole.h5 run=wide model.hidden=9
expect_match 'model.hidden = 9: an update keeps the model'
check "nothing is left behind" test ! -e wide
expect_status 1 "$COHORT" update rbm --data whole.h5 run=wide train.folds=5
expect_match 'train.folds = 5: an update is trained once, on the split of the new data; omit it'
expect_status 0 "$COHORT" update rbm --data whole.h5 run=rbm-0 train.epochs=0 train.folds=0
expect_status 1 "$COHORT" train update=rbm refit=rbm data=whole.h5 run=both
expect_match 'refit= and update= are both set'
expect_status 1 "$COHORT" train refit=rbm-0 run=again
expect_match 'this is an update, and a refit starts from scratch'
expect_status 0 "$COHORT" blend rbm dkt -o blend
expect_status 1 "$COHORT" update blend --data whole.h5
expect_match 'this is a blend, which is built from other runs; update those'
sed 's/,k0$/,k5/' whole.csv >other.csv
expect_status 0 "$COHORT" import csv other.csv -o other.h5 --split by-last

section "other skills of known items"
expect_status 0 "$COHORT" update average --data other.h5
expect_match "note: other.h5: item 'i[0-9]+' has skills 'k5', but 'k0' in .* .items that differ: 4.; the model's are used"
expect_status 0 "$COHORT" predict average-other -o tags.csv
expect_status 0 "$COHORT" update bkt --data other.h5
expect_match "note: other.h5: item 'i[0-9]+' has skills 'k5', but 'k0' in .*; those of the new data are used"

section "new data without skills: known items keep the model's, new ones are named"
cut -d, -f1-4 whole.csv >bare.csv
cut -d, -f1-4 old.csv >bare-old.csv
expect_status 0 "$COHORT" import csv bare.csv -o bare.h5 --split by-last
expect_status 0 "$COHORT" import csv bare-old.csv -o bare-old.h5 --split by-last
expect_status 0 "$COHORT" import csv old.csv -o old-two.h5 --split by-time=80/10/10
expect_status 0 "$COHORT" import csv bare-old.csv -o bare-two.h5 --split by-time=80/10/10
expect_status 0 "$COHORT" train data=old.h5 run=pfa model.kind=ktm model.preset=pfa
expect_status 0 "$COHORT" train data=old.h5 run=skills model.kind=dkt model.hidden=6 model.input=skill "${small[@]}"
for kind in pfa bkt lme average skills rbm; do
    expect_status 0 "$COHORT" update "$kind" --data old-two.h5
    expect_no_match '^note: (new )?items without'
    expect_status 0 on 3 "$COHORT" update "$kind" --data bare-two.h5
    expect_match "^update of $kind: .*skills so far 4, new 0"
    expect_no_match '^note: new items without'
    for run in "$kind-old-two" "$kind-bare-two"; do
        expect_status 0 "$COHORT" export "$run" -o "$run-tensors"
        expect_status 0 "$COHORT" predict "$run" --data whole.h5 -o "$run.csv"
    done
    check "$kind: parameters and tables" diff -r -x '*.json' "$kind-old-two-tensors" "$kind-bare-two-tensors"
    expect_same "$kind-old-two.csv" "$kind-bare-two.csv"
    expect_status 0 "$COHORT" update "$kind" --data bare.h5
    case $kind in
        lme | rbm) expect_no_match '^note: new items without' ;; # do not use skills
        *) expect_match "^note: new items without skills in bare.h5: 8 of 8, for example 'i16'; the model, which uses skills, .*--skills" ;;
    esac
done
check "pfa: features of skills" grep -q '^wins_skill,' pfa-bare-two-tensors/table_features.csv
check "bkt: skills" grep -q '^k3,' bkt-bare-two-tensors/table_skills.csv

section "new data without skills, of which the model knows no item"
sed '2,$s/,i/,j/' bare.csv >unknown.csv
expect_status 0 "$COHORT" import csv unknown.csv -o unknown.h5 --split by-last
for kind in pfa bkt; do
    expect_status 1 on 2 "$COHORT" update "$kind" --data unknown.h5
    expect_match "^cohort: unknown.h5: no item has skills, here or in $kind, but the model uses skills; import the data with --skills"
    check "nothing is left behind" test ! -e "$kind-unknown"
done
expect_status 0 "$COHORT" update lme --data unknown.h5

section "a model without skills stays one"
for kind in average vae; do
    declare -n options=$kind
    expect_status 0 "$COHORT" train data=bare-old.h5 run="plain-$kind" model.kind="$kind" "${options[@]}" "${small[@]}"
    expect_status 0 "$COHORT" update "plain-$kind" --data bare.h5
    expect_status 0 "$COHORT" update "plain-$kind" --data whole.h5
    expect_match '^update of plain-.*skills so far 0, new 0'
    for run in "plain-$kind-bare" "plain-$kind-whole"; do
        expect_status 0 "$COHORT" predict "$run" --data whole.h5 -o "$run.csv"
    done
    expect_same "plain-$kind-bare.csv" "plain-$kind-whole.csv"
done

section "refits, blends and continued runs keep to their own data"
expect_status 1 "$COHORT" train refit=pfa data=bare-old.h5 run=refit
expect_match 'a refit needs the same data'
expect_status 1 "$COHORT" blend pfa bkt --data bare-old.h5 -o other-blend
expect_match 'bare-old.h5'
expect_status 1 "$COHORT" train run=pfa data=bare-old.h5
expect_match 'pfa/last.h5: this run was trained on other data than bare-old.h5 has now'
cp pfa-bare-two/last.h5 ended.h5
expect_status 0 "$COHORT" train run=pfa-bare-two
expect_match 'is already finished'
expect_same ended.h5 pfa-bare-two/last.h5
expect_status 0 "$COHORT" blend pfa-bare-two bkt-bare-two -o bare-blend
expect_status 0 "$COHORT" blend pfa-old-two bkt-old-two -o skills-blend
for run in bare-blend skills-blend; do
    expect_status 0 "$COHORT" predict "$run" --data whole.h5 -o "$run.csv"
done
expect_same bare-blend.csv skills-blend.csv

section "items, skills and a common feature in one panel"
expect_status 0 "$COHORT" train data=old.h5 run=both model.kind=dkt model.hidden=6 model.input=both model.common=yes "${small[@]}"
expect_status 0 "$COHORT" update both --data whole.h5 run=both-0 train.epochs=0
expect_no_match 'starts anew'
expect_status 0 "$COHORT" predict both --data old.h5 -o before.csv
expect_status 0 "$COHORT" predict both-0 --data old.h5 -o after.csv
expect_same before.csv after.csv

section "the report of an update"
expect_status 0 "$COHORT" report rbm-0 -o update.html
expect_match '<pre>cohort update rbm --data whole.h5 run=runs/again</pre>' update.html
expect_no_match 'settings.ini' update.html
