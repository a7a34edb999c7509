#!/bin/bash
# Without settings: the defaults of every kind are good on several kinds of data, and `cohort auto` goes from a data set
# to the best model, with the same leaderboard on any number of ranks and after a stop.
. "$(dirname "$0")/../lib/lib.sh"

run "$COHORT" simulate irt --students 400 --items 30 --skills 2 --seed 3 --split by-student=60/20/20 \
    -o "$TMP/irt.h5" || fail "simulate"
run "$COHORT" simulate bkt --students 300 --skills 4 --seed 2 --split by-student=60/20/20 -o "$TMP/bkt.h5" ||
    fail "simulate"

# good DATA KIND...: the kinds whose defaults must beat item means there; all others must not be worse.
good() {
    local kind margin
    for kind in rbm rtrbm dkt vae lme bkt ktm; do
        margin=0.001
        [[ " ${*:2} " == *" $kind "* ]] && margin=-0.01
        expect_status 0 "$COHORT" train "data=$TMP/$1.h5" "run=$TMP/$1-$kind" model.kind=$kind
        expect_status 0 "$COHORT" evaluate "$TMP/$1-$kind" --json
        expect_number log_loss '<' "$(awk -v m="$(json item_mean log_loss)" -v d=$margin 'BEGIN { print m + d }')"
    done
}
section "defaults of all kinds: abilities"
good irt rbm rtrbm dkt vae lme bkt ktm
section "defaults of all kinds: learning"
good bkt rtrbm dkt vae bkt ktm

section "the reasons"
expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" model.kind=rbm --explain
expect_match '^model.window = 15$'
expect_match 'items come again and again'
expect_status 0 "$COHORT" train "data=$TMP/irt.h5" model.kind=rbm --explain
expect_no_match '^model.window'
expect_match '^train.batch = 24$' # a tenth of 240 students
expect_match '^batch = 24$' "$TMP/irt-rbm/config.ini"
expect_status 2 "$COHORT" train model.kind=rbm --explain
expect_match 'needs data='

section "a change of batch needs no change of rate"
# 20 epochs of 12 steps, 120 epochs of 2 steps
for batch in 20 120; do
    expect_status 0 "$COHORT" train "data=$TMP/irt.h5" "run=$TMP/batch$batch" model.kind=rbm model.common=no \
        model.conditional=no optimizer.method=sgd optimizer.rate=0.02 train.epochs=$batch train.batch=$batch
done
valid_loss_of() { json_of "$TMP/batch$1/result.json" valid log_loss; }
check "as many steps learn as much" awk -v a="$(valid_loss_of 20)" -v b="$(valid_loss_of 120)" \
    'BEGIN { exit !(a < 0.62 && b < 0.62 && a - b < 0.01 && b - a < 0.01) }'

section "auto"
few=(--trials 12)
expect_status 0 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/auto1" "${few[@]}"
expect_match '^The choice is .*/auto1/best, a blend of '
expect_match '^ +1  .* best '
expect_status 0 ranks 3 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/auto3" "${few[@]}"
sed "s|$TMP/auto3/|$TMP/auto1/|" "$TMP/auto3/leaderboard.csv" >"$TMP/board3.csv"
expect_same "$TMP/auto1/leaderboard.csv" "$TMP/board3.csv"
expect_same "$TMP/auto1/best/last.h5" "$TMP/auto3/best/last.h5"
check "a report" test -s "$TMP/auto1/report.html"
expect_status 0 "$COHORT" predict "$TMP/auto1/best" --split test -o "$TMP/p.csv"
expect_status 0 "$COHORT" evaluate "$TMP/auto1/best" --json
expect_number log_loss '<' "$(json item_mean log_loss)"

section "auto continues after a stop"
"$COHORT" auto "$TMP/bkt.h5" "run=$TMP/auto4" "${few[@]}" >/dev/null 2>&1 &
until [ -d "$TMP/auto4/kinds/trials" ] && [ "$(ls "$TMP/auto4/kinds/trials" | wc -l)" -ge 3 ]; do
    kill -0 $! 2>/dev/null || break
    sleep 0.05
done
kill -9 $! 2>/dev/null
wait
expect_status 0 ranks 2 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/auto4" "${few[@]}" --refit
expect_same "$TMP/auto1/kinds/trials/$(ls "$TMP/auto1/kinds/trials" | head -1)/last.h5" \
    "$TMP/auto4/kinds/trials/$(ls "$TMP/auto1/kinds/trials" | head -1)/last.h5"
check "refits" test -d "$TMP/auto4/refit-bkt"

section "auto as a job"
expect_status 0 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/job" --refit --submit --ranks 8 --dry-run
expect_match '^command=\(auto '
expect_match '^    --refit$'
check "nothing is begun" test ! -e "$TMP/job"

section "auto refuses"
expect_status 2 "$COHORT" auto "$TMP/bkt.h5"
expect_status 2 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/x" model.hidden=3
expect_match 'settings are chosen by the command itself'
expect_status 1 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/irt-rbm"
expect_match 'belongs to a run'
run "$COHORT" simulate bkt --students 60 --skills 2 --split none -o "$TMP/none.h5"
expect_status 1 "$COHORT" auto "$TMP/none.h5" "run=$TMP/x"
expect_match 'no validation attempts'
check "nothing is left" test ! -e "$TMP/x"
