#!/bin/bash
# Sweeps: designs, teams, packs, halving, folds, failures, signals; the leaderboard has the same bytes however the
# trials were run.
. "$(dirname "$0")/../lib/lib.sh"

run "$COHORT" simulate irt --students 200 --items 12 --skills 2 --seed 1 --split by-student=60/20/20 \
    -o "$TMP/class.h5" || fail "simulate"
run "$COHORT" simulate irt --students 100 --items 12 --skills 2 --seed 1 --split by-student=80/0/20 \
    -o "$TMP/no-valid.h5" || fail "simulate"
cat >"$TMP/sweep.ini" <<END
[data]
file = $TMP/class.h5
[model]
kind = rbm
hidden = {2, 5}
visible = {softmax, bernoulli}
[optimizer]
rate = log(1e-3, 1e-2, 3)
[train]
epochs = 3
batch = 50
END
sweep() { run "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/$1" "${@:2}"; }
files="leaderboard.csv effects.csv"

section "a grid"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/one"
expect_match "12 trials: 12 done, 0 running, 0 failed, 0 waiting"
expect_match "^ +1  [0-9a-f]{16} +3 "
expect_match "optimizer.rate: [0-9]+ % of the variance"
expect_equal 13 "$(wc -l <"$TMP/one/leaderboard.csv")" "a line for each trial"
expect_status 1 "$COHORT" evaluate "$TMP/one"
expect_match 'this is a sweep, with one run per trial; name one of those in .*/trials, or train the best'
expect_status 1 "$COHORT" train "refit=$TMP/one" "run=$TMP/bad"
expect_match '^cohort: train.refit: .*/one: this is a sweep'
expect_equal 12 "$(cut -d, -f2 "$TMP/one/leaderboard.csv" | tail -n +2 | sort -u | wc -l)" "different trials"
expect_match "^optimizer.rate,0.00316228,4," "$TMP/one/effects.csv"
first=$(sed -n 2p "$TMP/one/leaderboard.csv" | cut -d, -f2)
expect_match "$first" "$TMP/one/best.ini"
check "the leaderboard is in order" \
    awk -F, 'NR == 1 { for (c = 1; c <= NF; c++) if ($c == "valid_log_loss") k = c; next }
             { if ($k < last) bad = 1; last = $k } END { exit bad || !k }' "$TMP/one/leaderboard.csv"
expect_status 0 "$COHORT" train "$TMP/one/best.ini"
best=$(json_of "$TMP/one/best/result.json" valid log_loss)
check "the best trial's settings give its score again" \
    awk -v a="$best" -v b="$(json_of "$TMP/one/trials/$first/rung-1.json" valid log_loss)" \
    'BEGIN { exit !(a != "" && (a - b) ^ 2 < 1e-18) }'
expect_same "$TMP/one/best/last.h5" "$TMP/one/trials/$first/last.h5"

section "teams, packs and one at a time"
expect_status 0 ranks 3 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/teams"
expect_match "by 3 teams"
expect_status 0 ranks 3 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/pairs" sweep.ranks=2
expect_match "by 1 team "
for k in 2 1 3; do
    expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/packs" --pack $k/3
done
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/packs" --collect
for file in $files; do
    expect_same "$TMP/one/$file" "$TMP/teams/$file" "$TMP/pairs/$file" "$TMP/packs/$file"
done

section "only missing trials are run"
rm -r "$TMP/teams/trials/$first"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/teams" --status
expect_match "11 done, 0 running, 0 failed, 1 waiting"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/teams"
expect_match "^1 trial trained"
expect_same "$TMP/one/leaderboard.csv" "$TMP/teams/leaderboard.csv"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/teams" --json
expect_equal 12 "$(json "done")"
expect_equal "$first" "$(json leaderboard 0 trial)"

section "a trial that fails"
cat >"$TMP/bad.ini" <<END
[data]
file = $TMP/class.h5
[model]
kind = rbm
hidden_kind = gaussian
[optimizer]
rate = {0.001, 1000000}
[train]
epochs = 2
END
expect_status 0 ranks 2 "$COHORT" sweep "$TMP/bad.ini" "run=$TMP/bad"
expect_match "1 done, 0 running, 1 failed"
expect_match "^failed: [0-9a-f]{16} optimizer.rate=1000000"
expect_match "diverged"
expect_match ",failed,.*diverged" "$TMP/bad/leaderboard.csv"
expect_status 0 "$COHORT" sweep "$TMP/bad.ini" "run=$TMP/bad"
expect_match "^0 trials trained"
expect_status 0 "$COHORT" sweep "$TMP/bad.ini" "run=$TMP/bad" --retry
expect_match "^1 trial trained"

section "random and Halton designs"
for design in random halton; do
    points="sweep.design=$design sweep.trials=6 optimizer.rate=log(1e-3,1e-2) model.hidden=uniform(2,9)"
    # shellcheck disable=SC2086
    expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/$design" train.epochs=1 $points
    expect_match "6 trials: 6 done"
    check "whole numbers in range" awk -F, 'NR > 1 && ($6 !~ /^[2-9]$/ || $8 < 1e-3 || $8 > 1e-2) { bad = 1 }
        END { exit bad }' "$TMP/$design/leaderboard.csv"
done
# with more trials the existing ones stay
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/halton" train.epochs=1 sweep.design=halton sweep.trials=8 \
    "optimizer.rate=log(1e-3,1e-2)" "model.hidden=uniform(2,9)"
expect_match "^2 trials trained"

section "successive halving"
halving=(sweep.design=halton sweep.trials=9 "optimizer.rate=log(1e-3,1e-2)" sweep.rungs=3 train.epochs=9)
expect_status 0 ranks 2 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/halving" "${halving[@]}"
expect_equal "1 1 1 1 1 1 3 3 9" "$(cut -d, -f5 "$TMP/halving/leaderboard.csv" | tail -n +2 | sort -n | xargs)" "epochs"
expect_equal "9 3 1" "$(for r in 1 2 3; do find "$TMP/halving" -name "rung-$r.json" | wc -l; done | xargs)" "rungs"
for r in 1 2 3; do
    for k in 1 2; do
        run "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/by-rung" "${halving[@]}" --rung $r --pack $k/2 || fail "rung $r"
    done
done
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/by-rung" "${halving[@]}" --collect
expect_same "$TMP/halving/leaderboard.csv" "$TMP/by-rung/leaderboard.csv"
# a continued trial equals an uninterrupted run
winner=$(sed -n 2p "$TMP/halving/leaderboard.csv" | cut -d, -f2)
expect_status 0 "$COHORT" train "$TMP/halving/best.ini"
expect_same "$TMP/halving/best/last.h5" "$TMP/halving/trials/$winner/last.h5"

section "several jobs at once"
# They start at the same time, in a directory that does not exist yet, and finish together.
for k in 1 2 3 4 5 6; do
    "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/at-once" --pack $k/6 >"$TMP/job-$k" 2>&1 &
done
for k in 1 2; do
    "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/both" "${halving[@]}" >"$TMP/both-$k" 2>&1 &
done
for job in $(jobs -p); do
    wait "$job"
    expect_equal 0 $? "exit code of a job beside others"
done
expect_equal 6 "$(cat "$TMP"/job-* | grep -c '^2 trials trained')" "jobs beside others"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/at-once" --collect
expect_same "$TMP/one/leaderboard.csv" "$TMP/at-once/leaderboard.csv"
expect_same "$TMP/halving/leaderboard.csv" "$TMP/both/leaderboard.csv"
expect_status 2 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/at-once" "${halving[@]}" --pack 1/2
expect_match 'the sweep has 3 rungs, and all packs of a rung must end before the next begins; add --rung'

section "cross-validation"
expect_status 0 ranks 2 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/folds" train.folds=3 train.epochs=2 \
    "optimizer.rate=0.003"
expect_match "^ +1  [0-9a-f]{16} .* \+- 0\."
expect_match "valid_spread_log_loss" "$TMP/folds/leaderboard.csv"

section "signals"
endless=(train.epochs=100000000)
"$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/stopped" "${endless[@]}" >"$TMP/stopped.log" 2>&1 &
pid=$!
deadline=$((SECONDS + 120))
until compgen -G "$TMP/stopped/trials/*/config.ini" >"$TMP/found" || [ $SECONDS -ge $deadline ]; do sleep 0.1; done
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/stopped" "${endless[@]}" --status
expect_match "0 done, 1 running, 0 failed, 11 waiting"
kill -USR1 $pid
wait $pid
expect_equal 85 $? "exit code of a stopped sweep"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/stopped" "${endless[@]}" --status
expect_match "0 done, 0 running, 0 failed, 12 waiting"

section "mistakes"
mistake() {
    local pattern=$1
    shift
    expect_status 1 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/never" "$@"
    expect_match "$pattern"
}
mistake "the range is empty" "optimizer.rate=log(1e-2,1e-3)"
mistake "log\(\.\.\.\) needs numbers above 0" "optimizer.rate=log(0,1,3)"
mistake "a grid needs the number of points" "optimizer.rate=log(1e-3,1e-2)"
mistake "the list is empty" "model.hidden={}"
mistake "an empty element" "model.hidden={1,,2}"
mistake "closing brace is missing" "model.hidden={1,2"
mistake "unknown setting model.hiden; the nearest is model.hidden" "model.hiden={1,2}"
mistake "unknown setting sweep.trails; the nearest is sweep.trials" "sweep.trails=3"
mistake "command line: hidden = x: expected a whole number" "model.hidden={2,x}"
mistake "needs the number of trials" "sweep.design=random" "optimizer.rate=log(1e-3,1e-2)"
mistake "no list or range" "model.hidden=2" "model.visible=softmax" "optimizer.rate=0.01"
mistake "cannot differ between trials" "data.file={a.h5,b.h5}"
mistake "train.epochs cannot differ" "train.epochs={1,2}" "sweep.rungs=2"
check "nothing half-made" test ! -e "$TMP/never"
expect_status 1 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/one" model.copies=1
expect_match "belongs to another sweep"
expect_status 1 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/one/best"
expect_match "directory belongs to a run"
expect_status 0 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/nothing" "data=$TMP/no-valid.h5" "model.hidden=2"
expect_match "no validation attempts"
expect_status 2 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/never" --pack 3/2
expect_status 2 "$COHORT" sweep "$TMP/sweep.ini" "run=$TMP/never" --rung 2
