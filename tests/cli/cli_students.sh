#!/bin/bash
# cohort report, its students: the section about a class and the page of one student have the same bytes at any number
# of ranks; the rule of the pages agrees with what simulated students really know; names appear only when asked for, and
# any name is harmless.
. "$(dirname "$0")/../lib/lib.sh"

train() {
    local run=$1
    shift
    run "$COHORT" train "run=$TMP/$run" "$@" || fail "training $run"
}

# chain_class STUDENTS SKILLS ATTEMPTS SEED: writes $TMP/chain.csv, answers of students who know a skill or not, learn,
# guess and slip; and $TMP/known.csv, lines STUDENT,SKILL,KNOWN with what they know after their last attempt.
chain_class() {
    awk -v n="$1" -v m="$2" -v attempts="$3" -v seed="$4" -v to="$TMP" 'BEGIN {
        srand(seed)
        for (k = 1; k <= m; k++) {
            p0[k] = 0.1 + 0.3 * rand(); learn[k] = 0.03 + 0.12 * rand(); guess[k] = 0.1 + 0.15 * rand(); slip[k] = 0.05 + 0.1 * rand()
        }
        print "student,item,skill,outcome" >(to "/chain.csv")
        for (s = 1; s <= n; s++) {
            for (k = 1; k <= m; k++) known[k] = rand() < p0[k]
            for (t = 1; t <= attempts; t++) {
                k = 1 + int(m * rand())
                right = rand() < (known[k] ? 1 - slip[k] : guess[k])
                printf "s%d,skill%d-%d,skill%d,%d\n", s, k, 1 + int(3 * rand()), k, right >(to "/chain.csv")
                if (!known[k]) known[k] = rand() < learn[k]
            }
            for (k = 1; k <= m; k++) printf "s%d,skill%d,%d\n", s, k, known[k] >(to "/known.csv")
        }
    }'
}
chain_class 300 6 60 5
run "$COHORT" import csv "$TMP/chain.csv" --split by-student=60/20/20 -o "$TMP/chain.h5" || fail "import"
adam="optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=3"
# shellcheck disable=SC2086
{
    train bkt data="$TMP/chain.h5" model.kind=bkt
    train ktm data="$TMP/chain.h5" model.kind=ktm train.epochs=20
    train dkt data="$TMP/chain.h5" model.kind=dkt model.hidden=8 $adam
}

# states FILE STUDENT: what the page of a student says: lines STUDENT,SKILL,STATE,MASTERY; the first to practise is NEXT.
states() {
    awk -v s="$2" '
        /^<h2>/ { title = $0; gsub(/<[^>]*>/, "", title) }
        /^<li><b><bdi>/ && !next_one { next_one = 1; split($0, part, /<\/?bdi>/); print s "," part[2] ",NEXT," }
        /^<tr><th scope="row">/ { split($0, part, /<[^>]*>/); print s "," part[3] "," title "," part[5] + 0 }' "$1"
}
# known STATE: how many of these the truth has, and the share of them that is really known.
known() {
    awk -F, -v state="$1" 'NR == FNR { known[$1 "," $2] = $3; next } $3 == state { n++; right += known[$1 "," $2] }
        END { printf "%d %.3f\n", n, n ? right / n : 0 }' "$TMP/known.csv" "$TMP/states.csv"
}
# expect_share STATE RELATION SHARE: tests the share of skills of this state that are known in truth, of at least 30.
expect_share() {
    local n share
    read -r n share < <(known "$1")
    check "$1: $share of $n are known, expected $2 $3" awk -v n="$n" -v a="$share" "BEGIN { exit !(n >= 30 && a $2 $3) }"
}

section "the rule against the truth"
for kind in bkt ktm; do
    : >"$TMP/states.csv"
    unwise=0 bar=86
    [ $kind = bkt ] || bar=76
    for s in $(seq 1 80); do
        run "$COHORT" report "$TMP/$kind" --student "s$s" -o "$TMP/page.html" || fail "page of s$s"
        states "$TMP/page.html" "s$s" >>"$TMP/states.csv"
        unwise=$((unwise + $(grep -cE '(; 0 of the last|the only answer was wrong).* would make it mastered' "$TMP/page.html")))
    done
    expect_equal 480 "$(grep -vc NEXT "$TMP/states.csv")" "$kind: every skill of every student is in one state"
    expect_share Mastered ">=" 0.95
    expect_share "Needs help" "<=" 0.15
    # Most of what is to be practised next is not known in truth.
    expect_share NEXT "<=" 0.4
    expect_equal 0 "$(awk -F, -v bar="$bar" '$3 == "NEXT" { chosen[$1 "," $2] = 1; next } $4 >= bar { high[$1 "," $2] = 1 }
        END { for (one in chosen) n += one in high; print n + 0 }' "$TMP/states.csv")" "$kind: no advice where mastery is high"
    expect_equal 0 "$unwise" "$kind: no right answer is asked for after a wrong one"
    expect_equal "" "$(awk -F, '$3 == "Mastered" { mastered[$1 "," $2] = 1 } $3 == "NEXT" { chosen[$1 "," $2] = 1 }
        END { for (one in chosen) if (one in mastered) print one }' "$TMP/states.csv")" "$kind: nothing mastered is practised next"
done

section "a student's page"
run "$COHORT" predict "$TMP/bkt" --mastery --split all -o "$TMP/mastery.csv" || fail "predict"
expect_status 0 "$COHORT" report "$TMP/bkt" --student s7 -o "$TMP/s7.html"
expect_match "^wrote $TMP/s7.html$"
expect_match '<h1><bdi>s7</bdi></h1>' "$TMP/s7.html"
expect_equal "$(awk -F, '$1 == "s7" { printf "%s,%.0f\n", $2, 100 * $4 }' "$TMP/mastery.csv" | sort)" \
    "$(states "$TMP/s7.html" s7 | awk -F, '$3 != "NEXT" { print $2 "," $4 }' | sort)" "the mastery of predict --mastery"
expect_match 'a mastery of at least 85.% after at least 3 answers' "$TMP/s7.html"
expect_status 0 "$COHORT" report "$TMP/ktm" --student s7 -o "$TMP/ktm7.html"
expect_match 'a mastery of at least 75.% after at least 3 answers' "$TMP/ktm7.html"
expect_status 0 "$COHORT" help report
expect_match 'at least 85 %'
expect_match 'at least 75 %'
expect_match '^ +--names'

expect_equal 4 "$(sed -n '/How this page decides/,/<\/ul>/p' "$TMP/s7.html" | grep -c '^<li>')" "lines of the rule"

expect_match '<h3>Estimated mastery over the last 40 attempts</h3>' "$TMP/s7.html"
expect_match 'Each row is one of the skills tried in these attempts' "$TMP/s7.html"

section "few answers, and skills that answers do not move"
# The skill `hard` is never learned; of students one and two, fewer answers are known than a judgement needs.
awk 'BEGIN { srand(8) } { print } NR > 1 { split($0, part, ","); if (n[part[1]]++ < 8) print part[1] ",hard-1,hard," (rand() < 0.3) }
    END { print "one,skill1-1,skill1,0"; print "two,skill1-1,skill1,0"; print "two,skill1-2,skill1,0"
        for (t = 0; t < 5; t++) print "lucky,hard-1,hard," (t > 0) }' "$TMP/chain.csv" >"$TMP/hard.csv"
run "$COHORT" import csv "$TMP/hard.csv" --split by-student=60/20/20 -o "$TMP/hard.h5" || fail "import"
train hard data="$TMP/hard.h5" model.kind=bkt
for s in s7 one two lucky; do
    expect_status 0 "$COHORT" report "$TMP/hard" --student $s -o "$TMP/hard-$s.html"
done
expect_match '^<p>Skipped for now: <span><bdi>hard</bdi></span>. More than 10 right answers in a row would be needed; begin with' \
    "$TMP/hard-s7.html"
expect_no_match 'Skipped for now' "$TMP/hard-one.html" "$TMP/s7.html"
expect_match 'the only answer was wrong. Ask one or two more before deciding.</li>' "$TMP/hard-one.html"
expect_match '0 of the last 2 answers right. Ask one more before deciding.</li>' "$TMP/hard-two.html"
expect_no_match 'probably not known yet' "$TMP/hard-one.html" "$TMP/hard-two.html"
expect_match '<h3>Estimated mastery over all attempts</h3>' "$TMP/hard-one.html"
# Where the model and the answers contradict each other, the page says so.
expect_match '<b><bdi>hard</bdi></b>: the model does not think it known \([0-9]+.%\) although 4 of the last 5 were right: check with' \
    "$TMP/hard-lucky.html"
expect_no_match 'check with the student' "$TMP/hard-s7.html" "$TMP/hard-one.html"
# Only what there is: no zeros.
expect_match '<p>Of 1 skill tried, 1 is in need of help. Not tried: 6.</p>' "$TMP/hard-lucky.html"
expect_no_match '(Of|and|,) 0 |Not tried: 0' "$TMP/hard-s7.html" "$TMP/hard-lucky.html" "$TMP/s7.html"

section "the same bytes"
for kind in bkt dkt; do
    expect_status 0 "$COHORT" report "$TMP/$kind" -o "$TMP/$kind.html"
    expect_status 0 "$COHORT" report "$TMP/$kind" --student s300 -o "$TMP/$kind-student.html"
    for n in 2 3; do
        expect_status 0 ranks "$n" "$COHORT" report "$TMP/$kind" -o "$TMP/$kind$n.html"
        expect_same "$TMP/$kind.html" "$TMP/$kind$n.html"
        expect_status 0 ranks "$n" "$COHORT" report "$TMP/$kind" --student s300 -o "$TMP/$kind-student$n.html"
        expect_same "$TMP/$kind-student.html" "$TMP/$kind-student$n.html"
    done
done

section "the class"
expect_match '<h2>Students: what they have mastered</h2>' "$TMP/bkt.html"
expect_equal 2 "$(grep -cE 'aria-label="(Mastery of students|The path of one student)' "$TMP/bkt.html")" "heat map and path"
expect_equal 40 "$(sed -n '/Mastery of students/,/<\/figure>/p' "$TMP/bkt.html" | grep -o '>no\. [0-9]*</text>' | sort -u | wc -l)" \
    "40 students of 300"
section "a class with many skills"
# The tables count all skills and students, also those that no picture has.
run "$COHORT" simulate bkt --students 60 --skills 40 --items 80 --attempts 120 --seed 2 -o "$TMP/wide.h5" || fail "simulate"
train wide data="$TMP/wide.h5" model.kind=bkt train.epochs=10
run "$COHORT" predict "$TMP/wide" --mastery --split all -o "$TMP/wide.csv" || fail "predict"
expect_status 0 "$COHORT" report "$TMP/wide" --names --top 100 -o "$TMP/wide.html"
# rows TITLE: of a table of the class, lines NAME N of JUDGED (SHARE %).
rows() {
    sed -n "/$1/,/<\\/table>/p" "$TMP/wide.html" |
        awk '/^<tr><th scope="row">/ { split($0, part, /<[^>]*>/); print part[3], part[5] }'
}
# needs COLUMN: the same by predict --mastery, by the low end of Wilson's interval. Ties: by mean mastery, lowest first,
# then as in the data.
needs() {
    awk -F, -v c="$1" 'NR > 1 && !($c in first) { first[$c] = NR }
        NR > 1 && $3 >= 3 { n[$c]++; help[$c] += $4 < 0.5; sum[$c] += $4 }
        END { for (one in help) if (help[one]) { z = 1.959964; p = help[one] / n[one]; z2 = z * z / n[one]
            printf "%.12f\t%.9f\t%d\t%s %d of %d (%.0f %%)\n", (p + z2 / 2 - z * sqrt(p * (1 - p) / n[one] + z2 / n[one] / 4)) / (1 + z2),
                sum[one] / n[one], first[one], one, help[one], n[one], 100 * p } }' "$TMP/wide.csv" | sort -t "$(printf '\t')" -k 1,1nr -k 2,2n -k 3,3n | cut -f 4
}
check "more than 20 skills" test "$(needs 2 | wc -l)" -gt 20
expect_equal "$(needs 2)" "$(rows 'Which skills need help')" "skills that need help"
expect_equal "$(needs 1)" "$(rows 'Which students need help')" "students who need help"
expect_match 'of equals, the one with the lowest mean mastery' "$TMP/wide.html"
expect_match '<th scope="col" class="long">of students with 3 or more answers</th>' "$TMP/wide.html"
expect_match '<th scope="col" class="long">of skills with 3 or more answers</th>' "$TMP/wide.html"
expect_status 0 "$COHORT" report "$TMP/wide" -o "$TMP/wide.html"
expect_match "20 of $(needs 2 | wc -l) skills that need help are shown" "$TMP/wide.html"
expect_match '15 of 40 skills are shown' "$TMP/wide.html"
expect_match 'Based on 60 students with at least 10 attempts and on the 20 of 40 skills' "$TMP/wide.html"

section "names"
expect_no_match '>s[0-9]+<|s[0-9]+,' "$TMP/bkt.html"
expect_match '>no\. [0-9]+</text>' "$TMP/bkt.html"
# No label looks like a name of the data set: names are s1, s2, ..., or in simulated data student-1.
expect_no_match 'student [0-9]+<' "$TMP/bkt.html"
expect_match 'no. 31 need not be the student called student-31' "$TMP/bkt.html"
expect_status 0 "$COHORT" report "$TMP/bkt" --names -o "$TMP/named.html"
expect_match '>s[0-9]+</text>' "$TMP/named.html"
expect_match '<bdi>s[0-9]+</bdi>' "$TMP/named.html"
expect_no_match '>no\. [0-9]+<|These numbers are not names' "$TMP/named.html"
expect_status 1 ranks 2 "$COHORT" report "$TMP/bkt" --student s1234 -o "$TMP/no.html"
expect_match "no student is called 's1234'; .* the nearest: 's123', 's124', 's134'"
expect_status 2 "$COHORT" report "$TMP/bkt" "$TMP/ktm" --student s1 -o "$TMP/no.html"
expect_match 'expected one'
check "nothing is left behind" test ! -e "$TMP/no.html"

section "names with any characters"
nasty=('<script>alert(1)</script>' $'two\nlines' 'a "quoted" & '"'other'" $'\u05d0\u05d1\u202e</bdi>' '%s%n')
{
    echo "student,item,skill,outcome"
    for s in "${nasty[@]}"; do
        for i in $(seq 1 12); do printf '"%s",i%d,"%s",%d\n' "${s//\"/\"\"}" "$i" "${nasty[i % 5]//\"/\"\"}" $((i % 3 > 0)); done
    done
} >"$TMP/nasty.csv"
expect_status 0 "$COHORT" import csv "$TMP/nasty.csv" --split none -o "$TMP/nasty.h5"
train nasty data="$TMP/nasty.h5" model.kind=bkt train.epochs=5
expect_status 0 "$COHORT" report "$TMP/nasty" --names --split train -o "$TMP/nasty.html"
i=0
for s in "${nasty[@]}"; do
    expect_status 0 "$COHORT" report "$TMP/nasty" --student "$s" -o "$TMP/nasty$((++i)).html"
done
expect_match '<h1><bdi>&lt;script&gt;alert\(1\)&lt;/script&gt;</bdi></h1>' "$TMP/nasty1.html"
expect_match '<h1><bdi>two lines</bdi></h1>' "$TMP/nasty2.html"
expect_match '<h1><bdi>a &quot;quoted&quot; &amp; &#39;other&#39;</bdi></h1>' "$TMP/nasty3.html"
expect_no_match '<script|alert\(1\)</' "$TMP"/nasty*.html
expect_equal "$(cat "$TMP"/nasty*.html | grep -o '<bdi>' | wc -l)" "$(cat "$TMP"/nasty*.html | grep -o '</bdi>' | wc -l)" "every <bdi> is closed once"

section "data without skills, targets"
cut -d , -f 1,2,4 "$TMP/chain.csv" >"$TMP/items.csv"
run "$COHORT" import csv "$TMP/items.csv" --split by-attempt=80/10/10 -o "$TMP/items.h5" || fail "import"
train items data="$TMP/items.h5" model.kind=lme train.epochs=5
expect_status 0 "$COHORT" report "$TMP/items" -o "$TMP/items.html"
expect_match 'Mastery of students and items' "$TMP/items.html"
expect_status 0 "$COHORT" report "$TMP/items" --student s3 -o "$TMP/items3.html"
expect_match 'Answers that are withheld from the model' "$TMP/items3.html"
expect_match 'Each row is one of the 12 items tried most in these attempts' "$TMP/items3.html"
# Where a model assumes that abilities do not change, the pages say so.
train rasch data="$TMP/chain.h5" model.kind=ktm model.preset=rasch train.epochs=3
expect_status 0 "$COHORT" report "$TMP/rasch" --student s7 -o "$TMP/rasch7.html"
for page in items items3 rasch7; do
    expect_match 'This model assumes a fixed ability: a rising line means a better estimate, not learning' "$TMP/$page.html"
done
expect_no_match 'fixed ability' "$TMP/s7.html" "$TMP/ktm7.html" "$TMP/bkt.html"
for s in $(seq 1 300); do echo "s$s,$((s % 2))"; done >"$TMP/targets.csv"
run "$COHORT" import csv "$TMP/chain.csv" --targets "$TMP/targets.csv" -o "$TMP/targets.h5" || fail "import"
# shellcheck disable=SC2086
train final data="$TMP/targets.h5" model.kind=dkt model.task=final model.hidden=4 $adam
expect_status 1 "$COHORT" report "$TMP/final" --student s3 -o "$TMP/no.html"
expect_match 'predicts one target per student'

section "a model that is not to be relied on"
run "$COHORT" simulate bkt --students 100 --skills 4 --items 12 --shuffle-outcomes --seed 4 -o "$TMP/noise.h5" || fail "simulate"
train noise data="$TMP/noise.h5" model.kind=bkt train.epochs=5
expect_status 0 "$COHORT" report "$TMP/noise" --student student-7 -o "$TMP/noise7.html"
expect_match 'Do not rely on this page. Its model predicts answers (no|hardly) better than' "$TMP/noise7.html"
expect_no_match 'Do not rely' "$TMP/s7.html" "$TMP/bkt.html"
# The warning comes before the summary, which has no green edge then.
expect_equal 1 "$(sed '/<p>Of [0-9]* skills tried/q' "$TMP/noise7.html" | grep -c 'Do not rely')" "the warning comes first"
expect_no_match 'class="lead"' "$TMP/noise7.html"
expect_match 'class="lead"' "$TMP/s7.html"
expect_status 0 "$COHORT" report "$TMP/noise" -o "$TMP/noise.html"
expect_match '^<p class="lead warn">Do not rely on this section: the model' "$TMP/noise.html"
# No praise where the amber box follows.
expect_no_match 'class="lead">|taken (almost )?literally' "$TMP/noise.html"

section "one student, items answered once"
awk 'BEGIN { srand(2); print "student,item,outcome"; for (i = 1; i <= 40; i++) printf "solo,i%d,%d\n", i, rand() < 0.6 }' >"$TMP/solo.csv"
run "$COHORT" import csv "$TMP/solo.csv" --split by-attempt=80/10/10 -o "$TMP/solo.h5" || fail "import"
train solo data="$TMP/solo.h5" model.kind=lme train.epochs=3
expect_status 0 "$COHORT" report "$TMP/solo" -o "$TMP/solo.html"
expect_match 'so few prove nothing about a model' "$TMP/solo.html"
expect_no_match 'class="lead">|<small>|[^0-9.,]1 students' "$TMP/solo.html"
expect_match 'No item has 3 answers of one student' "$TMP/solo.html"
expect_match 'Do not rely on this section: the model was tested on too few answers' "$TMP/solo.html"
expect_no_match 'Nobody needs help' "$TMP/solo.html"
expect_status 0 "$COHORT" report "$TMP/solo" --student solo -o "$TMP/solo1.html"
expect_match 'No item has 3 answers yet' "$TMP/solo1.html"
expect_match 'Do not rely on this page. Its model was tested on [0-9]+ answers? of 1 student only' "$TMP/solo1.html"
