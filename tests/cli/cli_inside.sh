#!/bin/bash
# What a report shows of the inside of a model: items in a plane, hidden units of students at the epochs of snapshots,
# influence between skills. The pages have the same bytes at any number of ranks, snapshots have the same bytes after
# kills and leave the result as it is, and any name is harmless.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh

train() {
    local run=$1
    shift
    run "$COHORT" train "run=$TMP/$run" "$@" || fail "training $run"
}

# figures FILE: the titles of the pictures of the inside, one per line.
figures() { grep -oE '<h3>(Hidden units of students,|Items in the plane|Influence between [a-z]+:|Strongest)[^<]*' "$1" | sed 's/<h3>//'; }

# expect_ranks NAME: writes the page of a run and tests that three ranks write the same bytes.
expect_ranks() {
    expect_status 0 "$COHORT" report "$TMP/$1" -o "$TMP/$1.html"
    expect_status 0 ranks 3 "$COHORT" report "$TMP/$1" -o "$TMP/$1-3.html"
    expect_same "$TMP/$1.html" "$TMP/$1-3.html"
}

run "$COHORT" simulate irt --students 200 --items 20 --skills 3 --seed 1 -o "$TMP/class.h5" || fail "simulate"
class=data=$TMP/class.h5
rbm=("$class" model.kind=rbm model.hidden=5 optimizer.rate=0.02 train.epochs=12)
adam="optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=3"

section "snapshots"
train rbm "${rbm[@]}" run.snapshots='0 1 3 10'
train plain "${rbm[@]}"
expect_equal "epoch-0.h5 epoch-1.h5 epoch-10.h5 epoch-3.h5" "$(cd "$TMP/rbm/snapshots" && echo *)" "the snapshots"
expect_same "$TMP/rbm/best.h5" "$TMP/plain/best.h5"
expect_same "$TMP/rbm/last.h5" "$TMP/plain/last.h5"
check "no snapshots unless they are asked for" test ! -e "$TMP/plain/snapshots"
expect_match '^snapshots = 0 1 3 10$' "$TMP/rbm/config.ini"
expect_status 0 "$COHORT" verify "$TMP/rbm"
expect_match 'snapshots/epoch-10.h5: ok, a checkpoint'
flip "$TMP/rbm/snapshots/epoch-10.h5"
expect_status 3 "$COHORT" verify "$TMP/rbm"
expect_status 3 ranks 2 "$COHORT" report "$TMP/rbm" -o "$TMP/damaged.html"
expect_match 'snapshots/epoch-10.h5: the checkpoint is damaged'
check "nothing is left behind" test ! -e "$TMP/damaged.html"
train bkt "$class" model.kind=bkt train.epochs=3
cp "$TMP/bkt/last.h5" "$TMP/rbm/snapshots/epoch-10.h5"
expect_status 3 "$COHORT" report "$TMP/rbm" -o "$TMP/damaged.html"
expect_match 'snapshots/epoch-10.h5: this is a checkpoint of another run'
rm "$TMP/rbm/snapshots/epoch-10.h5"

section "bad settings"
for bad in '3 1' '1 1' '-1' '1,3' 'all' '1.5' '99999999999'; do
    expect_status 1 "$COHORT" train "${rbm[@]}" "run=$TMP/bad" "run.snapshots=$bad"
    expect_match "run.snapshots = $bad: expected epochs in increasing order"
done
expect_status 1 ranks 2 "$COHORT" train "${rbm[@]}" "run=$TMP/bad" "run.snapshots=2 1"
check "nothing is left behind" test ! -e "$TMP/bad"

section "snapshots and kills"
slow=("$class" model.kind=rbm model.hidden=8 model.cd_steps=2000 train.epochs=6 train.batch=40 run.save_minutes=0
    run.snapshots='0 1 2 3 4 5 6')
expect_status 0 on 2 "$COHORT" train "${slow[@]}" run="$TMP/whole"
best=$(json_of "$TMP/whole/result.json" best_epoch)
expect_same "$TMP/whole/snapshots/epoch-$best.h5" "$TMP/whole/best.h5"
MOMENT=200 storm 5 "$TMP/storm" "${slow[@]}"
check "it was killed ($N_KILLED times)" test "$N_KILLED" -ge 1
for n in 0 1 2 3 4 5 6; do
    expect_same "$TMP/whole/snapshots/epoch-$n.h5" "$TMP/storm/snapshots/epoch-$n.h5"
done
expect_same "$TMP/whole/best.h5" "$TMP/storm/best.h5"
# What is ahead of the checkpoint from which a run continues is removed: other settings may lead elsewhere.
cp -r "$TMP/whole" "$TMP/ahead"
train ahead "${slow[@]}" train.epochs=7 run.snapshots=7
cp "$TMP/ahead/snapshots/epoch-7.h5" "$TMP/whole/snapshots/epoch-7.h5"
cp "$TMP/rbm/last.h5" "$TMP/whole/snapshots/epoch-12.h5"
echo precious | tee "$TMP/whole/snapshots/epoch-9.h5" >"$TMP/whole/snapshots/epoch-008.h5"
train whole "${slow[@]}" train.epochs=7
check "a snapshot of an epoch to come is gone" test ! -e "$TMP/whole/snapshots/epoch-7.h5"
check "a snapshot of another run is kept" test -e "$TMP/whole/snapshots/epoch-12.h5"
expect_equal precious "$(cat "$TMP/whole/snapshots/epoch-9.h5")" "another file is kept"
expect_status 1 on 2 "$COHORT" train run="$TMP/whole" train.epochs=9 run.snapshots='0 8 9'
expect_match 'snapshots/epoch-9.h5: this is not a snapshot of this run, and run.snapshots = 0 8 9 would replace it'
mv "$TMP/whole/snapshots" "$TMP/outside"
ln -s "$TMP/outside" "$TMP/whole/snapshots"
expect_status 1 on 2 "$COHORT" train run="$TMP/whole" train.epochs=9
expect_match 'whole/snapshots: this is a link, and snapshots are kept in the run itself'
check "files behind a link are kept" test -e "$TMP/outside/epoch-12.h5"
train plain "${rbm[@]}" train.epochs=13 run.snapshots='3 13'
expect_match 'note: run.snapshots: epoch 3 was trained before, so it gets no snapshot$'
train plain "${rbm[@]}" train.epochs=14 run.snapshots='0 3 13'
expect_match 'note: run.snapshots: epochs 0 3 were trained before, so they get no snapshots$'
expect_equal epoch-13.h5 "$(ls "$TMP/plain/snapshots")" "the epoch to come has one"

section "an rbm"
expect_ranks rbm
expect_equal "Hidden units of students, before training
Hidden units of students, after epoch 1
Hidden units of students, after epoch 3
Hidden units of students, after epoch 12, this model
Items in the plane of their two main components
Influence between skills: percentage points
Strongest influences between skills" "$(figures "$TMP/rbm.html" | sed "s/epoch $(json_of "$TMP/rbm/result.json" best_epoch),/epoch 12,/")" \
    "the pictures"
expect_match 'component 1 \([0-9]+.% of variance\)' "$TMP/rbm.html"
expect_match 'class="ink named".*item-[0-9]+</text>' "$TMP/rbm.html"
# A model whose best epoch is followed by others stands at its place in time.
train early "$class" model.kind=rbm model.hidden=5 optimizer.rate=3 train.epochs=8 train.patience=0 run.snapshots='0 1 6 7 8'
expect_status 0 "$COHORT" report "$TMP/early" -o "$TMP/early.html"
epochs=$(figures "$TMP/early.html" | sed -n 's/^Hidden.*after epoch \([0-9]*\).*/\1/p')
expect_equal "$(sort -n <<<"$epochs")" "$epochs" "panels in the order of their epochs"
check "the best epoch, $(json_of "$TMP/early/result.json" best_epoch), is not the last" \
    test "$(json_of "$TMP/early/result.json" best_epoch)" -lt 8
expect_match "after epoch $(json_of "$TMP/early/result.json" best_epoch), this model" "$TMP/early.html"
# The last panel is `export --hidden`, student by student: 24 of 200, ordered by their share of right answers.
expect_status 0 "$COHORT" report "$TMP/rbm" -o "$TMP/again.html" --figures "$TMP/figures"
panel=$(ls "$TMP"/figures/*this-model*.csv)
expect_equal 120 "$(grep -c right "$panel")" "24 students and 5 units"
run "$COHORT" export "$TMP/rbm" --hidden -o "$TMP/hidden.csv" || fail "export"
expect_equal "$(awk -F, 'NR > 1 && int(int((NR - 2) * 24 / 200 + 0.999999) * 200 / 24) == NR - 2 { printf "%.4f\n", $2 }' "$TMP/hidden.csv" | sort)" \
    "$(awk -F, '$2 == 1 { printf "%.4f\n", $3 }' "$panel" | sort)" "the probabilities of export --hidden"
# Before training all are near one half; in the end some are not.
expect_equal 0 "$(awk -F, 'NR > 1 && ($3 < 0.4 || $3 > 0.6)' "$TMP"/figures/*before-training*.csv | wc -l)" "near one half"
check "certain in the end" test "$(awk -F, 'NR > 1 && ($3 < 0.1 || $3 > 0.9)' "$panel" | wc -l)" -gt 10
expect_match '^series,x,y,low,high,weight,name$' "$TMP"/figures/*plane*.csv
expect_equal 21 "$(cat "$TMP"/figures/*plane*.csv | wc -l)" "20 items"
train two "${rbm[@]}" model.hidden=2
expect_status 0 "$COHORT" report "$TMP/two" -o "$TMP/two.html"
expect_match 'Items in the plane of two hidden units' "$TMP/two.html"
expect_match 'weight of hidden unit 1' "$TMP/two.html"
expect_match 'run.snapshots=0 1 3 10' "$TMP/two.html"
# Of many units the first are drawn, and all are counted.
train many "${rbm[@]}" model.hidden=45 train.epochs=2
expect_status 0 "$COHORT" report "$TMP/many" -o "$TMP/many.html"
expect_match 'Units that separate students: [0-9]+ of 45\.' "$TMP/many.html"

section "models of sequences"
# shellcheck disable=SC2086
{
    train dkt "$class" model.kind=dkt model.hidden=8 $adam
    train rtrbm "$class" model.kind=rtrbm model.structure=skills model.hidden=4 model.skill_units=1 $adam
    train vae "$class" model.kind=vae $adam
    train lme "$class" model.kind=lme train.epochs=5
}
for kind in dkt rtrbm; do
    expect_ranks $kind
    expect_match 'Influence between skills: percentage points' "$TMP/$kind.html"
    expect_match 'Strongest influences between skills' "$TMP/$kind.html"
done
expect_match 'Learned graph between skills' "$TMP/rtrbm.html"
run "$COHORT" report "$TMP/dkt" -o "$TMP/dkt.html" --figures "$TMP/dkt-figures" || fail "figures"
expect_equal 10 "$(cat "$TMP"/dkt-figures/*influence-between*.csv | wc -l)" "3 x 3 numbers"

section "models without such pictures"
for kind in bkt lme vae; do
    expect_status 0 "$COHORT" report "$TMP/$kind" -o "$TMP/$kind.html"
    expect_no_match 'Influence between' "$TMP/$kind.html"
    expect_no_match 'Hidden units of students' "$TMP/$kind.html"
done
expect_no_match 'Items in the plane' "$TMP/bkt.html" "$TMP/lme.html"
expect_match 'Items in the plane' "$TMP/vae.html"

section "several runs"
expect_status 0 "$COHORT" report "$TMP/rbm" "$TMP/dkt" -o "$TMP/several.html"
expect_equal 2 "$(figures "$TMP/several.html" | grep -c 'Items in the plane')" "a plane for each"
expect_no_match 'Hidden units of students' "$TMP/several.html"

section "names with any characters, groups, no skills"
awk 'BEGIN {
    srand(3)
    name[0] = "<script>alert(1)</script>"; name[1] = "a \"\"quoted\"\" & '"'"'other'"'"'"; name[2] = "</style></title>"
    name[3] = "%s%n"; name[4] = "</text></svg>"
    print "student,item,group,outcome"
    for (s = 0; s < 60; s++)
        for (i = 0; i < 10; i++)
            printf "s%d,\"%d %s\",\"%s\",%d\n", s, i, name[i % 5], name[(i + 1) % 5], rand() < (i % 5 + s % 5) / 9
}' >"$TMP/nasty.csv"
run "$COHORT" import csv "$TMP/nasty.csv" --group group --split by-student=60/20/20 -o "$TMP/nasty.h5" || fail "import"
train nasty data="$TMP/nasty.h5" model.kind=rbm model.hidden=3 train.epochs=20 optimizer.rate=0.05
expect_ranks nasty
expect_no_match '<script|</text></svg><|alert\(1\)</s' "$TMP/nasty.html"
expect_match '&lt;script&gt;' "$TMP/nasty.html"
expect_match 'Colours are groups' "$TMP/nasty.html"
expect_match 'Influence between items' "$TMP/nasty.html"

section "help"
expect_status 0 "$COHORT" help report
expect_match 'influence between skills'
expect_match 'run\.snapshots'
expect_status 0 "$COHORT" help train
expect_match '^ +(run\.)?snapshots'
