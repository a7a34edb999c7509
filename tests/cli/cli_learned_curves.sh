#!/bin/bash
# cohort report, what a model has learned: item response curves, Wright maps, learning curves of skills, effects, counts
# and members of blends are there, have the same bytes at any number of ranks, and their numbers are those that awk
# computes from `cohort predict` and `cohort export`.
. "$(dirname "$0")/../lib/lib.sh"

train() {
    local run=$1
    shift
    run "$COHORT" train "run=$TMP/$run" "$@" || fail "training $run"
}

# Answers of students who learn four skills, one of them with a long name.
long="adding and subtracting fractions with unlike denominators, in words"
awk -v long="$long" 'BEGIN {
    srand(4)
    for (k = 1; k <= 4; k++) { name[k] = k == 3 ? long : "skill" k; learn[k] = k == 4 ? 0 : 0.1 * k }
    print "student,item,skill,outcome"
    for (s = 1; s <= 200; s++) {
        for (k = 1; k <= 4; k++) known[k] = rand() < 0.2
        for (t = 1; t <= 32; t++) {
            k = 1 + int(4 * rand())
            j = 1 + int(3 * rand())
            printf "s%d,%d-%d,\"%s\",%d\n", s, k, j, name[k], rand() < (known[k] ? 0.95 : 0.3) - 0.1 * j
            if (!known[k]) known[k] = rand() < learn[k]
        }
    }
}' >"$TMP/chain.csv"
run "$COHORT" import csv "$TMP/chain.csv" --split by-student=60/20/20 -o "$TMP/chain.h5" || fail "import"
run "$COHORT" simulate irt --students 300 --items 20 --seed 3 -o "$TMP/irt.h5" || fail "simulate"
run "$COHORT" simulate irt --students 200 --items 20 --skills 4 --seed 3 -o "$TMP/irt4.h5" || fail "simulate"
adam="optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=4"
# shellcheck disable=SC2086
{
    train bkt data="$TMP/chain.h5" model.kind=bkt train.epochs=10
    train lme data="$TMP/chain.h5" model.kind=lme model.factors="item skill" train.epochs=10
    train pfa data="$TMP/chain.h5" model.kind=ktm model.preset=pfa train.epochs=10
    train rasch data="$TMP/chain.h5" model.kind=ktm model.features="student item" train.epochs=10
    train vae data="$TMP/irt.h5" model.kind=vae $adam
    train vae4 data="$TMP/irt4.h5" model.kind=vae $adam
}
run "$COHORT" blend "$TMP/bkt" "$TMP/lme" "$TMP/pfa" -o "$TMP/blend" --json || fail "blend"
cp "$LIB_OUT" "$TMP/blend.json"

# figure RUN NAME: the CSV file of the first picture whose name contains NAME.
figure() { find "$TMP/$1-1" -name "*$2*.csv" | sort | head -1; }

section "the same bytes"
for kind in bkt lme pfa rasch vae vae4 blend; do
    for n in 1 3; do
        expect_status 0 ranks "$n" "$COHORT" report "$TMP/$kind" --figures "$TMP/$kind-$n" -o "$TMP/$kind-$n.html"
    done
    expect_same "$TMP/$kind"-{1,3}.html
    check "$kind: the same numbers" diff -r --exclude='*.pdf' "$TMP/$kind-1" "$TMP/$kind-3"
done

section "learning curves of skills"
# Attempts at a skill are numbered per student; the skill is the first part of the item's name.
for kind in bkt lme pfa blend; do
    run "$COHORT" predict "$TMP/$kind" -o "$TMP/$kind.csv" || fail "predict"
    check "$kind: shares and chances of every point" awk -F, -v long="$long" '
        NR == FNR { if (FNR > 1 && $6 == "test") { split($2, part, "-"); k = part[1]; nth = ++met[$1, k]
                n[k, nth]++; right[k, nth] += $4; chance[k, nth] += $5 } next }
        FNR > 1 { gsub("\"" long "\"", "skill3"); k = substr($1, 6); points++
            if ($3 != n[k, $2] || ($4 - right[k, $2] / $3) ^ 2 > 1e-14 || ($7 - chance[k, $2] / $3) ^ 2 > 1e-12) bad = 1
            most[k] = $2 }
        END { for (k = 1; k <= 4; k++) if (n[k, most[k] + 1] >= 10 && most[k] < 20) bad = 1
            exit bad || points < 30 }' "$TMP/$kind.csv" <(sed "s/\"$long\"/skill3/" "$(figure $kind learning-curves)")
done
# The skill that nobody learns comes last.
expect_equal skill4 "$(tail -1 "$(figure bkt learning-curves)" | cut -d , -f 1)" "the order of skills"
# The long name is on two lines, shortened in the middle.
expect_equal "adding and subtracting fractions wi…rs, in words" "$(sed -n '/aria-label="Learning curves of skills"/,/<\/svg>/p' "$TMP/bkt-1.html" |
    grep -o 'class="ink"[^<]*' | sed 's/.*>//' | awk '/^adding/ { on = 1 } /^skill/ { on = 0 } on' | tr -d '\n')" "a long name"
expect_match 'leave the later points to those who practise longer' "$TMP/bkt-1.html"
# The model has the first colour and what was observed the second; the sign of a line with dots has a dot.
expect_match '<g class="c1"><path class="dot"[^>]*/></g><text[^>]*>students</text>' "$TMP/bkt-1.html"
expect_match '<g class="c0"><path class="line"[^>]*/><circle class="dot"[^>]*/></g><text[^>]*>model</text>' "$TMP/bkt-1.html"
expect_match '<g class="c1"><circle class="dot"[^>]*/></g><text[^>]*>students</text><g class="c0"><path class="line"' "$TMP/bkt-1.html"
expect_match '<h3>Rates of each skill</h3>' "$TMP/bkt-1.html"
# One outcome more, one point more: all skills together are the sum of the skills.
check "all skills" awk -F, 'NR == FNR { if (FNR > 1) { n[$2] += $3; right[$2] += $3 * $4 } next }
    $1 == "students" && n[$2] > 0 && $2 <= 6 { if (($3 - right[$2] / n[$2]) ^ 2 > 1e-14) bad = 1; points++ }
    END { exit bad || points != 6 }' <(sed "s/\"$long\"/skill3/" "$(figure bkt learning-curves)") "$(figure bkt right-answers-by-attempt)"

section "item response curves"
expect_status 0 "$COHORT" export "$TMP/vae" --hidden -o "$TMP/vae-tables"
for name in "Item characteristic curves" "Item information" "Test information" "Standard error of measurement" \
    "Wright map: students beside items" "Abilities of the students" "Students from low to high ability"; do
    expect_match "<h3>$name</h3>" "$TMP/vae-1.html"
done
check "curves of items" awk -F, 'NR == FNR { a[$1] = $2; b[$1] = $3; next }
    FNR > 1 { sub(/.*: /, "", $1); p = 1 / (1 + exp(b[$1] - a[$1] * $2)); if (!($1 in a) || (p - $3) ^ 2 > 1e-12) bad = 1; n++ }
    END { exit bad || n < 200 }' "$TMP/vae-tables/table_items.csv" "$(figure vae item-characteristic)"
check "test information and standard error" awk -F, 'FILENAME == ARGV[1] { if (FNR > 1) { a[FNR] = $2; b[FNR] = $3; m = FNR } next }
    FNR > 1 && $1 ~ /Test information|standard error/ { sum = 0
        for (i = 2; i <= m; i++) { p = 1 / (1 + exp(b[i] - a[i] * $2)); sum += a[i] ^ 2 * p * (1 - p) }
        if (((FILENAME == ARGV[2] ? sum : 1 / sqrt(sum)) - $3) ^ 2 > 1e-11) bad = 1; n++ }
    END { exit bad || n < 120 }' "$TMP/vae-tables/table_items.csv" "$(figure vae test-information)" "$(figure vae standard-error)"
check "Wright map" awk -F, 'FILENAME == ARGV[1] { place[$1] = $3 / ($2 + 1e-300); next }
    FILENAME == ARGV[2] { if (FNR > 1) theta[++n] = $2; next }
    $1 == "item" { if ((place[$6] - $4) ^ 2 > 1e-10 * (1 + $4 ^ 2)) bad = 1; items++ }
    $1 == "students" { count = 0; for (s = 1; s <= n; s++) count += theta[s] >= $2 && theta[s] < $3
        if (count != $5) bad = 1; all += $5 }
    END { exit bad || items != 20 || all != 300 }' "$TMP/vae-tables/table_items.csv" "$TMP/vae-tables/hidden.csv" "$(figure vae wright)"
check "abilities are sorted, with 1.96 sigma" awk -F, 'FILENAME == ARGV[1] { if (FNR > 1) sigma[sprintf("%.7g", $2)] = $3; next }
    FNR > 1 && $1 != "guide" { if ($3 < last || (($5 - $4) / 3.92 - sigma[sprintf("%.7g", $3)]) ^ 2 > 1e-10) bad = 1; last = $3; n++ }
    BEGIN { last = -9 } END { exit bad || n != 300 }' "$TMP/vae-tables/hidden.csv" "$(figure vae students-from-low)"

# The dashed line is the spread of abilities in the model, not of its estimates: 1 by the prior; of lme, that of students.
expect_match 'dashed line \(1\.00, the standard deviation of true abilities' "$TMP/vae-1.html"
expect_status 0 "$COHORT" export "$TMP/lme" -o "$TMP/lme-tables"
expect_match "dashed line \\($(awk -F, '$1 == "student" { printf "%.2f", $3 }' "$TMP/lme-tables/table_spreads.csv"), the standard deviation of true abilities in the model\\)" \
    "$TMP/lme-1.html"
expect_match 'the standard deviation of true abilities, estimated from these students' "$TMP/rasch-1.html"
expect_match 'measure best near ability (−?[0-9]+\.[0-9]+)\. .*their mean is −?[0-9]' "$TMP/vae-1.html" "$TMP/lme-1.html"
expect_no_match 'near ability -|mean is -' "$TMP"/{vae,lme,rasch,vae4}-1.html

section "several abilities"
expect_match 'This model has 4 abilities. Each picture follows one of them, with all others at 0' "$TMP/vae4-1.html"
expect_equal 3 "$(grep -c '<h3>Item characteristic curves: skill-' "$TMP/vae4-1.html")" "abilities drawn"
expect_status 0 "$COHORT" export "$TMP/vae4" -o "$TMP/vae4-tables"
# The first panel is of the ability that the most items need, and is named after its skill.
expect_equal "$(awk -F, 'NR > 1 { for (k = 2; k <= 5; k++) n[k] += $k != 0 }
    END { for (k = 2; k <= 5; k++) if (n[k] > n[best]) best = k; print "skill-" best - 1, n[best] }' "$TMP/vae4-tables/table_items.csv")" \
    "$(sed -n 's/.*<h3>Test information: \([^<]*\)<.*/\1/p' "$TMP/vae4-1.html" | head -1) $(grep -c ^item, "$(figure vae4 wright)")" "the first ability"

section "the Rasch view"
for kind in lme rasch; do
    expect_match 'This model can be read as a Rasch model' "$TMP/$kind-1.html"
    expect_match '<h3>Wright map: students beside items</h3>' "$TMP/$kind-1.html"
done
expect_no_match 'Wright map' "$TMP/pfa-1.html" "$TMP/bkt-1.html"
check "difficulties" awk -F, 'FILENAME == ARGV[1] { if ($1 == "intercept") intercept = $2; next }
    FILENAME == ARGV[2] { total[$1] = $4; next }
    $1 == "item" { if (($4 + intercept + total[$6]) ^ 2 > 1e-11) bad = 1; n++ }
    END { exit bad || n != 12 }' "$TMP/lme-tables/table_fixed.csv" "$TMP/lme-tables/table_items.csv" "$(figure lme wright)"
# An item much easier than all others is on the map.
awk 'BEGIN { srand(7); print "student,item,outcome"
    for (s = 1; s <= 150; s++) for (j = 1; j <= 20; j++)
        printf "s%d,item%d,%d\n", s, j, rand() < (j == 18 ? 0.997 : j == 19 ? 0.2 : j == 20 ? 0.12 : 0.4 + 0.01 * j) }' >"$TMP/ends.csv"
run "$COHORT" import csv "$TMP/ends.csv" --split by-student=60/20/20 -o "$TMP/ends.h5" || fail "import"
train ends data="$TMP/ends.h5" model.kind=lme train.epochs=10
expect_status 0 "$COHORT" report "$TMP/ends" -o "$TMP/ends.html" --figures "$TMP/ends-1"
check "the scale reaches its outermost items" awk -F, '$1 == "students" { if (low == "" || $2 < low) low = $2; if ($3 > high) high = $3 }
    $1 == "item" { beyond += $4 < low || $4 > high; far += $4 < -3 } END { exit beyond > 0 || far != 1 }' \
    "$(figure ends wright)"
expect_no_match 'Not drawn' "$TMP/ends.html"
# One factor: its effects are the total.
expect_match '<th scope="col">item</th><th scope="col">effect</th><th scope="col"[^>]*>standard error</th></tr>' "$TMP/ends.html"

section "effects"
for what in items skills; do
    check "$what: values, intervals and order" awk -F, 'FILENAME == ARGV[1] { value[$1] = $2; error[$1] = $3; next }
        FNR > 1 && $5 > $4 && $1 != "guide" { if ($2 > last || ($2 - value[$3]) ^ 2 + ($5 - $2 - 1.96 * error[$3]) ^ 2 > 1e-12) bad = 1; last = $2; n++ }
        BEGIN { last = 9 } END { exit bad || n < 4 }' <(sed "s/\"$long\"/skill3/" "$TMP/lme-tables/table_$what.csv") \
        <(sed "s/\"$long\"/skill3/" "$(figure lme "how-easy-each-${what%s}-is-95")")
done

section "counts and weights"
train ktm data="$TMP/irt.h5" model.kind=ktm train.epochs=2
expect_status 0 "$COHORT" report "$TMP/ktm" -o "$TMP/ktm.html"
expect_match 'Columns not shown, because they are 0 in all rows: [^.]*wins_item.*no item was answered twice' "$TMP/ktm.html"
expect_match 'A dot without a bar: one weight, or all weights equal' "$TMP/pfa-1.html"
expect_status 0 "$COHORT" export "$TMP/pfa" -o "$TMP/pfa-tables"
check "right and wrong answers in a row" awk -F, 'NR == FNR { n += FNR > 1; right += $3; wrong += $4; next }
    $1 == "right answers" { if (($3 - $2 * right / n) ^ 2 > 1e-10) bad = 1; points++ }
    $1 == "wrong answers" { if (($3 - $2 * wrong / n) ^ 2 > 1e-10) bad = 1; points++ }
    END { exit bad || points != 12 }' <(sed "s/\"$long\"/skill3/" "$TMP/pfa-tables/table_skills.csv") "$(figure pfa what-earlier)"
check "groups: mean and range" awk -F, 'NR == FNR { if (FNR > 1) for (c = 2; c <= 4; c++) { sum[c] += $c; n[c]++
            if (n[c] == 1 || $c < least[c]) least[c] = $c
            if (n[c] == 1 || $c > most[c]) most[c] = $c } next }
    FNR > 1 { c = FNR; if (($2 - sum[c] / n[c]) ^ 2 + ($4 - least[c]) ^ 2 + ($5 - most[c]) ^ 2 > 1e-11) bad = 1; rows++ }
    END { exit bad || rows != 3 }' <(sed "s/\"$long\"/skill3/" "$TMP/pfa-tables/table_skills.csv") "$(figure pfa weight-of-each-feature)"

section "members of a blend"
# What is left without a member is the blend of the other two, which `cohort blend` scores as a pair.
for pair in "1 2" "2 1" "3 0"; do
    read -r member other <<<"$pair"
    without=$(python3 -c "import json; print('%.5f' % json.load(open('$TMP/blend.json'))['pairs'][$other]['test']['log_loss'])")
    alone=$(python3 -c "import json; print('%.5f' % json.load(open('$TMP/blend.json'))['members'][$member - 1]['test']['log_loss'])")
    row=$(sed -n '/Members: what each adds/,/<\/table>/p' "$TMP/blend-1.html" | grep '<th scope="row">' | sed -n "${member}p")
    expect_equal "$alone $without" "$(sed 's/<[^>]*>/ /g' <<<"$row" | awk '{ print $3, $5 }')" "member $member: alone, and the rest without it"
done
expect_match '<h3>What each member adds</h3>' "$TMP/blend-1.html"

section "several runs, other data"
expect_status 0 "$COHORT" report "$TMP/bkt" "$TMP/lme" -o "$TMP/two.html"
expect_match '<h3>Right answers by attempt at a skill</h3>' "$TMP/two.html"
head -1000 "$TMP/chain.csv" >"$TMP/other.csv"
run "$COHORT" import csv "$TMP/other.csv" --split none -o "$TMP/other.h5" || fail "import"
for kind in lme rasch blend; do
    expect_status 0 "$COHORT" report "$TMP/$kind" --data "$TMP/other.h5" --split all -o "$TMP/other.html"
    expect_no_match 'Wright map|What each member adds' "$TMP/other.html"
done
