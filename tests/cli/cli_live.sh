#!/bin/bash
# predict --next and --mastery: the chances of every student at every item and skill, now and after every attempt;
# predict --follow: answers to attempts as they come. All with the digits of predict, for every kind of model.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/bits.sh
cd "$TMP" || exit
run bits_data "$TMP" "$COHORT" || fail "simulate"

# A class without splits inside students, as CSV: the last attempt of each student is for testing.
# class NAME: writes NAME-all.csv (with the split) and NAME-before.csv (without the last attempts), and imports both.
class() {
    run "$COHORT" predict "$TMP/$2" -o "$TMP/$1.csv" || fail "predict $2"
    awk -F, -v OFS=, 'NR == 1 { next } { n[$1]++; line[++m] = $1 OFS $2 OFS ($4 == "" ? "NA" : $4); of[m] = $1 }
        END { print "student,item,outcome,split"
            for (i = 1; i <= m; i++) print line[i], ++seen[of[i]] == n[of[i]] ? "test" : "train" }' \
        "$TMP/$1.csv" >"$TMP/$1-all.csv"
    grep -v ',test$' "$TMP/$1-all.csv" | cut -d , -f 1-3 >"$TMP/$1-before.csv"
    run "$COHORT" import csv "$TMP/$1-all.csv" --split-column split --withheld -o "$TMP/$1-all.h5" || fail "import $1"
    run "$COHORT" import csv "$TMP/$1-before.csv" --split none -o "$TMP/$1-before.h5" || fail "import $1, all but the last"
}

for name in $bits_names; do
    run bits_run "$TMP" "$name" "$name" "$COHORT" || fail "train $name"
done
class bkt bkt
class tails rbm
class irt vae

section "the chance at the next item is what predict says when it comes"
for name in $bits_names; do
    case $name in rbm | dkt-lstm | rtrbm | ktm-student | average) data=tails ;; vae*) data=irt ;; *) data=bkt ;; esac
    expect_status 0 "$COHORT" predict "$TMP/$name" --data "$TMP/$data-all.h5" --split test -o "$TMP/asked.csv"
    expect_status 0 "$COHORT" predict "$TMP/$name" --data "$TMP/$data-before.h5" --next -o "$TMP/next.csv"
    awk -F, 'FNR == 1 { next } FNR == NR { p[$1, $2] = $3; next }
        ($1, $2) in p { n++; bad += p[$1, $2] != $5; next } { single++ }
        END { exit !(n > 40 && bad == 0 && single < 5) }' "$TMP/next.csv" "$TMP/asked.csv"
    check "$name: same digits" [ $? = 0 ]
done

section "rows"
n_items=$("$COHORT" inspect "$TMP/bkt.h5" --json | json_of /dev/stdin items)
expect_status 0 "$COHORT" predict "$TMP/dkt-gru" --next -o "$TMP/next.csv"
expect_equal "student,item,probability,basis" "$(head -1 "$TMP/next.csv")"
expect_equal "$((60 * n_items + 1))" "$(wc -l <"$TMP/next.csv")" "a row per student and item"
expect_status 0 "$COHORT" predict "$TMP/dkt-gru" --next=skills -o "$TMP/skills.csv"
expect_equal "$((60 * 4 + 1))" "$(wc -l <"$TMP/skills.csv")" "a row per student and skill"
expect_status 0 "$COHORT" predict "$TMP/dkt-gru" --mastery -o "$TMP/mastery.csv"
expect_equal "student,skill,attempts,mastery" "$(head -1 "$TMP/mastery.csv")"
expect_equal "$(cut -d , -f 3 "$TMP/skills.csv" | tail -n +2 | cksum)" "$(cut -d , -f 4 "$TMP/mastery.csv" | tail -n +2 | cksum)" \
    "dkt: mastery is the mean chance"
# items of skill k of a simulated class are k, k + 4, ...
awk -F, 'FNR == 1 { next } FNR == NR { split($2, i, "-"); k = (i[2] - 1) % 4 + 1; s[$1, "skill-" k] += $3; n[$1, "skill-" k]++; next }
    { d = s[$1, $2] / n[$1, $2] - $4; bad += d > 1e-6 || d < -1e-6; m++ } END { exit !(m == 240 && bad == 0) }' \
    "$TMP/next.csv" "$TMP/mastery.csv"
check "the mean over the items of a skill" [ $? = 0 ]
expect_status 0 "$COHORT" predict "$TMP/dkt-gru" --mastery --split test -o "$TMP/test.csv"
expect_equal "$((6 * 4 + 1))" "$(wc -l <"$TMP/test.csv")" "--split: students with attempts in it"
for n in 2 3; do
    expect_status 0 ranks "$n" "$COHORT" predict "$TMP/dkt-gru" --next -o "$TMP/next-$n.csv"
    expect_status 0 ranks "$n" "$COHORT" predict "$TMP/bkt" --mastery=each -o "$TMP/each-$n.csv"
done
expect_status 0 "$COHORT" predict "$TMP/bkt" --mastery=each -o "$TMP/each.csv"
expect_same "$TMP/next.csv" "$TMP/next-2.csv" "$TMP/next-3.csv"
expect_same "$TMP/each.csv" "$TMP/each-2.csv" "$TMP/each-3.csv"
expect_status 0 "$COHORT" predict "$TMP/bkt" --mastery=each -o "$TMP/each.h5"
expect_status 0 "$COHORT" predict "$TMP/bkt" --mastery=each -o "$TMP/each.jsonl"
expect_equal "$(wc -l <"$TMP/each.jsonl")" "$(($(wc -l <"$TMP/each.csv") - 1))" "as many JSON lines"

section "bkt: P(known) by the formulas of Corbett and Anderson"
expect_status 0 "$COHORT" export "$TMP/bkt" -o "$TMP/bkt-tensors"
expect_status 0 "$COHORT" predict "$TMP/bkt" --mastery -o "$TMP/now.csv"
"$COHORT" inspect "$TMP/bkt" | awk '/^skill-/ { print }' >"$TMP/rates"
awk 'FNR == NR { p0[$1] = $2; l[$1] = $3; g[$1] = $4; s[$1] = $5; f[$1] = $6; next }
    FNR == 1 { FS = ","; next }
    { split($0, c, ","); k = c[5]; id = c[1] SUBSEP k
      if (!(id in p)) p[id] = p0[k]
      a = c[4] ? 1 - s[k] : s[k]; b = c[4] ? g[k] : 1 - g[k]
      q = p[id] * a / (p[id] * a + (1 - p[id]) * b); p[id] = q * (1 - f[k]) + (1 - q) * l[k]
      d = p[id] - c[7]; n++; bad += d > 0.01 || d < -0.01 }
    END { exit !(n > 2000 && bad == 0) }' "$TMP/rates" "$TMP/each.csv"
check "after each attempt" [ $? = 0 ]
# the last row of each student and skill is what holds now
awk -F, 'FNR == 1 { next } FNR == NR { last[$1, $5] = $7; n[$1, $5] = $6; next }
    $3 > 0 { m++; bad += last[$1, $2] != $4 || n[$1, $2] != $3 } END { exit !(m > 200 && bad == 0) }' \
    "$TMP/each.csv" "$TMP/now.csv"
check "now is after the last attempt" [ $? = 0 ]

section "data without skills"
expect_status 0 "$COHORT" train data=irt-before.h5 run=plain model.kind=average train.epochs=1
expect_status 0 "$COHORT" predict plain --mastery -o items.csv
expect_match "every item counts as a skill"
expect_status 0 "$COHORT" predict plain --next -o next.csv
expect_equal "$(cut -d , -f 2,3 next.csv | tail -n +2 | cksum)" "$(cut -d , -f 2,4 items.csv | tail -n +2 | cksum)" \
    "items are skills"

section "what does not go together"
expect_status 2 "$COHORT" predict "$TMP/bkt" --next --mastery -o "$TMP/x.csv"
expect_match "one of them at a time"
expect_status 1 "$COHORT" predict "$TMP/bkt" --next=tags -o "$TMP/x.csv"
expect_match "items, skills"
check "nothing is written" [ ! -e "$TMP/x.csv" ]
expect_status 0 "$COHORT" help predict
expect_match "next\[=items\|skills\]"

# lines DATA: the attempts of a class as lines, students in turn, and a data set of them, all in one split. One outcome in
# nine is not known.
lines() {
    awk -F, -v OFS=, 'NR > 1 { $3 = NR % 9 ? $3 : "unknown"; print ++n[$1], $1, $2, $3 == "NA" ? "unknown" : $3 }' "$1-all.csv" |
        sort -t , -k 1,1n -s | sed '1i n,student,item,outcome' | cut -d , -f 2-4 >"$1-lines.csv"
    sed 's/,unknown$/,NA/' "$1-lines.csv" >"$1-file.csv"
    run "$COHORT" import csv "$1-file.csv" --split none -o "$1-lines.h5" || fail "import the lines of $1"
}
lines bkt
lines tails
lines irt

section "follow has the digits of predict"
for name in $bits_names; do
    case $name in rbm | dkt-lstm | rtrbm | ktm-student | average) data=tails ;; vae*) data=irt ;; *) data=bkt ;; esac
    expect_status 0 "$COHORT" predict "$name" --data "$data-lines.h5" -o predicted.csv
    expect_status 0 "$COHORT" predict "$name" --follow <"$data-lines.csv"
    output >followed.csv
    awk -F, 'FNR == 1 { for (c = 1; FNR == NR && c <= NF; c++) at[$c] = c; next }
        FNR == NR { p[$at["row"] + 1] = $at["probability"]; next } { n++; bad += p[$1] != $4 }
        END { exit !(n > 500 && bad == 0) }' predicted.csv followed.csv
    check "$name: same digits" [ $? = 0 ]
done
expect_equal "line,student,item,probability,note,error" "$(head -1 followed.csv)"

section "JSON"
awk -F, 'NR > 1 { printf "{\"student\": \"%s\", \"item\": \"%s\", \"outcome\": %s}\n", $1, $2, $3 == "unknown" ? "\"unknown\"" : $3 }' \
    bkt-lines.csv >bkt-lines.jsonl
expect_status 0 "$COHORT" predict dkt-gru --follow <bkt-lines.csv
output | cut -d , -f 4 | tail -n +2 >csv-answers
expect_status 0 "$COHORT" predict dkt-gru --follow <bkt-lines.jsonl
output | sed 's/.*"probability": \([^,}]*\)}$/\1/' >json-answers
expect_same csv-answers json-answers

# slowly RUN [OPTION...]: follows lines of CSV from standard input, each one after the answer to the one before, and
# prints the answers.
slowly() {
    coproc slow { "$COHORT" predict "$@" --follow 2>/dev/null; }
    exec 7>&"${slow[1]}" 8<&"${slow[0]}"
    while read -r line; do
        echo "$line" >&7
        read -r answer <&8
        echo "$answer"
    done
    exec 7>&- 8<&-
    eval "exec ${slow[1]}>&-"
    wait
}

section "one line at a time is answered like all at once"
slowly dkt-gru < <(head -201 bkt-lines.csv) | cut -d , -f 4 | tail -n +2 >slow-answers
head -200 csv-answers >first-answers
expect_same first-answers slow-answers

section "the past comes from a data set"
half=700
{ head -1 bkt-file.csv && sed -n "2,$((half + 1))p" bkt-file.csv; } >past.csv
{ head -1 bkt-lines.csv && sed -n "$((half + 2)),\$p" bkt-lines.csv; } >rest.csv
run "$COHORT" import csv past.csv --split none -o past.h5 || fail "import"
for name in dkt-gru bkt blend; do
    expect_status 0 "$COHORT" predict "$name" --follow <bkt-lines.csv
    output | cut -d , -f 4 | sed -n "$((half + 2)),\$p" >whole
    expect_status 0 "$COHORT" predict "$name" --data past.h5 --follow <rest.csv
    output | cut -d , -f 4 | tail -n +2 >continued
    expect_same whole continued
done

section "pseudonyms: names find their students, and answers have the names"
run "$COHORT" import csv past.csv --split none --pseudonyms key -o secret.h5 || fail "import"
expect_status 0 "$COHORT" predict bkt --data past.h5 --follow <rest.csv
output >named
expect_status 0 "$COHORT" predict bkt --data secret.h5 --follow --pseudonyms key <rest.csv
output >hashed
expect_same named hashed
expect_status 1 "$COHORT" predict bkt --data secret.h5 --follow --pseudonyms no-key <rest.csv
expect_match 'no-key: no such file; name the key file'
check "no key is created" test ! -e no-key
expect_status 2 "$COHORT" predict bkt --pseudonyms key -o x.csv
expect_match '--pseudonyms goes with --follow'
expect_status 2 "$COHORT" predict bkt --time-unit ms -o x.csv
expect_match '--time-unit and --time-format go with --follow'

section "outcomes that the split withholds are counted, not used"
run "$COHORT" import csv past.csv --split by-last -o held.h5 || fail "import"
for how in "--next -o x.csv" "--mastery -o x.csv" --follow; do
    # shellcheck disable=SC2086 # options
    expect_status 0 "$COHORT" predict bkt --data held.h5 $how </dev/null
    expect_match '^note: [0-9]+ outcomes of held.h5 are withheld by its split and not used; import the log with --split none'
done
expect_status 0 "$COHORT" predict bkt --data past.h5 --next -o x.csv
expect_no_match 'withheld'

section "questions teach nothing"
printf 'student,item,outcome\na,item-1,1\na,item-2,\na,item-2,\na,item-2,0\na,item-2,\n' >questions.csv
expect_status 0 "$COHORT" predict dkt-gru --follow <questions.csv
expect_equal 1 "$(output | sed -n '3,5p' | cut -d , -f 4 | sort -u | wc -l)" "the same answer"
check "an answer teaches" [ "$(output | sed -n 5p | cut -d , -f 4)" != "$(output | sed -n 6p | cut -d , -f 4)" ]

section "bad lines are answered too, and the others as if they were not there"
{
    printf '\357\273\277Student;item;Outcome;time\r\n'
    printf 'a;item-1;1;\r\n'
    printf 'a;item-1;maybe;\r\n;item-1;1;\r\na;;1;\r\n\r\na;item-1;1\r\n'
    printf 'a;"item-1;1;\r\na;"item"-1;1;\r\na;item-1;1;soon\r\na;item-\0001;1;\r\n'
    printf '"b;""c""";item-2;yes;2012-09-28 15:11:00\r\n'
    printf 'a;no such item;1;\r\n'
    head -c 1200000 /dev/zero | tr '\0' x
    printf '\na;item-2;0;'
} >bad.csv
expect_status 3 "$COHORT" predict dkt-gru --follow <bad.csv
expect_match "^cohort: 9 of 13 lines could not be answered; the first is standard input:3: outcome 'maybe'"
expect_match "^3,a,item-1,,,.outcome 'maybe' is not 0/1"
expect_match "^4,,item-1,,,no student"
expect_match "^5,a,,,,no item"
expect_match "^7,.*,\"?3 cells, but the header has 4"
expect_match "^8,.*a quote is not closed"
expect_match "^10,a,item-1,,,.time 'soon' is neither a number nor a known form of date"
expect_match "^11,.*NUL byte"
expect_match '^12,"b;""c""",item-2,0\.[0-9]*,,$'
expect_match "^13,a,no such item,0\.[0-9]*,unseen item: mean over all items,"
expect_match "^14,.*the line is too long"
printf 'student,item,outcome\na,item-1,1\na,item-2,0\n' >good.csv
expect_match '^answered lines: 4, with an outcome: 4'
answers=$(output | grep -a -E '^(2|15),' | cut -d , -f 4)
expect_status 0 "$COHORT" predict dkt-gru --follow <good.csv
expect_equal "$(echo "$answers" | head -1)" "$(output | sed -n 2p | cut -d , -f 4)" "the good ones"
printf '{"student": 7, "item": "item-1", "outcome": true}\n[]\nx\n{"student": {}, "item": 1}\n{"student": "7", "item": "new", "skills": ["skill-2", "?"]}\n' >bad.jsonl
expect_status 3 "$COHORT" predict dkt-gru --follow <bad.jsonl
expect_match '^\{"line": 1, "student": "7", "item": "item-1", "probability": 0\.[0-9]*\}$'
expect_match '"line": 2, "error": "not a JSON object'
expect_match '"line": 4, .*student is an object'
expect_match '"line": 5, .*"note": "unseen item: mean over items of its skills"'
printf '{"student": " a\\t", "item": " item-1 ", "outcome": " 1 "}\n{"student": "a", "item": " "}\n' >blanks.jsonl
expect_status 3 "$COHORT" predict dkt-gru --follow <blanks.jsonl
expect_match '^\{"line": 1, "student": "a", "item": "item-1", "probability": 0\.[0-9]*\}$'
expect_match '"line": 2, "student": "a", "error": "no item"'

section "the mean over the items of skills"
expect_status 0 "$COHORT" predict bkt --next=skills -o next.csv
printf 'student,item,outcome,skills\nnew,never,,skill-2\nnew,item-2,,\n' >unseen.csv
expect_status 0 "$COHORT" predict bkt --follow <unseen.csv
expect_equal "$(output | sed -n 2p | cut -d , -f 4)" "$(output | sed -n 3p | cut -d , -f 4)" "bkt: items of a skill are alike"

printf 'student,item,outcome,skills\nnew,never,1,skill-2\nnew,item-2,1,\nnew,item-2,,\n' >unseen.csv
expect_status 0 "$COHORT" predict bkt --follow <unseen.csv
output | cut -d , -f 4 >taught
printf 'student,item,outcome\nnew,item-6,1\nnew,item-2,1\nnew,item-2,\n' >seen.csv
expect_status 0 "$COHORT" predict bkt --follow <seen.csv
output | cut -d , -f 4 >as-seen
expect_same taught as-seen

section "new items: follow has the digits of predict"
# A third of the items gets a new name; the new ones have their skills, or none.
awk -F, -v OFS=, 'NR == 1 { print $0, "skills"; next } { split($2, i, "-"); k = "skill-" (i[2] - 1) % 4 + 1
    if (i[2] % 3 == 0) { $2 = "new-" i[2]; if (i[2] % 2) k = "" } print $0, k }' bkt-lines.csv >new-lines.csv
sed 's/,unknown,/,NA,/' new-lines.csv >new-file.csv
run "$COHORT" import csv new-file.csv --split none -o new.h5 || fail "import"
{ head -1 new-file.csv && sed -n "2,$((half + 1))p" new-file.csv; } >past.csv
{ head -1 new-lines.csv && sed -n "$((half + 2)),\$p" new-lines.csv; } >rest.csv
run "$COHORT" import csv past.csv --split none -o past.h5 || fail "import"
for name in bkt dkt-gru ktm lme blend; do
    expect_status 0 "$COHORT" predict "$name" --data new.h5 -o predicted.csv
    expect_equal "mean skill" "$(tail -n +2 predicted.csv | cut -d , -f 7 | grep -v item | sort -u | xargs)" "$name: bases"
    expect_status 0 "$COHORT" predict "$name" --follow <new-lines.csv
    output >followed.csv
    expect_status 0 "$COHORT" predict "$name" --data past.h5 --follow <rest.csv
    output >continued.csv
    awk -F, 'FNR == 1 { for (c = 1; FNR == NR && c <= NF; c++) at[$c] = c; next }
        FNR == NR { p[$at["row"] + 1] = $at["probability"]; next } { n++; bad += p[$1] != $4 }
        END { exit !(n > 500 && bad == 0) }' predicted.csv followed.csv
    check "$name: same digits" [ $? = 0 ]
    expect_equal "$(tail -n +$((half + 2)) followed.csv | cut -d , -f 4 | cksum)" \
        "$(tail -n +2 continued.csv | cut -d , -f 4 | cksum)" "$name: after a data set with new items"
done

section "a later line about a new item does not change the answer to an earlier one"
printf 'student,item,outcome,skills\n%s' 'ann,newest,,skill-1
bob,newest,,skill-2
cid,newest,1,skill-3
bob,newest,,
ann,newest,,skill-1
' >described.csv
expect_status 0 "$COHORT" predict dkt-gru --follow <described.csv
output >at-once
slowly dkt-gru <described.csv >one-by-one
expect_same at-once one-by-one
expect_equal 3 "$(sed -n '2,4p' at-once | cut -d , -f 4 | sort -u | wc -l)" "skills count"

section "a line that is refused describes no item"
expect_status 3 "$COHORT" predict dkt-gru --follow --students 1 < <(head -3 described.csv && echo ann,newest,,)
first=$(sed -n 2p at-once | cut -d , -f 4)
expect_equal "$first $first" "$(output | grep ,ann, | cut -d , -f 4 | xargs)" "the answer stays"

section "--next at new items has the digits of follow"
printf 'student,item,outcome,skills\nfresh,item-1,1,skill-1\nfresh,item-2,0,skill-2\nother,never-9,1,skill-1\n' >few.csv
run "$COHORT" import csv few.csv --split none -o few.h5 || fail "import"
for name in bkt dkt-gru lme; do
    expect_status 0 "$COHORT" predict "$name" --data few.h5 --next -o next.csv
    expect_equal "student,item,probability,basis" "$(head -1 next.csv)"
    expect_status 0 "$COHORT" predict "$name" --data few.h5 --follow \
        < <(printf 'student,item,outcome,skills\nfresh,never-9,,skill-1\n')
    expect_equal "fresh,never-9,$(output | sed -n 2p | cut -d , -f 4),skill" "$(grep ^fresh,never-9, next.csv)" "$name"
done
expect_status 0 "$COHORT" predict bkt --data few.h5 --next -o next.h5
expect_status 0 "$COHORT" predict bkt --data few.h5 --next=skills -o next.csv
expect_match '^note: --next=skills has the 4 skills that the model was trained on, .*new skills are skipped until'

section "times in the forms that import reads"
# Attempts of a few students, an hour to a day apart.
awk 'BEGIN { print "student,item,outcome,when"; srand(4)
    for (i = 1; i <= 600; i++) { t += 3600 * int(1 + 24 * rand()); printf "s%d,q%d,%d,%d\n", i % 20, i % 7, rand() < 0.6, 1348845060 + t } }' >clock.csv
run "$COHORT" import csv clock.csv --time when --split by-student -o clock.h5 || fail "import"
run "$COHORT" train data=clock.h5 run=clock model.kind=ktm model.features='item student wins:within=100000' train.epochs=3 ||
    fail "train with times"
expect_status 0 "$COHORT" predict clock -o predicted.csv
tail -n +2 predicted.csv | sort -t , -k 8n | cut -d , -f 5 >expected
# form FORMAT [OPTION...]: follows the same attempts with times in another form.
form() {
    local format=$1
    shift
    TZ=UTC awk -F, -v OFS=, -v f="$format" 'NR == 1 { print $1, $2, $3, "time"; next }
        { $4 = f == "ms" ? $4 "000" : strftime(f, $4, 1); print }' clock.csv >form.csv
    expect_status 0 "$COHORT" predict clock --follow "$@" <form.csv
    output | tail -n +2 | cut -d , -f 4 >got
    expect_same expected got
}
form '%d.%m.%Y %H:%M'
form '%m/%d/%Y %I:%M %p'
form '%Y-%m-%dT%H:%M:%S.250Z'
form ms
form '%d/%m/%Y %H:%M' --time-format '%d/%m/%Y %H:%M'
printf 'student,item,outcome,time\ns1,q1,1,28.09.2012 15:11\ns1,q2,,1348845060\n' >mixed.csv
expect_status 3 "$COHORT" predict clock --follow <mixed.csv
expect_match "^3,s1,q2,,,time '1348845060' does not have the form %d.%m.%Y %H:%M"
expect_status 1 "$COHORT" predict clock --follow --time-format '%Q' <mixed.csv

section "columns and keys by the names that import knows"
expect_status 0 "$COHORT" predict bkt --follow < <(sed '1s/student,item,outcome/user_id,question,Correct/' good.csv)
output | tail -n +2 >got
expect_match 'columns found by name: student = user_id, item = question, outcome = Correct'
expect_status 0 "$COHORT" predict bkt --follow <good.csv
output | tail -n +2 >expected
expect_no_match 'found by name|unused'
check "something was answered" test -s expected
expect_same expected got
printf 'student,item,hint\ns1,q1,1\n' >hint.csv
expect_status 0 "$COHORT" predict bkt --follow <hint.csv
expect_match '^warning: standard input: unused columns: hint'
expect_match '^warning: standard input: no column has outcomes'
printf '{"student": "s1", "item": "q1", "%s": 1, "hint": 2}\n' Outcome Outcome >keys.jsonl
expect_status 0 "$COHORT" predict bkt --follow <keys.jsonl
expect_match 'key found by name: outcome = Outcome'
expect_match '^answered lines: 2, with an outcome: 2'
expect_equal 1 "$(errors | grep -c 'unused key: hint')" "an unused key is reported once"
expect_equal 2 "$(output | sed 's/.*probability": //' | sort -u | wc -l)" "the outcome was learned"

printf '{"student": "s1", "item": "q1", "skills": ["a", {"b": 1}]}\n{"student": "s1", "item": ["q1"]}\n' >lists.jsonl
expect_status 3 "$COHORT" predict bkt --follow <lists.jsonl
expect_match 'skills is a list that holds another list or an object; expected .*, or a list of these'
expect_match 'item is an array; expected a string, a number or true/false"'

section "--strict refuses new items"
printf 'student,item,outcome\ns1,nowhere,1\ns1,nowhere,\n' >strict.csv
expect_status 3 "$COHORT" predict bkt --follow --strict <strict.csv
expect_match "^2,s1,nowhere,,,the model was not trained on item 'nowhere' .--strict"
expect_status 0 "$COHORT" predict bkt --follow <strict.csv

section "numeric times have the unit of the data set"
# As seconds, these are a second apart; by themselves the first ones look like dates.
awk -F, -v OFS=, 'NR == 1 { print $0, "time"; next } { print $0, 20240100 + ++n[$1] }' bkt-file.csv |
    sed 's/,NA,/,,/' >numbers.csv
run "$COHORT" import csv numbers.csv --time-unit s --split none -o numbers.h5 || fail "import"
run "$COHORT" train data=numbers.h5 run=windows model.kind=ktm \
    'model.features=item wins:within=9:log fails:within=9:log' train.epochs=5 || fail "train"
run "$COHORT" predict windows -o predicted.csv || fail "predict"
head -n "$((half + 1))" numbers.csv >past.csv
{ head -1 numbers.csv && tail -n "+$((half + 2))" numbers.csv; } >rest.csv
run "$COHORT" import csv past.csv --time-unit s --split none -o past.h5 || fail "import"
expect_status 0 "$COHORT" predict windows --follow --data past.h5 <rest.csv
awk -F, 'FILENAME == "past.csv" { m[$1]++; next } FNR == 1 { next }
    FILENAME == "predicted.csv" { p[$1, ++n[$1]] = $5; next }
    { rows++; bad += p[$2, ++m[$2]] != $4 } END { exit !(rows > 500 && bad == 0) }' \
    past.csv predicted.csv "$LIB_OUT"
check "the digits of predict" [ $? = 0 ]
expect_status 3 "$COHORT" predict windows --follow --data past.h5 < <(echo student,item,time; echo a,item-1,1348845160000)
expect_match "time '1348845160000' is not a number of seconds, like the others .--time-unit."

section "times in ISO 8601 with and without fractions"
awk -F, -v OFS=, 'NR == 1 { print; next } { n = NR % 86400
    $NF = sprintf("2024-04-01T%02d:%02d:%02d", n / 3600, n / 60 % 60, n % 60) (NR % 3 ? ".250" : "") "Z"; print }' numbers.csv >iso.csv
head -n "$((half + 1))" iso.csv >past.csv
{ head -1 iso.csv && tail -n "+$((half + 2))" iso.csv; } >rest.csv
run "$COHORT" import csv past.csv --split none -o past.h5 || fail "import"
expect_status 0 "$COHORT" predict windows --follow --data past.h5 <rest.csv
expect_no_match 'does not have the form'

section "what cannot be followed"
expect_status 0 "$COHORT" predict bkt --follow </dev/null
printf 'who,item\na,b\n' >header.csv
expect_status 3 "$COHORT" predict bkt --follow <header.csv
expect_match "no column 'student' in 'who,item'"
printf 'student,item,student\na,b,c\n' >header.csv
expect_status 3 "$COHORT" predict bkt --follow <header.csv
expect_match "^cohort: standard input:1: columns 1 and 3 are both called 'student'"
{ printf 'student,item,outcome' && head -c 1200000 /dev/zero | tr '\0' ,; } >header.csv
expect_status 3 "$COHORT" predict bkt --follow <header.csv
expect_match "^cohort: standard input:1: the line is too long for a header"
expect_equal "" "$(output)" "answers without a header"
expect_status 2 "$COHORT" predict bkt --follow --next <good.csv
expect_status 2 "$COHORT" predict bkt --follow -o x.csv <good.csv
expect_match "answers on standard output"
expect_status 1 ranks 2 "$COHORT" predict bkt --follow
expect_match "on one rank, but there are 2"
expect_status 3 "$COHORT" predict bkt --follow --students 2 <bkt-lines.csv
expect_match "already following 2 students; raise --students"

section "a reader that goes away"
{
    printf 'student,item,outcome\n'
    yes 'a,item-1,1' | head -100000
} >many.csv
"$COHORT" predict bkt --follow <many.csv 2>errors | head -1 >first
expect_equal "74 0" "${PIPESTATUS[*]}" "exit status"
expect_equal "line,student,item,probability,note,error" "$(cat first)" "the first line"
expect_match '^cohort: standard output: cannot write: Broken pipe; the output is incomplete' errors

if script -qec true /dev/null >/dev/null 2>&1; then
    section "names on a terminal"
    printf 'student,item,outcome\n\033]0;title\007ann,\033[2Jitem,\n' >escapes.csv
    expect_status 0 "$COHORT" predict bkt --follow <escapes.csv
    expect_equal 3 "$(output | tr -dc '\033\007' | wc -c)" "a file has every byte"
    expect_status 0 script -qec "$COHORT predict bkt --follow <escapes.csv" shown.txt
    expect_match '^2,\\u001b\]0;title\\u0007ann,\\u001b\[2Jitem,0\.[0-9]*,' shown.txt
    expect_equal 0 "$(tr -dc '\033\007' <shown.txt | wc -c)" "control characters on the terminal"
fi
