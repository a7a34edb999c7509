#!/bin/bash
# cohort report on several runs, cross-validations, sweeps and directories of auto: ranked by score, with the paired
# differences of `cohort evaluate`, bounded pictures, the same bytes at any number of ranks, and what cannot be compared.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/pages.sh

# in_order FILE WORD...: the rows of the first table begin with these words, from the top down.
in_order() {
    local file=$1 rows
    shift
    rows=$(sed -n '/<tbody>/,/<\/tbody>/p;/<\/tbody>/q' "$file" | sed -n 's/.*<th scope="row">\([^<]*\).*/\1/p' | sed 's/ $//')
    expect_equal "$(printf '%s\n' "$@")" "$rows" "rows of $(basename "$file")"
}

run "$COHORT" simulate irt --students 300 --items 20 --skills 3 --seed 1 -o "$TMP/class.h5" || fail "simulate"
run "$COHORT" simulate irt --students 200 --items 20 --skills 3 --seed 2 -o "$TMP/other.h5" || fail "simulate"
class="data=$TMP/class.h5"
train vae "$class" model.kind=vae optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=12
train ktm "$class" model.kind=ktm train.epochs=4
train bkt "$class" model.kind=bkt train.epochs=10
for h in 1 2 3 4 5 6 7 8 9; do
    train "rbm$h" "$class" model.kind=rbm "model.hidden=$h" train.epochs=2 "train.seed=$h"
done
train foreign "data=$TMP/other.h5" model.kind=bkt train.epochs=5

section "several runs"
cd "$TMP" || fail "no directory"
expect_status 0 "$COHORT" report rbm1 bkt vae ktm -o several.html
expect_status 0 ranks 3 "$COHORT" report rbm1 bkt vae ktm -o several3.html
expect_same several.html several3.html
cd "$OLDPWD" || fail "no directory"
page=$TMP/several.html
check_sound "$page"
in_order "$page" vae ktm bkt 'running mean' 'item mean' rbm1
# Four panels under each of five headings, and one caption for the four of them.
expect_equal 20 "$(grep -c '<h4>' "$page")" "panels"
expect_equal 1 "$(grep -c 'Each dot groups answers' "$page")" "one caption for all panels"
expect_match '<h3>Validation log-loss by epoch</h3>' "$page"
expect_match '>running mean</text>' "$page"
expect_match 'The run rbm1 is no better than either simple rule' "$page"
# In words: the baselines are where their scores are, and the last of all is compared with everyone.
expect_equal "vae ktm bkt running mean item mean" \
    "$(sed -n '/<h3>In words/,/<\/ul>/p' "$page" | sed -n 's/^<li><b>\([^<]*\)<.*/\1/p' | paste -sd ' ')" "runs and baselines in words"
expect_equal 5 "$(sed -n '/<h3>In words/,/<\/ul>/p' "$page" | grep -c rbm1)" "the worst run in words"
expect_no_match 'vae (is|are|and).* better than (predicting|each)' "$page"
# Links to the sections; what the models have learned is folded.
expect_equal "$(grep -c '<h2 id=' "$page")" "$(grep -c '<li><a href="#s[0-9]*">' "$page")" "a link to each section"
expect_equal 4 "$(sed -n '/What the models have learned<.h2>/,/<h2/p' "$page" | grep -c '^<details><summary><h3>')" "a part for each model"
run "$COHORT" report "$TMP/vae" -o "$TMP/vae.html" || fail "report on vae"
expect_no_match 'class="lead warn"' "$TMP/vae.html"

section "paired differences are those of evaluate"
run "$COHORT" evaluate "$TMP"/{ktm,bkt,rbm1,vae} --json || fail "evaluate"
pairs=$(python3 - "$LIB_OUT" <<'END'
import json, sys
for pair in json.load(open(sys.argv[1]))["pairs"]:
    names = [pair["a"].split("/")[-1], pair["b"].split("/")[-1]]
    if names[1] == "vae":
        for metric, digits in (("log_loss", 5), ("auc", 4)):
            d = pair[metric]
            print("".join("%+.*f " % (digits, d[key]) for key in ("difference", "low", "high")).replace("-", "−"), names[0])
END
)
expect_equal 6 "$(wc -l <<<"$pairs")" "three runs minus the best, in two metrics"
while read -r value low high name; do
    grep -A1 "<th scope=\"row\">$name</th>" "$page" >"$TMP/row" || true
    expect_match "<td>${value/+/\\+}<small>${low/+/\\+} to ${high/+/\\+}</small></td>" "$TMP/row"
done <<<"$pairs"

section "a run has the same intervals on every page"
# score_cell FILE VALUE: the score with its interval.
score_cell() { grep -o '<td>0\.[0-9]\{5\}<small>0[^<]*<' "$1" | grep -F "<td>$2<" | sort -u; }
run "$COHORT" evaluate "$TMP/vae" --json || fail "evaluate"
value=$(printf %.5f "$(json log_loss)")
check "the log-loss has an interval" test -n "$(score_cell "$TMP/vae.html" "$value")"
expect_equal "$(score_cell "$page" "$value")" "$(score_cell "$TMP/vae.html" "$value")" "vae alone and among others"

section "another metric"
run "$COHORT" evaluate "$TMP"/{rbm1,bkt,vae,ktm} --json || fail "evaluate"
mapfile -t order < <(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
rows = [(r["run"].split("/")[-1], r["auc"]) for r in d["runs"]]
rows += [("item mean", d["item_mean"]["auc"]), ("running mean", d["running_mean"]["auc"])]
print("\n".join(name for name, auc in sorted(rows, key=lambda row: -row[1])))' "$LIB_OUT")
expect_status 0 "$COHORT" report "$TMP"/{rbm1,bkt,vae,ktm} --metric auc -o "$TMP/auc.html"
in_order "$TMP/auc.html" "${order[@]}"
expect_match '<h3>Validation AUC by epoch</h3>' "$TMP/auc.html"
expect_status 1 "$COHORT" report "$TMP/vae" --metric beauty -o "$TMP/no.html"

section "twelve runs"
expect_status 0 "$COHORT" report "$TMP"/{vae,ktm,bkt} "$TMP"/rbm? -o "$TMP/twelve.html"
expect_status 0 ranks 3 "$COHORT" report "$TMP"/{vae,ktm,bkt} "$TMP"/rbm? -o "$TMP/twelve3.html"
expect_same "$TMP/twelve.html" "$TMP/twelve3.html"
check_sound "$TMP/twelve.html"
expect_equal 14 "$(sed -n '/<tbody>/,/<\/tbody>/p;/<\/tbody>/q' "$TMP/twelve.html" | grep -c '<tr')" "rows of twelve runs, two baselines"
expect_equal 40 "$(grep -c '<h4>' "$TMP/twelve.html")" "panels of the best eight"
expect_match 'The table of scores has all 12 runs; the best 8 are drawn' "$TMP/twelve.html"
# The scores of a run do not depend on how many are given.
run "$COHORT" evaluate "$TMP/rbm4" --json || fail "evaluate"
expect_match "<td>$(printf %.5f "$(json log_loss)")<" "$TMP/twelve.html"

section "runs that cannot be compared"
expect_status 0 ranks 2 "$COHORT" report "$TMP/rbm1" "$TMP/foreign" -o "$TMP/mixed.html"
check_sound "$TMP/mixed.html"
expect_match 'were scored on different answers' "$TMP/mixed.html"
expect_match 'give one data set to score them all on with --data' "$TMP/mixed.html"
expect_no_match 'Which differences are more than chance' "$TMP/mixed.html"
expect_status 0 "$COHORT" report "$TMP/rbm1" "$TMP/foreign" --data "$TMP/class.h5" -o "$TMP/unmixed.html"
expect_match 'Which differences are more than chance' "$TMP/unmixed.html"

section "a cross-validation"
train cv "$class" model.kind=ktm train.folds=4 train.epochs=3
expect_status 0 "$COHORT" report "$TMP/cv" -o "$TMP/cv.html"
expect_status 0 ranks 3 "$COHORT" report "$TMP/cv" -o "$TMP/cv3.html"
expect_same "$TMP/cv.html" "$TMP/cv3.html"
check_sound "$TMP/cv.html"
expect_match 'Each fold holds out different students.*<code>cohort report cv/fold-1</code>' "$TMP/cv.html"
expect_no_match '`' "$TMP/cv.html"
# Without validation during training, there are no curves to show.
expect_match '<h2 id="s[0-9]*">Training: validation scores by epoch</h2>' "$TMP/cv.html"
train cvl "$class" model.kind=lme train.folds=3
expect_status 0 "$COHORT" report "$TMP/cvl" -o "$TMP/cvl.html"
check_sound "$TMP/cvl.html"
expect_no_match 'Training: validation' "$TMP/cvl.html"
in_order "$TMP/cv.html" fold-1 fold-2 fold-3 fold-4 'mean over folds' 'standard deviation' 'item mean' 'running mean'
# The data are those of fold 1, in its own splits; the test split of the data set, 30 of 300 students, is in no fold.
# The same on the page of a fold.
expect_status 0 "$COHORT" report "$TMP/cv/fold-2" -o "$TMP/fold.html"
expect_match '<p>Fold 1 of 4; ' "$TMP/cv.html"
expect_match '<p>Fold 2 of 4; ' "$TMP/fold.html"
for page in cv fold; do
    expect_equal "300 30" "$(sed -n '/>split</,/<\/table>/p' "$TMP/$page.html" | sed 's/,//g' | awk -F '<[^>]*>' '
        /scope="row"/ { n += $5; students += $7 } /not used by any fold/ { unused = $7 } END { print students, unused }')" "$page: students"
done
cp "$TMP/cv/result.json" "$LIB_OUT"
expect_match "mean <b>log-loss is $(printf '%.5f ± %.5f' "$(json test log_loss mean)" "$(json test log_loss spread)")</b>" "$TMP/cv.html"
expect_match "mean over folds</th><td>$(printf %.4f "$(json test auc mean)")</td>" "$TMP/cv.html"
mv "$TMP/cv/fold-3" "$TMP/hidden"
expect_status 0 "$COHORT" report "$TMP/cv" -o "$TMP/part.html"
expect_match 'The cross-validation is not finished: this page shows the 3 of 4 folds' "$TMP/part.html"
mv "$TMP/hidden" "$TMP/cv/fold-3"
expect_status 1 ranks 2 "$COHORT" report "$TMP/vae" "$TMP/cv" -o "$TMP/no.html"
expect_match 'cv: this is a cross-validation, which has a page of its own; give it alone'

section "a sweep"
bad=("run=$TMP/bad" "$class" model.kind=rbm model.hidden_kind=gaussian 'model.hidden={2,3}' 'optimizer.rate={0.001,0.01,1e6}'
    train.epochs=2)
run "$COHORT" sweep "${bad[@]}" --pack 1/2 || fail "sweep"
expect_status 0 "$COHORT" report "$TMP/bad" -o "$TMP/half.html"
check_sound "$TMP/half.html"
expect_match 'The sweep is not finished: [0-9] of 6 trials are done, 0 running, 3 waiting' "$TMP/half.html"
run "$COHORT" sweep "${bad[@]}" || fail "sweep"
expect_status 0 "$COHORT" report "$TMP/bad" -o "$TMP/sweep.html"
expect_status 0 ranks 3 "$COHORT" report "$TMP/bad" -o "$TMP/sweep3.html"
expect_same "$TMP/sweep.html" "$TMP/sweep3.html"
check_sound "$TMP/sweep.html"
expect_match '<p>2 trials failed' "$TMP/sweep.html"
expect_match '<td class="name">.*diverged' "$TMP/sweep.html"
expect_no_match 'The sweep is not finished' "$TMP/sweep.html"
expect_match '<h4>model.hidden</h4>' "$TMP/sweep.html"
expect_match '<h4>optimizer.rate</h4>' "$TMP/sweep.html"
mapfile -t order < <(tail -n +2 "$TMP/bad/leaderboard.csv" | cut -d, -f2)
in_order "$TMP/sweep.html" "${order[@]}"
best=${order[0]}
expect_match "cohort report bad/trials/$best -o best.html" "$TMP/sweep.html"
run "$COHORT" evaluate "$TMP/bad/trials/$best" --json || fail "evaluate"
expect_match "<td>$(printf %.5f "$(json log_loss)")<small>" "$TMP/sweep.html"
# The amber box is above the leaderboard; the curves have the settings as names.
expect_equal 1 "$(sed '/<h2>/q' "$TMP/sweep.html" | grep -c 'no better than each student')" "the warning at the top"
expect_match '<text [^>]*>hidden [23], rate 0\.[0-9]+</text>' "$TMP/sweep.html"
expect_match 'looks a little too good, because it was picked for it; trust the test score' "$TMP/sweep.html"
# Without its data, a sweep still has its scores.
mv "$TMP/class.h5" "$TMP/away.h5"
expect_status 0 ranks 2 "$COHORT" report "$TMP/bad" -o "$TMP/away.html"
expect_match 'note: the best trial is not shown in detail'
expect_match 'only its scores are shown' "$TMP/away.html"
mv "$TMP/away.h5" "$TMP/class.h5"
# Trials that are cross-validations.
run "$COHORT" sweep "run=$TMP/folds" "$class" model.kind=ktm 'train.epochs={1,2}' train.folds=3 || fail "sweep"
expect_status 0 "$COHORT" report "$TMP/folds" -o "$TMP/folds.html"
check_sound "$TMP/folds.html"
expect_match '<small>± 0\.' "$TMP/folds.html"
expect_match 'It is a cross-validation, so its page shows its folds' "$TMP/folds.html"

section "a directory of auto"
run "$COHORT" auto "$TMP/class.h5" "run=$TMP/auto" --trials 6 || fail "auto"
expect_status 0 "$COHORT" report "$TMP/auto" -o "$TMP/auto.html"
check_sound "$TMP/auto.html"
chosen=$(sed -n 's/^kind = //p' "$TMP/auto/best/config.ini")
for row in "chosen: $chosen" ktm; do
    expect_match "<tr><th scope=\"row\">$row" "$TMP/auto.html"
done
expect_match 'Use <code>auto/best</code>' "$TMP/auto.html"
expect_match '( as well on these answers| by more than chance explains)' "$TMP/auto.html"
expect_same "$TMP/auto/report.html" "$TMP/auto.html"
expect_equal "$(($(wc -l <"$TMP/auto/leaderboard.csv") - 1))" \
    "$(sed -n '/<tbody>/,/<\/tbody>/p;/<\/tbody>/q' "$TMP/auto.html" | grep -c '<tr')" "the rows of the leaderboard"
# A choice that is a link to a model is one row.
mv "$TMP/auto/best" "$TMP/auto/kept"
ln -s models/ktm "$TMP/auto/best"
expect_status 0 "$COHORT" report "$TMP/auto" -o "$TMP/link.html"
expect_match '<p>cohort auto chose <b>ktm</b>, by the validation answers: no other model has weight' "$TMP/link.html"
expect_match '<th scope="row">chosen: ktm</th>' "$TMP/link.html"
expect_no_match '<th scope="row">ktm' "$TMP/link.html"
rm "$TMP/auto/best"
run "$COHORT" blend "$TMP/auto/models/ktm" "$TMP/auto/models/vae" -o "$TMP/auto/best" || fail "blend"
expect_status 0 "$COHORT" report "$TMP/auto" -o "$TMP/blend.html"
expect_match '<p>cohort auto chose <b>a blend of ktm \([0-9]+.%\) and vae \([0-9]+.%\)</b>, by the validation answers. Use' "$TMP/blend.html"
expect_match '<th scope="row">chosen: blend</th>' "$TMP/blend.html"
# The table of differences is about the same pairs as the head: those with the choice.
expect_match 'minus chosen: blend, what cohort auto chose' "$TMP/blend.html"
expect_no_match 'minus ktm|the best run\.' "$TMP/blend.html"
expect_equal "$(find "$TMP/auto/models" -name '*-2' -exec basename {} ';' | sort)" \
    "$(sed -n 's/^<p>\([a-z]*-2\): the second-best setting of .*, by validation\.<\/p>$/\1/p' "$TMP/blend.html" | sort)" "second models"
rm -r "$TMP/auto/best"
mv "$TMP/auto/kept" "$TMP/auto/best"
expect_match 'Which differences are more than chance' "$TMP/auto.html"
expect_status 1 "$COHORT" report "$TMP/auto" "$TMP/vae" -o "$TMP/no.html"
expect_equal "" "$(find "$TMP" -maxdepth 1 -name 'no.html*')" "nothing is left behind"
