#!/usr/bin/env bash
# cohort predict --interval: deviations worked out again from what the models export.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

# 80 students of different ability answer 12 items of 3 skills; the last outcome of the student "zed" is unknown.
awk 'BEGIN {
    srand(5)
    print "student,item,skill,correct"
    for (s = 1; s <= 80; s++) {
        ability = 3 * rand() - 1.5
        for (t = 0; t < 14; t++) {
            i = int(rand() * 12)
            printf "s%d,q%d,k%d,%d\n", s, i, i % 3, rand() < 1 / (1 + exp(i / 4 - 1.5 - ability))
        }
    }
    print "zed,q3,k0,1\nzed,q5,k2,0\nzed,q7,k1,1\nzed,q2,k2,"
}' >class.csv
expect_status 0 "$COHORT" import csv class.csv --skills skill --split none -o class.h5
quick=(train.epochs=4 data=class.h5)
for kind in bkt lme ktm vae rbm; do
    more=()
    [ $kind != vae ] || more=(model.dimensions=1)
    [ $kind != bkt ] || more=(model.items=no)
    expect_status 0 "$COHORT" train run=$kind model.kind=$kind "${quick[@]}" "${more[@]}"
done
for run in bkt lme vae; do
    expect_status 0 "$COHORT" predict $run -o plain.csv
    expect_status 0 "$COHORT" predict $run --interval -o $run.csv
    expect_status 0 ranks 3 "$COHORT" predict $run --interval -o three.csv
    expect_same $run.csv three.csv
    cut -d, -f1-8 $run.csv >without.csv
    expect_same plain.csv without.csv
    expect_equal deviation "$(head -1 $run.csv | cut -d, -f9)" "the last column"
    # No number between 0 and 1 with mean p has a larger variance than p (1 - p).
    check "deviations are possible" awk -F, 'NR > 1 && !($9 >= 0 && $9 * $9 <= $5 * (1 - $5) + 1e-6) { exit 1 }' $run.csv
    expect_status 0 "$COHORT" export $run -o $run-tables
done

# deviation(mean, sd): of sigma(mean + sd z), z ~ N(0, 1), by many steps.
integral='function deviation(mean, sd, i, z, w, y, all, one, two) {
    for (i = -4000; i <= 4000; i++) {
        z = i / 500; w = exp(-z * z / 2); y = 1 / (1 + exp(-mean - sd * z)); all += w; one += w * y; two += w * y * y
    }
    return sqrt(two / all - (one / all) ^ 2)
}
function near(a, b) { return (a - b) ^ 2 < 1e-8 }'

section "bkt: known or not known"
# Before the first attempt at a skill: 1 - slip with chance p0, else guess.
check "first attempts" awk -F, "$integral"'
    NR == FNR { if (FNR > 1) d[substr($1, 2)] = sqrt($2 * (1 - $2)) * ((1 - $5) - $4); next }
    FNR > 1 { k = substr($2, 2) % 3; if (!(($1, k) in seen)) { n++; if (!near($9, d[k] < 0 ? -d[k] : d[k])) exit bad = 1 } seen[$1, k] }
    END { exit bad || n < 100 }' bkt-tables/table_skills.csv bkt.csv

section "lme: the student's effect is normal"
# Before the first answer its mode is 0 and its variance that of students.
check "first attempts" awk -F, "$integral"'
    NR == FNR { if ($1 == "student") sd = $3; next }
    FNR > 1 && !($1 in seen) { seen[$1]; n++; if (!near($9, deviation(log($5 / (1 - $5)), sd))) exit bad = 1 }
    END { exit bad || n != 81 || sd < 0.3 }' lme-tables/table_spreads.csv lme.csv
# Answers make it surer: the mean deviation falls from the first to the last attempt.
check "later attempts are surer" awk -F, 'NR > 1 { if (!($1 in t)) { first += $9 } t[$1]++; last[$1] = $9 }
    END { for (s in last) sum += last[s]; exit !(sum < 0.8 * first) }' lme.csv

section "vae: the posterior of the ability"
expect_status 0 "$COHORT" export vae --hidden -o hidden.csv
check "the last attempt of zed, from theta and sigma of its answers" awk -F, "$integral"'
    FNR == 1 { file++; next }
    file == 1 && $1 == "zed" { theta = $2; sigma = $3 }
    file == 2 && $1 == "q2" { a = $2; b = $3 }
    file == 3 && $1 == "zed" && $2 == "q2" { n++; if (!near($9, deviation(a * theta - b, a * sigma))) exit bad = 1 }
    END { exit bad || n != 1 || !(sigma > 0) }' hidden.csv vae-tables/table_items.csv vae.csv

section "blend: the members' predictions"
expect_status 0 "$COHORT" import csv class.csv --skills skill --split by-student -o split.h5
for kind in bkt ktm; do
    more=()
    [ $kind != ktm ] || more=(model.preset=afm) # bkt has no weight beside a better one
    expect_status 0 "$COHORT" train run=split-$kind model.kind=$kind data=split.h5 train.epochs=4 "${more[@]}"
    expect_status 0 "$COHORT" predict split-$kind -o split-$kind.csv
done
expect_status 0 "$COHORT" blend split-bkt split-ktm -o blend
expect_status 0 "$COHORT" export blend -o blend-tables
weight=$(awk -F, 'NR == 2 { print $2 }' blend-tables/table_members.csv)
expect_status 0 "$COHORT" predict blend --interval -o blend.csv
paste -d, split-bkt.csv split-ktm.csv blend.csv >joined.csv
check "their weighted deviation" awk -F, -v w="$weight" "$integral"'
    NR > 1 && !near($(25), sqrt(w * (1 - w)) * ($5 > $13 ? $5 - $13 : $13 - $5)) { exit bad = 1 }
    END { exit bad || NR < 500 || !(w > 0 && w < 1) }' joined.csv

section "other kinds say that they do not know"
expect_status 1 ranks 2 "$COHORT" predict rbm --interval -o never.csv
expect_match '^cohort: rbm/.*: rbm models give no uncertainty for a probability \(these do: .*bkt.*\); omit --interval'
check "nothing written" test ! -e never.csv

section "new items: the differences between stand-ins count"
printf 'student,item,skill,correct\na,q4,k1,1\nb,n1,k1,1\n' >new.csv
expect_status 0 "$COHORT" import csv new.csv --skills skill --split none -o new.h5
for n in 1 2; do
    expect_status 0 ranks $n "$COHORT" predict lme --interval --data new.h5 -o new$n.csv
done
expect_same new1.csv new2.csv
check "an unknown item is less certain" awk -F, '$1 == "a" { a = $9 } $1 == "b" { b = $9 } END { exit !(b > a && a > 0) }' new1.csv
