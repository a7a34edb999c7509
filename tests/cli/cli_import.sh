#!/bin/bash
# `cohort import` on the command line: exit codes, messages, and the counts of real data.
. "$(dirname "$0")/../lib/lib.sh"
data=../shared/data

section "bytes after a gzip member"
printf 'student,item,outcome\na,i,1\nb,i,0\n' >"$TMP/few.csv"
gzip -c "$TMP/few.csv" >"$TMP/few.csv.gz"
printf 'c,i,1\nd,i,0\n' | gzip -c >"$TMP/more.gz"
cat "$TMP/few.csv.gz" "$TMP/more.gz" >"$TMP/two.csv.gz"
expect_status 0 "$COHORT" import csv "$TMP/two.csv.gz" --split none -o "$TMP/two.h5"
expect_match '^4 students, 4 attempts'
head -c 700 /dev/zero | cat "$TMP/two.csv.gz" - >"$TMP/zeros.csv.gz"
expect_status 0 "$COHORT" import csv "$TMP/zeros.csv.gz" --split none -o "$TMP/two.h5"
printf 'rubbish' | cat "$TMP/two.csv.gz" - >"$TMP/tail.csv.gz"
expect_status 3 "$COHORT" import csv "$TMP/tail.csv.gz" --split none -o "$TMP/tail.h5"
expect_match 'tail.csv.gz: the gzip file is damaged .*its end is followed by'
{ cat "$TMP/few.csv.gz" && printf '\037\213' && tail -c +3 "$TMP/more.gz" | tr '\010' '\011'; } >"$TMP/hurt.csv.gz"
expect_status 3 "$COHORT" import csv "$TMP/hurt.csv.gz" --split none -o "$TMP/hurt.h5"
head -c -3 "$TMP/few.csv.gz" >"$TMP/cut.csv.gz"
expect_status 3 "$COHORT" import csv "$TMP/cut.csv.gz" --split none -o "$TMP/cut.h5"
expect_match 'it ends too early'

section "a bad row is shown as it is in the file"
printf 'user_id,item_id,correct\r\n"a, b","q,1",1\r\n"a, b","q,1",maybe\r\n' >"$TMP/quoted.csv"
expect_status 3 "$COHORT" import csv "$TMP/quoted.csv" -o "$TMP/quoted.h5"
expect_match "quoted.csv:3: outcome 'maybe' is not .*: '\"a, b\",\"q,1\",maybe'; fix the row"

section "control characters in names are shown as text, tabs too"
printf 'student,item,correct\n"a\tb\033[31m",q,1\n"c\td\033[31m","q\te",maybe\n' >"$TMP/tabs.csv"
expect_status 3 "$COHORT" import csv "$TMP/tabs.csv" -o "$TMP/tabs.h5"
expect_match "tabs.csv:3: .*'\"c.td.u001b\[31m\",\"q.te\",maybe'"
check 'no tab reaches the terminal' test -z "$(errors | grep -P '\t')"

section "wrong output names"
cp "$TMP/few.csv" "$TMP/only.csv"
expect_status 1 "$COHORT" import csv "$TMP/only.csv" --split none -o "$TMP/only.csv"
expect_match 'only.csv: this file exists and is not a data set'
expect_same "$TMP/few.csv" "$TMP/only.csv"
expect_status 0 "$COHORT" import csv "$TMP/only.csv" --split none -o "$TMP/two.h5"
expect_status 0 "$COHORT" simulate irt --students 40 --items 5 --seed 1 -o "$TMP/own.h5"
cp "$TMP/own.h5" "$TMP/kept.h5"
expect_status 0 "$COHORT" train model.kind=rbm data="$TMP/own.h5" run="$TMP/own" train.epochs=1
cp "$TMP/own/last.h5" "$TMP/last.h5"
for output in "$TMP/own.h5" "$TMP/own/last.h5"; do
    expect_status 1 "$COHORT" predict "$TMP/own" -o "$output"
    expect_match 'which would be replaced; choose another name'
    expect_status 1 "$COHORT" export "$TMP/own" -o "$output"
done
expect_status 1 "$COHORT" simulate irt --students 5 --items 5 -o "$TMP/own/last.h5"
expect_same "$TMP/kept.h5" "$TMP/own.h5"
expect_same "$TMP/last.h5" "$TMP/own/last.h5"
expect_status 0 "$COHORT" predict "$TMP/own" -o "$TMP/p.h5"
expect_status 0 "$COHORT" predict "$TMP/own" -o "$TMP/p.h5"
cp "$TMP/own.h5" "$TMP/own/last.h5"
expect_status 3 "$COHORT" verify "$TMP/own"
expect_match 'last.h5: this is a data set; expected a checkpoint'
expect_status 74 sh -c '"$COHORT" verify "$TMP/own.h5" >/dev/full'

section "a pipe in the directory of students"
mkdir "$TMP/pipes"
printf 'question_id,correct_answer,part,tags\nq1,d,1,1\n' >"$TMP/pipes/questions.csv"
printf 'timestamp,solving_id,question_id,user_answer,elapsed_time\n1,1,q1,d,5\n' >"$TMP/pipes/u1.csv"
mkfifo "$TMP/pipes/u2.csv"
expect_status 1 timeout 60 "$COHORT" import ednet "$TMP/pipes" -o "$TMP/pipes.h5"
expect_match 'u2.csv: this is a directory, a pipe or a device'

section "folds without students"
expect_status 1 "$COHORT" train model.kind=rbm data="$TMP/own.h5" run="$TMP/folds" train.epochs=1 train.folds=300
expect_match 'no attempt is for .* in fold .* of train.folds = 300 \(students: 40\)'

section 'what it prints'
cat >"$TMP/answers.csv" <<'END'
user_id,item_id,correct,timestamp,skill_id
anna,q1,1,2011-01-02 03:04:05,algebra
anna,q2,0,2011-01-02 03:05:05,algebra
bert,q1,1,2011-02-02 03:04:05,algebra
bert,q3,,2011-02-03 03:04:05,geometry
cleo,q3,0,2012-02-03 03:04:05,geometry
END
columns=(--student user_id --item item_id --outcome correct --time timestamp --skills skill_id)
expect_status 0 "$COHORT" import csv "$TMP/answers.csv" "${columns[@]}" --split by-student=80/10/10 --seed 1 \
    -o "$TMP/a.h5"
expect_match '^3 students, 5 attempts, 3 items, 2 skills'
expect_match '^50.00 % correct of 4 known outcomes, 1 unknown'
expect_match '^times from 2011-01-02 03:04:05 to 2012-02-03 03:04:05'
expect_match '^wrote .*a.h5'
expect_equal '' "$(output)" 'nothing on stdout'

section 'the same bytes when repeated, and on any number of ranks'
for n in 1 2 3; do
    expect_status 0 ranks $n "$COHORT" import csv "$TMP/answers.csv" "${columns[@]}" --seed 1 -o "$TMP/a$n.h5"
    expect_equal 1 "$(errors | grep -c '^wrote')" 'one rank speaks'
done
expect_same "$TMP/a.h5" "$TMP/a1.h5" "$TMP/a2.h5" "$TMP/a3.h5"

section 'a messy log without options'
# A byte order mark, CRLF, quoted commas, ~~ skills, missing outcomes, repeats, a Latin-1 name, gzip.
{
    printf '\xef\xbb\xbfUser ID,Problem ID,Is Correct,Timestamp,Skill Name,note\r\n'
    printf '"Doe, Jane",q1,1,28.09.2012 15:11,fractions~~ratio,"a, b"\r\n'
    printf '"Doe, Jane",q1,1,28.09.2012 15:11,fractions~~ratio,"a, b"\r\n'
    printf '"Doe, Jane",q2,NULL,28.09.2012 15:12,angles,\r\n'
    printf 'Ren\xe9,q2,0,01.10.2012 08:00,angles,\r\n'
    printf 'Ren\xe9,q1,1,01.10.2012 08:05,fractions~~ratio,\r\n'
    printf 'Ren\xe9,q3,1,01.10.2012 08:09,angles,\r\n'
    printf 'Ren\xe9,q3,1,01.10.2012 08:09,shapes,\r\n'
} | gzip >"$TMP/messy.csv.gz"
umask 027
expect_status 0 "$COHORT" import csv "$TMP/messy.csv.gz" -o "$TMP/messy.h5"
expect_equal 640 "$(stat -c %a "$TMP/messy.h5")" "the user's umask"
umask 022
expect_match 'columns found by name: student = User ID, item = Problem ID, outcome = Is Correct, time = Timestamp'
expect_match 'unused columns: note'
expect_match 'times are read as %d.%m.%Y %H:%M, such as 28.09.2012 15:11'
expect_match '^2 students, 6 attempts, 3 items, 4 skills'
expect_match '^merged 1 row with another skill into its attempt .*--keep-repeats keeps them'
expect_match '^note: 1 row repeats an attempt .*--merge-repeats skips them'
expect_match '^note: 1 name is not UTF-8 and was read as Latin-1'
expect_match '^split by-student=80/10/10, the default'
expect_status 0 "$COHORT" verify "$TMP/messy.h5"
expect_status 0 "$COHORT" import csv "$TMP/messy.csv.gz" --merge-repeats --keep-repeats=no --split none -o "$TMP/x.h5"
expect_match '^2 students, 5 attempts'

section 'what it assumes, it says'
printf 'student,item,correct,time,answered_at\na,q,1,3/4/2012,1\na,q,1,3/5/2012,2\n' >"$TMP/us.csv"
expect_status 0 "$COHORT" import csv "$TMP/us.csv" --split none -o "$TMP/x.h5"
expect_match 'no number is over 12, so the month is assumed to be first'
expect_match 'the time could also be answered_at; --time decides'
printf 'student,item,correct,time\na,q,1,1348845060123\na,q,1,1348845070123\n' >"$TMP/ms.csv"
expect_status 0 "$COHORT" import csv "$TMP/ms.csv" --split none -o "$TMP/x.h5"
expect_match 'are read as milliseconds since 1970'
printf 'student,item,correct,time\na,q,1,0\na,q,1,0\n' >"$TMP/zero.csv"
expect_status 0 "$COHORT" import csv "$TMP/zero.csv" --split none -o "$TMP/x.h5"
expect_match 'warning: all times are 0: they are ignored'
printf 'student,item,correct,clock\na,q,1,1\na,q,1,2\n' >"$TMP/clock.csv"
expect_status 0 "$COHORT" import csv "$TMP/clock.csv" --split none -o "$TMP/x.h5"
expect_match 'unused columns: clock; no times were found, so attempts keep the order of the rows \(--time NAME\)$'
expect_status 0 "$COHORT" import csv "$TMP/clock.csv" --time none --split none -o "$TMP/x.h5"
expect_match 'unused columns: clock$'
sed 's/clock/When/' "$TMP/clock.csv" >"$TMP/when.csv"
expect_status 0 "$COHORT" import csv "$TMP/when.csv" --split none -o "$TMP/x.h5"
expect_match 'time = When$'
printf 'student,item,correct,time_taken,duration,answer_time\na,q,1,8500,3,1\na,r,0,1200,4,1\n' >"$TMP/taken.csv"
expect_status 0 "$COHORT" import csv "$TMP/taken.csv" --split none -o "$TMP/x.h5"
expect_match 'unused columns: time_taken, duration, answer_time; no times were found'
expect_status 0 "$COHORT" import csv --train "$TMP/us.csv" --test "$TMP/us.csv" --time none -o "$TMP/x.h5"
expect_match 'nothing is for validation; --split by-student=90/10 takes it from the training files'

section 'pseudonyms'
expect_status 0 "$COHORT" import csv "$TMP/us.csv" --pseudonyms "$TMP/key" --split none -o "$TMP/p1.h5"
expect_match 'a new key for pseudonyms; keep it secret'
expect_equal 600 "$(stat -c %a "$TMP/key")" 'the key is private'
expect_status 0 "$COHORT" import csv "$TMP/us.csv" --pseudonyms "$TMP/key" --split none -o "$TMP/p2.h5"
printf 'student,item,outcome\nErika Mustermann,a,1\nMax Mustermann,b,maybe\n' >"$TMP/named.csv"
expect_status 3 "$COHORT" import csv "$TMP/named.csv" --pseudonyms "$TMP/key" -o "$TMP/named.h5"
expect_match "named.csv:3: outcome 'maybe' .*; fix the row"
expect_no_match Mustermann
expect_same "$TMP/p1.h5" "$TMP/p2.h5"
check 'file names are not stored' test -z "$(grep -a 'us\.csv' "$TMP/p1.h5")"

section 'bad rows'
printf 'user_id,item_id,correct\nanna,q1,1\nanna,q2,perhaps\nbert,q3\nbert,q1,0\n' >"$TMP/bad.csv"
expect_status 3 "$COHORT" import csv "$TMP/bad.csv" -o "$TMP/b.h5"
expect_match "bad.csv:3: outcome 'perhaps'.*'anna,q2,perhaps'.*--skip-bad"
check 'nothing is half-written' test ! -e "$TMP/b.h5"
expect_status 3 ranks 2 "$COHORT" import csv "$TMP/bad.csv" -o "$TMP/b.h5"
expect_status 0 "$COHORT" import csv "$TMP/bad.csv" --skip-bad -o "$TMP/b.h5"
expect_match '^skipped 2 bad rows; first: .*bad.csv:3'
expect_match '^2 students, 2 attempts'

section 'skipped rows leave no trace'
printf '%s\n' 'user_id,item_id,correct,skill,hard,room,mark' anna,q1,1,k1,0.5,r1,3 anna,q2,1,k2,none,r2,3 bert,q3,1,k3,0.5,r3,x \
    bert,q4,0,k4,1e308,r4,4 bert,q1,0,k1,2,r5,4 >"$TMP/rows.csv"
expect_status 0 "$COHORT" import csv "$TMP/rows.csv" --skills skill --covariates hard --factors room --target mark \
    --skip-bad --split none -o "$TMP/rows.h5"
expect_match '^skipped 3 bad rows; first: .*rows.csv:3'
expect_match '^2 students, 2 attempts, 1 item, 1 skill,'
expect_match '^factor room: 2 levels'
expect_status 3 "$COHORT" import csv "$TMP/rows.csv" --covariates hard --split none -o "$TMP/x.h5"
expect_match "covariate hard is 'none', not a number from -1e30 to 1e30"

section 'scores'
printf '%s\n' student,item,correct a,q,0.75 'a,r,"0,5"' >"$TMP/scores.csv"
expect_status 3 "$COHORT" import csv "$TMP/scores.csv" --threshold 0.5 -o "$TMP/x.h5"
expect_match "scores.csv:3: outcome '0,5' is not a score, which --threshold needs: a number, with decimals after a point"
expect_status 1 "$COHORT" import csv "$TMP/scores.csv" --threshold 0,5 -o "$TMP/x.h5"
expect_match 'threshold 0,5: expected a number with decimals after a point'

section 'a Q-matrix that is too small'
printf '3\n1,2,7\n0,1,1\n' >"$TMP/numbered.txt"
printf '1,0\n0,1\n1,1\n' >"$TMP/small_q.csv"
expect_status 3 "$COHORT" import three-line "$TMP/numbered.txt" --q-matrix "$TMP/small_q.csv" -o "$TMP/x.h5"
expect_match 'the Q-matrix is 3 by 2, but the numbers of the items go from 1 to 7; expected at least 7 rows'
printf '3\n0,2,7\n0,1,1\n' >"$TMP/numbered.txt"
expect_status 3 "$COHORT" import three-line "$TMP/numbered.txt" --q-matrix "$TMP/small_q.csv" -o "$TMP/x.h5"
expect_match 'the numbers of the items go from 0 to 7; expected at least 8 rows'

section 'matrices: headers and letters'
# matrix LINE...: import a file of these lines.
matrix() { printf '%s\n' "$@" >"$TMP/m.csv" && "$COHORT" import matrix "$TMP/m.csv" --split none -o "$TMP/m.h5"; }
expect_status 3 matrix 1,0.5,0 1,0,1
expect_match "m.csv:1: column 2 is '0.5', not 1, 0 or empty"
expect_status 3 matrix 1,2,0 1,0,1
expect_match "m.csv:1: column 2 is '2'"
expect_status 0 matrix 1,2,3 1,0,1
expect_match '^1 student'
expect_status 0 matrix 17,4,23 1,0,1
expect_match '^1 student'
expect_status 0 matrix t,f,t f,f,t
expect_match '^2 students'
expect_status 3 matrix a,b,sex 1,0,f 0,1,m
expect_match "m.csv:3: column 3 is 'm'"
expect_status 3 "$COHORT" import matrix "$TMP/m.csv" --skip-bad --split none -o "$TMP/x.h5"
expect_match "column 3 \('sex'\) holds 'f' and 'm', so its letters cannot be read as outcomes"
expect_status 3 matrix a,b,sex 1,0,f 0,1,f
expect_match "column 3 \('sex'\) holds 'f' and no column holds 't'"

section 'a failed import keeps the old data set'
cp "$TMP/b.h5" "$TMP/old.h5"
expect_status 3 "$COHORT" import csv "$TMP/bad.csv" -o "$TMP/b.h5"
expect_same "$TMP/old.h5" "$TMP/b.h5"

section 'missing, empty and damaged files'
expect_status 1 "$COHORT" import csv "$TMP/nowhere.csv" -o "$TMP/c.h5"
expect_match 'cannot open .*nowhere.csv: No such file'
: >"$TMP/empty.csv"
expect_status 3 "$COHORT" import csv "$TMP/empty.csv" -o "$TMP/c.h5"
expect_match 'empty.csv: the file is empty'
printf 'student,item,correct\ranna,q1,1\rbert,q2,0\r' >"$TMP/cr.csv"
expect_status 3 "$COHORT" import csv "$TMP/cr.csv" -o "$TMP/c.h5"
expect_match "cr.csv: lines end in CR without LF; convert .*tr '.r' '.n'"
echo >>"$TMP/cr.csv"
expect_status 3 "$COHORT" import csv "$TMP/cr.csv" -o "$TMP/c.h5"
expect_match "cr.csv: lines end in CR without LF"
printf '\xef\xbb\xbf[model]\nkind = average\n' >"$TMP/bom.ini"
expect_status 0 "$COHORT" train "$TMP/bom.ini" data="$TMP/own.h5" run="$TMP/bom"
seq 1 20000 | awk 'BEGIN { print "user_id,item_id,correct" } { print "u" $1 % 97 ",q" $1 * 31 % 1009 "," $1 % 2 }' |
    gzip >"$TMP/whole.csv.gz"
expect_status 0 "$COHORT" import csv "$TMP/whole.csv.gz" -o "$TMP/c.h5"
expect_match '^97 students, 20000 attempts'
head -c 20000 "$TMP/whole.csv.gz" >"$TMP/cut.csv.gz"
expect_status 3 "$COHORT" import csv "$TMP/cut.csv.gz" -o "$TMP/d.h5"
expect_match 'cut.csv.gz: the gzip file is damaged or truncated'
expect_status 3 ranks 3 "$COHORT" import csv "$TMP/cut.csv.gz" -o "$TMP/d.h5"
check 'nothing is half-written' test ! -e "$TMP/d.h5"

section 'wrong usage'
expect_status 2 "$COHORT" import
expect_match 'usage: cohort import'
expect_status 2 "$COHORT" import csv "$TMP/answers.csv"
expect_match 'no output; name the '
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" -o "$TMP"
expect_match "is a directory; expected a file to write, such as $TMP/data.h5"
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" -o "$TMP/"
expect_match "such as $TMP/data.h5"
expect_status 2 "$COHORT" import cvs2 "$TMP/answers.csv" -o "$TMP/e.h5"
expect_match "unknown format 'cvs2'"
expect_status 2 "$COHORT" import matrix "$TMP/answers.csv" --time timestamp -o "$TMP/e.h5"
expect_match 'import matrix does not accept --time'
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" --student userid -o "$TMP/e.h5"
expect_match "no column 'userid' for --student; did you mean 'user_id'"
printf 'anna,q1,1\nbert,q2,0\n' >"$TMP/bare.csv"
expect_status 1 "$COHORT" import csv "$TMP/bare.csv" -o "$TMP/e.h5"
expect_match "no column is called 'student' or like it; the first line was read as the header, with the columns: anna, q1, 1; add a header, or name columns with options such as --student"
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" --split by-student=80/10/20 -o "$TMP/e.h5"
expect_match 'add up to 110; expected 100'
expect_status 1 "$COHORT" import csv "$TMP/answers.csv" -o "$TMP/no/such/folder/e.h5"
expect_match 'folder: No such file'
expect_status 0 "$COHORT" import --help
for format in csv three-line four-line matrix sequences grockit assistments kddcup ednet eedi; do
    expect_match "^    $format "
done

section 'real data'
if [ ! -d "$data" ]; then
    (skip "$data is not there")
    exit 0
fi
a=$data/assist2009/assist2009_updated
expect_status 0 "$COHORT" import three-line "${a}_train.csv.gz" --split none -o "$TMP/r.h5"
expect_match '^2921 students, 224218 attempts, 110 items'
expect_status 0 "$COHORT" import three-line --train "${a}_train1.csv.gz" --valid "${a}_valid1.csv.gz" \
    --test "${a}_test.csv.gz" --item-names "${a}_skill_mapping.txt" -o "$TMP/r.h5"
expect_match '^4151 students, 325637 attempts, 110 items'
expect_match '^attempts: training 176684, validation 47534, test 101419$'
f=$data/assist2009_pid
expect_status 0 "$COHORT" import four-line $f/fold1.csv.gz --split none --merge-repeats -o "$TMP/r.h5"
expect_match '^skipped [0-9]+ rows that repeat an attempt \(same student, item and outcome\)'
s=$data/statics
expect_status 0 "$COHORT" import three-line --train $s/STATICS_train.csv.gz --test $s/STATICS_test.csv.gz \
    --q-matrix $s/Qmatrix.csv.gz -o "$TMP/r.h5"
expect_match '^333 students, 189297 attempts, 1223 items, 98 skills'
expect_match '^attempts: training 130184, validation 0, test 59113$'
n=$data/synthetic5/naive_c5_q50_s4000_v0
expect_status 0 "$COHORT" import three-line --train ${n}_train.csv.gz --test ${n}_test.csv.gz -o "$TMP/r.h5"
expect_match '^4000 students, 200000 attempts, 50 items'
expect_match '^attempts: training 100000,'
e=$data/eedi
expect_status 0 "$COHORT" import csv --train $e/train_data.csv.gz --valid $e/valid_data.csv --test $e/test_data.csv \
    --student user_id --item question_id --outcome is_correct --withheld -o "$TMP/r.h5"
expect_match '^542 students, 67317 attempts, 1774 items'
expect_match '^attempts: training 56688, validation 7086, test 3543; held-out outcomes are hidden'
expect_status 0 "$COHORT" import csv --train $e/train_data.csv.gz --test $e/test_data.csv --item-meta \
    $e/question_meta.csv --skill-names $e/subject_meta.csv -o "$TMP/r.h5"
expect_match '^542 students, 60231 attempts, 1774 items, 289 skills'
m=$data/ml2p
expect_status 0 "$COHORT" import matrix $m/responses.csv.gz --q-matrix $m/q_matrix.csv --split by-student=80/0/20 \
    -o "$TMP/r.h5"
expect_match '^5000 students, 150000 attempts, 30 items, 3 skills'
expect_match '^attempts: training 120000, validation 0, test 30000$'
expect_status 3 "$COHORT" import matrix $m/responses.csv.gz --q-matrix $s/Qmatrix.csv.gz -o "$TMP/f.h5"
expect_match 'the Q-matrix is 1223 by 98, but the number of items is 30'
i=$data/irt
expect_status 0 "$COHORT" import matrix $i/LSAT6_1000x5.csv -o "$TMP/r.h5"
expect_match '^1000 students, 5000 attempts, 5 items'
expect_status 0 "$COHORT" import matrix $i/fraction_subtraction_536x20.csv \
    --q-matrix $i/fraction_subtraction_Q_20x8.csv -o "$TMP/r.h5"
expect_match '^536 students, 10720 attempts, 20 items, 8 skills'
c=$data/chorales/JSB_Chorales
expect_status 0 "$COHORT" import sequences --train ${c}_train.txt.gz --valid ${c}_valid.txt --test ${c}_test.txt \
    --items 88 -o "$TMP/r.h5"
expect_match '^382 students, 2035792 attempts, 88 items' # 229 + 76 + 77 sequences
expect_match "^attempts: training $((13807 * 88)), validation [0-9]+, test $((4725 * 88))\$"
f=$data/formats
expect_status 0 "$COHORT" import grockit --train $f/grockit_training_sample.csv \
    --valid $f/grockit_valid_test_sample.csv --test $f/grockit_test_sample.csv -o "$TMP/r.h5"
expect_match '^3 students, 5 attempts, 5 items, 14 skills, 2 groups'
expect_match '^50.00 % correct of 4 known outcomes, 1 unknown'
expect_status 0 "$COHORT" import eedi $f/eedi_neurips2020_task12_sample.csv -o "$TMP/r.h5"
expect_match '^5 students, 5 attempts, 5 items'
{
    printf 'Row\tAnon Student Id\tProblem Hierarchy\tProblem Name\tProblem View\tStep Name\tStep Start Time\t'
    printf 'First Transaction Time\tCorrect Transaction Time\tStep End Time\tStep Duration (sec)\t'
    printf 'Correct Step Duration (sec)\tError Step Duration (sec)\tCorrect First Attempt\tIncorrects\tHints\t'
    printf 'Corrects\tKC(SubSkills)\tOpportunity(SubSkills)\tKC(KTracedSkills)\tOpportunity(KTracedSkills)\t'
    printf 'KC(Rules)\tOpportunity(Rules)\n'
    cat $f/kddcup2010_algebra_2008_2009_row.tsv
} >"$TMP/kdd.tsv"
expect_status 0 "$COHORT" import kddcup "$TMP/kdd.tsv" -o "$TMP/r.h5"
expect_match '^1 student, 1 attempt, 1 item, 4 skills'
mkdir -p "$TMP/KT1"
cp $f/ednet_kt1_sample.csv "$TMP/KT1/u1.csv"
printf 'question_id,correct_answer,part,tags\nq2844,d,1,1;2\nq2845,d,1,2\nq2846,d,1,3\nq4353,c,5,3\nq3944,b,5,4\n' \
    >"$TMP/KT1/questions.csv"
expect_status 0 "$COHORT" import ednet "$TMP/KT1" -o "$TMP/r.h5"
expect_match '^1 student, 5 attempts, 5 items, 4 skills, 2 groups'
expect_match '^80.00 % correct'

section "a line without an end"
head -c 70000000 /dev/zero | tr '\0' a >"$TMP/line.csv"
expect_status 3 "$COHORT" import csv "$TMP/line.csv" -o "$TMP/line.h5"
expect_match 'line.csv:1: this line is longer than 64 MiB; expected one row per line: aaa'
rm "$TMP/line.csv"
