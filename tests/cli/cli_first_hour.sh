#!/bin/bash
# The first hour of a new user, in four commands and without a setting: from a messy log (byte-order mark, CRLF, quoted
# commas, several skills in a cell, missing outcomes, duplicate rows, gzipped) to a leaderboard, a report and predictions
# for new students and new questions.
. "$(dirname "$0")/../lib/lib.sh"

# log SEED STUDENTS QUESTIONS: answers of students who differ in ability and learn.
log() {
    awk -v seed="$1" -v n="$2" -v items="$3" 'BEGIN {
        srand(seed)
        printf "\xef\xbb\xbfUser ID,question_id,\"correct\",timestamp,skill_name,comment\r\n"
        for (s = 1; s <= n; s++) {
            able = 2 * rand() - 1 + 2 * rand() - 1
            for (t = 0; t < 40; t++) {
                i = int(items * rand())
                p = 1 / (1 + exp(-(able + 0.02 * t - (i % 7 - 3) / 1.5)))
                outcome = rand() < 0.02 ? "" : rand() < p
                row = sprintf("\"M\303\274ller, %d-%d\",q%d,%s,%d.03.2024 %02d:%02d,%s,\"said \"\"yes\"\", then no\"\r\n",
                    seed, s, i, outcome, 1 + int(t / 12), 8 + t % 12, s % 60,
                    i % 5 == 0 ? "fractions~~angles" : i % 2 ? "fractions" : "angles")
                printf "%s", row
                if (rand() < 0.01)
                    printf "%s", row
            }
        }
    }'
}
log 1 300 30 | gzip >"$TMP/log.csv.gz"
log 2 20 34 >"$TMP/new.csv"
cd "$TMP" || exit 70

section "1: import"
expect_status 0 "$COHORT" import csv log.csv.gz -o log.h5
expect_match '300 students'
expect_match '30 items, 2 skills'
expect_match '[0-9]+ rows repeat an attempt'
expect_match 'times from 2024-03-01'

section "2: the best model"
expect_status 0 ranks 2 "$COHORT" auto log.h5 run=auto --trials 8
expect_match '^The choice is auto/best'
check "a leaderboard" test "$(wc -l <auto/leaderboard.csv)" -ge 8
check "a report" grep -q '</html>' auto/report.html
expect_status 0 "$COHORT" evaluate auto/best --json
expect_number log_loss '<' "$(awk -v m="$(json item_mean log_loss)" 'BEGIN { print m - 0.01 }')"

section "3: new students and questions"
expect_status 0 "$COHORT" import csv new.csv --split none -o new.h5
expect_status 0 "$COHORT" predict auto/best --data new.h5 -o predictions.csv.gz

section "4: what they say"
gunzip -c predictions.csv.gz >predictions.csv
expect_match '^"M.+ller, 2-1",q[0-9]+,01.03.2024 08:01,[01]?,0\.[0-9]+,' predictions.csv
check "new questions are predicted too" grep -q ',q33,.*,skill,' predictions.csv
check "all chances are chances" awk -F , 'NR > 1 { p = $(6); bad += !(p > 0 && p < 1); n++ } END { exit !(n >= 800 && !bad) }' \
    predictions.csv
