#!/bin/bash
# cohort report: a page for every kind of model with the same bytes at any number of ranks, valid HTML that fetches
# nothing, the numbers of `cohort evaluate`, names with any characters, and wrong input.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/pages.sh

run "$COHORT" simulate irt --students 300 --items 20 --skills 3 --seed 1 -o "$TMP/class.h5" || fail "simulate"
adam="optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=3"
class="data=$TMP/class.h5"
# shellcheck disable=SC2086
{
    train rbm $class model.kind=rbm model.hidden=5 train.epochs=4
    train rtrbm $class model.kind=rtrbm model.structure=skills model.hidden=4 model.skill_units=1 $adam
    train dkt $class model.kind=dkt model.hidden=8 $adam
    train vae $class model.kind=vae $adam
    train lme $class model.kind=lme train.epochs=10
    train bkt $class model.kind=bkt train.epochs=10
    train ktm $class model.kind=ktm model.l2=3 train.epochs=5
}
run "$COHORT" blend "$TMP/rbm" "$TMP/lme" -o "$TMP/blend" || fail "blend"
run "$COHORT" predict "$TMP/rbm" --split all -o "$TMP/all.csv" || fail "predict"
# One target per student: the share of correct answers, or whether it exceeds one half.
awk -F, 'NR > 1 { n[$1]++; right[$1] += $4 }
    END { for (s in n) { print s "," right[s] / n[s] >"'"$TMP"'/scores.csv"; print s "," (right[s] > n[s] / 2) >"'"$TMP"'/passed.csv" } }' \
    "$TMP/all.csv"
for target in scores passed; do
    run "$COHORT" import csv "$TMP/all.csv" --student student --item item --outcome outcome --targets "$TMP/$target.csv" \
        --split by-student=70/15/15 -o "$TMP/$target.h5" || fail "import of $target"
done
final="model.kind=dkt model.task=final model.hidden=6"
# shellcheck disable=SC2086
{
    train passed data="$TMP/passed.h5" $final $adam
    train scores data="$TMP/scores.h5" $final model.loss=gaussian $adam
}

section "every kind of model"
for kind in rbm rtrbm dkt vae lme bkt ktm blend passed scores; do
    expect_status 0 "$COHORT" report "$TMP/$kind" -o "$TMP/$kind.html"
    expect_match "^wrote $TMP/$kind.html$"
done
check_sound "$TMP"/*.html
expect_match '<h3>Learned graph between skills</h3>' "$TMP/rtrbm.html"
expect_match 'class="arrow"' "$TMP/rtrbm.html"
expect_match '<th scope="col">slip</th>' "$TMP/bkt.html"
expect_match '<th scope="row">student</th>' "$TMP/lme.html"
expect_match 'error_b' "$TMP/vae.html"
expect_match 'explain .*% of the variance' "$TMP/scores.html"
expect_match 'best: epoch [1-4]' "$TMP/rbm.html"
expect_match 'cohort train settings.ini data=class.h5 run=runs/again' "$TMP/rbm.html"
expect_match 'A blend contains its members: rbm and lme\.' "$TMP/blend.html"
expect_equal 1 "$(grep -c '<th scope="col">weight</th>' "$TMP/blend.html")" "the weights stand once"
# The heading names the curves that there are.
expect_match '<h2>How this blend was made</h2>' "$TMP/blend.html"
expect_match '<h2>Training: loss by epoch</h2>' "$TMP/lme.html"
expect_match '<h2>Training: loss and validation score by epoch</h2>' "$TMP/rbm.html"
# Titles in words; no part of a page is called as a file.
expect_match '<h3>Which information counts</h3>' "$TMP/ktm.html"
expect_match '<h3>How easy each item is \(95.% intervals\)</h3>' "$TMP/lme.html"
expect_match 'minus the sum of the intercept and the item&#39;s total' "$TMP/lme.html"
for kind in rbm rtrbm dkt vae lme bkt ktm blend; do
    expect_no_match '<h[234]>(fit|spreads|fixed|common|counts|features|items|skills|levels|members)[<:]' "$TMP/$kind.html"
    expect_no_match '[0-9] %( |<|\.)' <(sed 's/<svg.*//; s/<title>.*//' "$TMP/$kind.html" | grep '^<p\|^<dd\|figcaption')
done
expect_match 'reduces: cross-entropy of training answers in nats, plus penalties\. A good' "$TMP/dkt.html"
expect_match 'reduces: the loss that model.loss selects\. A good' "$TMP/scores.html"
# A small matrix has its numbers: those of three skills.
expect_equal 9 "$(sed -n '/aria-label="Influence between skills/,/<.svg>/p' "$TMP/dkt.html" |
    grep -o 'class="ink named"[^>]*>−\?[0-9]*</text>' | wc -l)" "numbers in the cells"
# The weights of a blend are its own, and those of ktm's features are drawn even where a feature has only one.
expect_no_match '0\.55 (RBM|p1)' "$TMP/blend.html"
expect_match '<h3>Weight of each feature</h3>' "$TMP/ktm.html"
expect_match 'class="reach"' "$TMP/ktm.html"

section "a model that baselines beat"
expect_match 'class="lead warn"' "$TMP/rbm.html"
expect_match '<p>This model is (worse|no better) than each student&#39;s running mean' "$TMP/rbm.html"
expect_match '<p>This model is hardly better than .*, a difference that may be chance' "$TMP/bkt.html"
expect_match 'A useful model beats the mean of the training targets' "$TMP/scores.html"
expect_match '<th scope="row">running mean</th>' "$TMP/ktm.html"

expect_match 'Its log-loss is 0\.[0-9]+ lower \(better\) than that of the running mean; the 95.% interval, −.* to .*, includes 0\.<' \
    "$TMP/bkt.html"
# Shuffled answers: neither baseline is beaten, and both are named with their scores.
run "$COHORT" simulate irt --students 300 --items 20 --skills 3 --seed 1 --shuffle-outcomes -o "$TMP/shuffled.h5" || fail "simulate"
# shellcheck disable=SC2086
train shuffled "data=$TMP/shuffled.h5" model.kind=dkt model.hidden=8 optimizer.method=adam optimizer.rate=0.1 train.batch=50 train.epochs=60 train.patience=100
expect_status 0 "$COHORT" report "$TMP/shuffled/last.h5" -o "$TMP/shuffled.html"
run "$COHORT" evaluate "$TMP/shuffled/last.h5" --json || fail "evaluate"
expect_match "(no better|worse) than either simple rule, .*: its log-loss is $(printf %.4g "$(json log_loss)"); the item mean has $(printf %.4g \
    "$(json item_mean log_loss)"), and the running mean $(printf %.4g "$(json running_mean log_loss)")" "$TMP/shuffled.html"
expect_match '<p>Its log-loss is [^<]* than that of the item mean; [^<]* Its log-loss is [^<]* than that of the running mean;' "$TMP/shuffled.html"
# Longer training may help only where the epoch used was the last one allowed.
expect_match 'Check the data and the settings, train longer, or try' "$TMP/shuffled.html"
expect_status 0 "$COHORT" report "$TMP/shuffled/best.h5" -o "$TMP/early.html"
expect_match 'Check the data and the settings, or try' "$TMP/early.html"
# Worse where every interval excludes 0, no better where one includes it.
for page in rbm shuffled; do
    said=$(grep -oE 'This model is (worse|no better) than' "$TMP/$page.html")
    if grep -q '<p>Its log-loss is .* includes 0' "$TMP/$page.html"; then right='no better'; else right=worse; fi
    expect_equal "This model is $right than" "$said" "$page: worse or no better"
done

section "the same bytes"
for n in 2 3 5; do
    for kind in rbm vae rtrbm scores; do
        [ "$n" = 3 ] || [ "$kind" = rbm ] || continue
        expect_status 0 ranks "$n" "$COHORT" report "$TMP/$kind" -o "$TMP/$kind$n.html"
        expect_same "$TMP/$kind.html" "$TMP/$kind$n.html"
    done
done
expect_status 0 "$COHORT" report "$TMP/rbm" -o "$TMP/again.html"
expect_same "$TMP/rbm.html" "$TMP/again.html"

section "the numbers of evaluate"
# numbers FILE KEY...: these scores of the last command's JSON are in cells of the page.
numbers() {
    local file=$1 key digits value
    shift
    for key; do
        digits=4
        case $key in *cbd | *log_loss) digits=5 ;; esac
        # shellcheck disable=SC2086
        value=$(json $key)
        expect_match "<td>$(printf '%.*f' "$digits" "$value" | sed 's/-/−/')<" "$file"
    done
}
expect_status 0 "$COHORT" evaluate "$TMP/rbm" --json
numbers "$TMP/rbm.html" cbd log_loss auc accuracy rmse calibration_error 'skip_first auc' 'skip_first cbd' 'item_mean auc' \
    'item_mean log_loss' 'item_mean skip_first auc'
expect_match "AUC of $(printf '%.4f' "$(json auc)")" "$TMP/rbm.html"
expect_match "$(json digest)" "$TMP/rbm.html"
expect_status 0 "$COHORT" evaluate "$TMP/passed" --json
numbers "$TMP/passed.html" log_loss auc accuracy 'mean_target log_loss'
expect_status 0 "$COHORT" evaluate "$TMP/scores" --json
numbers "$TMP/scores.html" r2 log_loss

# A calibrated model with the same chances: the mean of sqrt(2 / pi * p (1 - p) / n), by bins of chances. The verdict is
# that of one rule: two standard deviations beyond it.
for kind in ktm rbm; do
    run "$COHORT" predict "$TMP/$kind" --split test -o "$TMP/$kind.csv" || fail "predict"
    expect_match "$(awk -F, 'NR > 1 { b = int(15 * $5); n[b]++; p[b] += $5; right[b] += $4; all++ }
        END { pi = 3.14159265358979
            for (b in n) { mean = p[b] / n[b]; gap = p[b] - right[b]; error += gap < 0 ? -gap : gap
                chance += sqrt(2 / pi * mean * (1 - mean) * n[b]); squares += (1 - 2 / pi) * mean * (1 - mean) * n[b] }
            far = error - chance > 2 * sqrt(squares)
            rough = chance / all >= 0.03
            printf "off by %.1f percentage points on average; with %s%d answers, a perfectly calibrated model would be off by about %.1f\\.",
                100 * error / all, rough ? "only " : "", all, 100 * chance / all
            print (far && (error - chance) / all >= 0.02) ? " This model.* less exact than they should be: use them to rank" : \
                (!far && rough) ? " The difference is too small to judge\\.<" : "( They can be taken [almost ]*literally\\.)?<" }' \
        "$TMP/$kind.csv")" "$TMP/$kind.html"
done

section "several runs"
expect_status 0 ranks 2 "$COHORT" report "$TMP/rbm" "$TMP/lme" "$TMP/blend" --title 'Which <one>?' --top 5 -o "$TMP/several.html"
check_sound "$TMP/several.html"
expect_match '<title>Which &lt;one&gt;\?</title>' "$TMP/several.html"
for kind in rbm lme blend; do
    run "$COHORT" evaluate "$TMP/$kind" --json || fail "evaluate $kind"
    numbers "$TMP/several.html" auc log_loss
    expect_match "<h4>$kind</h4>" "$TMP/several.html"
done
expect_status 0 "$COHORT" report "$TMP/rbm" "$TMP/ktm" --metric auc -o "$TMP/by-auc.html"
expect_match 'predicts best by AUC: log-loss 0\.[0-9]+, AUC 0\.' "$TMP/by-auc.html"
expect_match '<p>The run rbm is no better than each student' "$TMP/by-auc.html"
expect_status 0 "$COHORT" report "$TMP/rbm" "$TMP/rbm/best.h5" "$TMP/rbm" "$TMP/scores" -o "$TMP/mixed.html"
check_sound "$TMP/mixed.html"
expect_match 'were scored on different answers' "$TMP/mixed.html"
expect_match '3 rbm' "$TMP/mixed.html"

# Folds with equally many test answers per item, but of other students.
awk 'BEGIN { srand(3); print "student,item,outcome"; for (s = 1; s <= 8; s++) for (i = 1; i <= 3; i++)
    print "s" s ",i" i "," (rand() < 0.5) }' >"$TMP/few.csv"
run "$COHORT" import csv "$TMP/few.csv" --student student --item item --outcome outcome -o "$TMP/few.h5" || fail "import"
train few data="$TMP/few.h5" model.kind=lme train.folds=4 train.epochs=2
expect_status 0 "$COHORT" report "$TMP/few/fold-1" "$TMP/few/fold-3" -o "$TMP/folds.html"
expect_match 'were scored on different answers' "$TMP/folds.html"

section "checkpoints, other data, other splits"
expect_status 0 "$COHORT" report "$TMP/rbm/last.h5" -o "$TMP/last.html"
expect_match 'Training ran for 4 epochs' "$TMP/last.html"
cp "$TMP/rbm/best.h5" "$TMP/alone.h5"
expect_status 0 "$COHORT" report "$TMP/alone.h5" --data "$TMP/class.h5" --split valid -o "$TMP/alone.html"
expect_match 'There is no log next to this checkpoint' "$TMP/alone.html"
expect_match 'validation answers from' "$TMP/alone.html"
run "$COHORT" import csv "$TMP/all.csv" --student student --item item --outcome outcome --split none -o "$TMP/other.h5" || fail "import"
expect_status 0 "$COHORT" report "$TMP/rbm" --data "$TMP/other.h5" -o "$TMP/other.html"
expect_match 'has nothing to score in split test; the report uses split train$'
expect_match 'other.h5 has no test answers that can be scored; this report uses the training answers instead' "$TMP/other.html"
expect_match 'not the data that the model was trained on' "$TMP/other.html"
# An answer to an item that is new counts for no item, least of all for the one that stands in for it.
sed 's/item-7,/new-7,/' "$TMP/all.csv" >"$TMP/new.csv"
run "$COHORT" import csv "$TMP/new.csv" --student student --item item --outcome outcome --split none -o "$TMP/new.h5" || fail "import"
expect_status 0 ranks 2 "$COHORT" report "$TMP/lme" --data "$TMP/new.h5" --split train --figures "$TMP/new" -o "$TMP/new.html"
n_new=$(grep -c ',new-7,' "$TMP/new.csv")
expect_equal 2 "$(grep -c "Not counted: $n_new answers to items that the model was not trained on." "$TMP/new.html")" "answers to a new item"
expect_equal "$(awk -F, 'NR > 1 && $2 !~ /^new/ { n[$2]++; right[$2] += $4 } END { for (i in n) printf "%.6f\n", right[i] / n[i] }' \
    "$TMP/new.csv" | sort)" \
    "$(awk -F, 'FNR > 3 { printf "%.6f\n", $3 }' "$TMP"/new/*items-predicted-against-observed.csv | sort)" "right answers of the other items"
expect_no_match 'Not counted' "$TMP/other.html"
check_sound "$TMP/last.html" "$TMP/alone.html" "$TMP/other.html" "$TMP/new.html"
# shellcheck disable=SC2086
train none data="$TMP/other.h5" model.kind=rbm train.epochs=0
expect_status 0 "$COHORT" report "$TMP/none" -o "$TMP/none.html"
rm "$TMP/rbm/result.json"
expect_status 0 "$COHORT" report "$TMP/rbm" -o "$TMP/unfinished.html"
expect_match 'Training of rbm is not finished' "$TMP/unfinished.html"

section "figures"
expect_status 0 "$COHORT" report "$TMP/rtrbm" -o "$TMP/rtrbm.html" --figures "$TMP/figures"
expect_match '^wrote [0-9]+ figures to .* as SVG(, PDF)? and CSV$'
n=$(grep -c '<svg' "$TMP/rtrbm.html")
expect_equal "$n" "$(find "$TMP/figures" -name '*.svg' | wc -l)" "one SVG per chart"
expect_equal "$n" "$(find "$TMP/figures" -name '*.csv' | wc -l)" "one CSV per chart"
expect_equal '' "$(grep -l 'var(--' "$TMP"/figures/*.svg)" "no variable of the page"
expect_match '^Training loss by epoch,1,0\.' "$TMP"/figures/*-training-loss-by-epoch.csv
expect_match '^skill-1,skill-2,0\.' "$TMP"/figures/*graph*.csv
if command -v rsvg-convert >/dev/null; then
    expect_equal "$n" "$(find "$TMP/figures" -name '*.pdf' | wc -l)" "one PDF per chart"
    expect_equal '%PDF' "$(head -qc 4 "$TMP"/figures/*-training-loss-by-epoch.pdf)" "a PDF"
else
    expect_match 'PDF needs rsvg-convert'
fi
mkdir -p "$TMP/bin"
expect_status 0 env PATH="$TMP/bin" "$COHORT" report "$TMP/rtrbm" -o "$TMP/rtrbm.html" --figures "$TMP/plain"
expect_match 'PDF needs rsvg-convert'
expect_equal "$n" "$(find "$TMP/plain" -name '*.svg' | wc -l)" "SVG without rsvg-convert"
expect_status 0 ranks 2 "$COHORT" report "$TMP/rtrbm" -o "$TMP/rtrbm.html" --figures "$TMP/again"
check "the same figures on two ranks" diff -r "$TMP/figures" "$TMP/again"
if command -v python3 >/dev/null; then
    check "well-formed XML" python3 -c 'import sys, xml.dom.minidom as x; [x.parse(f) for f in sys.argv[1:]]' "$TMP"/figures/*.svg
fi
expect_status 1 ranks 2 "$COHORT" report "$TMP/rtrbm" -o "$TMP/rtrbm.html" --figures "$TMP/class.h5/figures"
expect_match "cannot create the directory"

section "names with any characters"
awk 'BEGIN {
    srand(3)
    name[0] = "<script>alert(1)</script>"; name[1] = "a \"quoted\" & '"'"'other'"'"'"; name[2] = "</style></title>"
    name[3] = "\347\254\254\344\270\200\351\241\214"; name[4] = "\377\376 no UTF-8"; name[5] = "&lt;b&gt; %s %n"
    name[6] = "a very long name that goes on and on and on and on and on and on and on and on and on and on"
    print "student\titem\tskill\toutcome"
    for (s = 0; s < 60; s++)
        for (i = 0; i < 14; i++)
            printf "<img src=x>%d\t%s\t%s\t%d\n", s, name[i % 7], name[(i + 2) % 7], rand() < (i % 7 + s % 5) / 10
}' >"$TMP/nasty.tsv"
expect_status 0 "$COHORT" import csv "$TMP/nasty.tsv" --student student --item item --skills skill --outcome outcome \
    --split by-student=60/20/20 -o "$TMP/<nasty> & \"data\".h5"
nasty="$TMP/<nasty> & \"data\".h5"
train '<b>lme' "data=$nasty" model.kind=lme "model.factors=item skill" train.epochs=5
train bold "data=$nasty" model.kind=bkt train.epochs=5
# shellcheck disable=SC2086
train graph "data=$nasty" model.kind=rtrbm model.structure=items model.hidden=2 model.skill_units=1 $adam
for run in '<b>lme' bold graph; do
    expect_status 0 "$COHORT" report "$TMP/$run" -o "$TMP/nasty.html"
    check_sound "$TMP/nasty.html"
    expect_match '&lt;script&gt;alert\(1\)&lt;/script&gt;' "$TMP/nasty.html"
    expect_no_match '<script|<img|<b>lme|</style></title>' "$TMP/nasty.html"
    expect_match '第一題' "$TMP/nasty.html"
done

section "scores beyond the axis"
# Of a log in which the first and third epochs are worse than a coin.
cp -r "$TMP/rbm" "$TMP/coin"
awk 'NR % 2 == 1 { sub(/"log_loss": *[0-9.]+/, "\"log_loss\": 5.5") } { print }' "$TMP/rbm/log.jsonl" >"$TMP/coin/log.jsonl"
expect_status 0 "$COHORT" report "$TMP/coin" -o "$TMP/coin.html" --figures "$TMP/coin-figures"
figure=$(echo "$TMP"/coin-figures/*alidation-score*.svg)
expect_match 'worse than the axis' "$figure"
# Two triangles and that of the legend; the dots of the others; a line of separate parts, none along the edge.
expect_equal "3 2" "$(grep -o 'class="beyond"' "$figure" | wc -l) $(grep -o 'class="dot"' "$figure" | wc -l)" "triangles, dots"
expect_no_match 'class="beyond"|worse than the axis' "$TMP/rbm.html"

section "baselines beside the curve"
# One validated epoch: the lines are as wide as the plot. A line is never on the edge: the axis has room below it.
expect_status 0 "$COHORT" report "$TMP/bkt" -o "$TMP/bkt.html" --figures "$TMP/bkt-figures"
figure=$(echo "$TMP"/bkt-figures/*alidation-score*.csv)
expect_match '^item mean,0,0' "$figure"
expect_match '^running mean,10,0' "$figure"
bottom=$(grep -o 'class="edge" d="M[0-9. ]*' "${figure%.csv}.svg" | head -1 | grep -o '[0-9.]*$')
expect_equal "2 0" "$(grep -o 'class="guide"[^>]* d="M[0-9. ]*L' "${figure%.csv}.svg" |
    awk -v bottom="$bottom" '{ n++; bad += $NF + 0 > bottom - 5 } END { print n, bad }')" "lines that can be seen"

section "wrong input"
expect_status 2 "$COHORT" report
expect_match 'usage: cohort report RUN'
expect_status 1 "$COHORT" report "$TMP/nowhere" -o "$TMP/no.html"
expect_match 'nowhere: No such file or directory'
expect_status 1 ranks 3 "$COHORT" report "$TMP/lme" "$TMP/nowhere" -o "$TMP/no.html"
expect_status 3 "$COHORT" report "$TMP/class.h5" -o "$TMP/no.html"
expect_status 1 ranks 2 "$COHORT" report "$TMP/lme" -o "$TMP/no/where/report.html"
expect_match 'there is no directory .*create it first'
expect_status 2 "$COHORT" report "$TMP/lme" -o ''
for file in rbm/best.h5 class.h5; do
    expect_status 1 ranks 2 "$COHORT" report "$TMP/lme" -o "$TMP/$file"
    expect_match 'this file exists and is not a page of `cohort report`; choose another file name, or remove it first'
    expect_status 0 "$COHORT" verify "$TMP/$file"
done
printf '<!DOCTYPE html>\n<title>mine</title>\n' >"$TMP/mine.html"
expect_status 1 ranks 2 "$COHORT" report "$TMP/lme" -o "$TMP/mine.html"
expect_match 'mine.html: this file exists and is not a page of'
expect_status 1 "$COHORT" report "$TMP/lme" --watch -o "$TMP/mine.html"
expect_match mine "$TMP/mine.html"
expect_status 0 "$COHORT" report "$TMP/lme" -o "$TMP/lme.html"
expect_status 0 "$COHORT" report "$TMP/lme" -o "$TMP/lme.html"
expect_equal "" "$(find "$TMP" -maxdepth 1 -name 'no*.html*' ! -name 'none.html')" "nothing is left behind"
