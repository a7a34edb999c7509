#!/bin/bash
# What looks wrong in an import: it goes on, and a warning says what and which option helps.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70
printf 'student,item,correct\na,q,1\na,r,0\nb,q,1\nb,r,0\n' >few.csv
# imports PATTERN OPTION...: the import succeeds, and a line matches.
imports() {
    expect_status 0 "$COHORT" import csv "${@:2}" -o x.h5
    expect_match "$1"
}
# silent OPTION...: the import succeeds without a warning.
silent() {
    expect_status 0 "$COHORT" import csv "$@" -o x.h5
    expect_no_match '^warning'
}

section "parts without attempts"
imports '^warning: no attempt is for validation or test \(2 students, split by-student=80/10/10\)' few.csv
expect_status 0 "$COHORT" import csv few.csv --split by-student=50/0/50 -o x.h5
expect_no_match '^warning'
silent few.csv --split none
printf 'student,item,correct,part\na,q,1,test\na,r,0,test\nb,q,1,valid\nb,r,0,test\n' >parts.csv
imports '^warning: no known outcome is for training \(split as given\)' parts.csv --split-column part

section "durations and milliseconds taken for times"
{
    echo student,item,correct,elapsed_time,clock,sorted
    for s in 1 2 3 4 5 6; do
        for i in 1 2 3 4 5 6 7 8; do
            echo "s$s,q$i,$(((s + i) % 2)),$((1000 + s * i * 7919 % 9000)),$((1000 * (100 * s + 30 * i))),$((i * 40))"
        done
    done
} >clocks.csv
imports '^warning: column elapsed_time is small and falls in [3-6][0-9] % .*--time none keeps the order' \
    clocks.csv --time elapsed_time --split none
imports '^warning: column clock is read as seconds: half of the pauses .* are 30000 s or longer.*--time-unit ms' \
    clocks.csv --time clock --split none
silent clocks.csv --time clock --time-unit ms --split none
silent clocks.csv --time sorted --split none
silent clocks.csv --time none --split none
printf 'student,item,correct,time\na,q,1,50000000000\na,r,0,50000000009\n' >later.csv
imports '^warning: column time is read as seconds' later.csv --split none
for time in 9e18 99999999999999; do
    printf 'student,item,correct,time\na,q,1,%s\na,r,0,12\n' $time >large.csv
    expect_status 3 "$COHORT" import csv large.csv -o y.h5 --time-unit s
    expect_match "large.csv:2: time '$time' is too large"
done
printf 'student,item,correct,order\na,q,1,9e20\na,r,0,12\n' >large.csv
expect_status 3 "$COHORT" import csv large.csv -o y.h5
expect_match "large.csv:2: order '9e20' is too large"

section "dates with the day and with the month first"
printf 'student,item,correct,time\na,q,1,9/28/2012 3:11 PM\na,r,0,28/9/2012 3:11 PM\nb,q,1,1/2/2012 3:11 PM\n' >mixed.csv
expect_status 3 "$COHORT" import csv mixed.csv -o y.h5
expect_match '^warning: mixed.csv: some dates have a number over 12 first, such as 28/9/2012 3:11 PM, and others second, such as 9/28/2012 3:11 PM; --time-format'
expect_match "mixed.csv:3: time '28/9/2012 3:11 PM' does not have the form %-m/%-d/%Y %-I:%M %p"
expect_no_match 'no number is over 12'
expect_status 0 "$COHORT" import csv mixed.csv --time-format '%d/%m/%Y %I:%M %p' --skip-bad --split none -o x.h5
expect_match '^2 students, 2 attempts'
printf 'student,item,correct,time\na,q,1,soon\na,r,0,28/9/2012 15:11\nb,q,1,1/2/2012 15:11\n' >soon.csv
imports 'times are read as %-d/%-m/%Y %H:%M, such as 28/9/2012 15:11$' soon.csv --skip-bad --split none

section "a first row of scores is not a header"
printf -- '-1,0,1\n1,0,1\n0,0,1\n' >scores.csv
expect_status 3 "$COHORT" import matrix scores.csv -o y.h5
expect_match "scores.csv:1: column 1 is '-1', not 1, 0 or empty"
printf -- '0,1,2\n1,0,1\n0,0,1\n' >numbers.csv
expect_status 0 "$COHORT" import matrix numbers.csv --split none -o x.h5
expect_match '^2 students, 6 attempts'

section "one name in two encodings"
printf 'student,item,correct\nRen\xe9,q,1\nRen\xc3\xa9,r,0\nJos\xc3\xa9,q,1\nJos\xe9,r,0\nZo\xc3\xab,q,1\n' >names.csv
imports '^warning: 2 names occur both as UTF-8 and as Latin-1 and count as one' names.csv --split none
expect_match '^note: 2 names are not UTF-8'
expect_match '^3 students'

printf 'Sch\xfcler,item,correct,teacher\nRen\xe9,q,1,J\xf6rg\nRen\xe9,r,0,J\xc3\xb6rg\n' >header.csv
imports '^warning: 1 name occurs both as UTF-8 and as Latin-1' header.csv --student Schüler --factors teacher --split none
expect_match '^note: 2 names are not UTF-8 and were read as Latin-1'
expect_match '^factor teacher: 1 level'

section "a row per skill is no contradiction, other skills are"
printf 'student,item,correct,skill\na,q,1,x\na,q,1,y\nb,q,0,y\nb,q,0,x\nb,r,0,u;v\na,r,1,v;u\n' >row.csv
silent row.csv --split none
expect_match '^merged 2 rows with another skill'
expect_no_match 'different skills|no skill'
imports '^note: 1 item has different skills in different attempts' row.csv --keep-repeats --split none
{ cat row.csv && printf 'c,q,1,\nc,r,0,NA\n'; } >half.csv
imports '^note: 2 items have no skill in some rows; they have the skills of their other rows' half.csv --split none
expect_no_match 'different skills'
{ cat row.csv && printf 'c,q,1,x\n'; } >other.csv
imports '^note: 1 item has different skills in different attempts; .* the skills of all its rows' other.csv --split none
printf 'student,item,correct,skill,unit\na,q,1,x,1\na,q,1,x,2\n' >units.csv
imports '^note: 1 row repeats the student' units.csv --group unit --split none
expect_no_match 'another skill|different skills'

section "where skills are split is said, and where they are not"
printf 'student,item,correct,skill\na,q,1,Angles | triangles\na,r,0,Salt; pepper\nb,q,1,c|d\nb,r,0,"algebra, ratio"\n' >split.csv
imports "^split.csv: skills are split at '\|', as in 'Angles \| triangles' \(--skill-separator none keeps them whole\)" \
    split.csv --split none
expect_match "^split.csv: skills are split at ';', as in 'Salt; pepper'"
expect_match "^split.csv: skills such as 'algebra, ratio' are not split \(--skill-separator comma splits them\)"
expect_equal 2 "$(errors | grep -c 'are split at')" 'once for each separator'
for separator in none comma '|'; do
    silent split.csv --split none --skill-separator "$separator"
    expect_no_match 'split at|not split'
done
printf '1,a\nq,r\n3~~4,5\n1,0\n' >lines.txt
expect_status 0 "$COHORT" import four-line lines.txt --split none -o x.h5
expect_match "^lines.txt: skills are split at '~~', as in '3~~4'"

section "files that contradict themselves"
imports '^warning: few.csv is both for training and for validation' --train few.csv --valid few.csv
ln -s few.csv link.csv
imports '^warning: link.csv is both for training and for test' --train few.csv --test link.csv
imports '^warning: few.csv is given twice' few.csv few.csv --split none
printf 'q,Sum\nr,Product\nq,Difference\n' >titles.csv
imports '^warning: titles.csv: 1 row has another title for a name than an earlier row; the last' \
    few.csv --item-names titles.csv --split none
printf 'a,1\nb,2\na,3\nb,2\n' >targets.csv
imports '^warning: targets.csv: 1 row has another target for a student' few.csv --targets targets.csv --split none
printf 'item,sum,product\nq,1,0\nr,0,1\nq,0,1\n' >q.csv
imports '^warning: q.csv: 1 row names an item that an earlier row has' few.csv --q-matrix q.csv --split none
printf 'UserId,QuestionId,AnswerId,IsCorrect\na,q,1,1\na,r,2,0\n' >eedi.csv
printf 'AnswerId,DateAnswered\n1,2020-01-01 10:00:00\n2,2020-01-01 11:00:00\n1,2020-01-02 10:00:00\n' >moments.csv
expect_status 0 "$COHORT" import eedi eedi.csv --time-meta moments.csv --split none -o x.h5
expect_match '^warning: moments.csv: 1 row has another time for an answer'

section "a bad row is shown as it is, also with doubled quotes"
printf 'student,item,correct\n"a ""x"" y","q ""z""",1\n"a ""x"" y","q",maybe\n' >quotes.csv
expect_status 3 "$COHORT" import csv quotes.csv -o y.h5
expect_match "quotes.csv:3: outcome 'maybe' is not .*: '\"a \"\"x\"\" y\",\"q\",maybe'; fix"
check 'nothing is written' test ! -e y.h5

section "ties"
expect_status 0 "$COHORT" import csv --help
expect_match 'order of the rows|keep the order'

section "groups of students are no groups of items"
awk 'BEGIN { print "student,item,group,correct"; for (s = 0; s < 8; s++) for (i = 1; i < 4; i++)
    print "s" s ",q" i "," (i == 3 ? "C" : s < 2 ? "A" : "B") "," (s + i) % 2 }' >"$TMP/teachers.csv"
expect_status 0 "$COHORT" import csv "$TMP/teachers.csv" --group group -o "$TMP/teachers.h5"
expect_match '^note: 2 items have different groups in different rows; an item keeps its first one\. Groups of students'
expect_status 0 "$COHORT" simulate irt --students 20 -o "$TMP/teachers.h5"
expect_match '^note: .*teachers.h5 replaced an earlier file of this name'
