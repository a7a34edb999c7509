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

section "defaults of rtrbm and ktm: few answers per item; several skills per item"
awk 'BEGIN { srand(3); print "student,item,correct"
    for (a = 0; a < 8000; a++) { s = int(rand() * 300); i = int(rand() * 2500)
        print "s" s ",i" i "," (rand() < 1 / (1 + exp(-(s % 21 - 10) / 6 + (i % 19 - 9) / 6))) } }' >"$TMP/few.csv"
awk 'BEGIN { srand(5); print "order,student,item,skill,correct"
    for (s = 0; s < 200; s++) { for (k = 0; k < 12; k++) able[k] = 3 * (rand() + rand() - 1)
        for (t = 0; t < 25; t++) { i = int(rand() * 40); o++; c = rand() < 1 / (1 + exp(-able[i % 12]))
            for (n = 0; n < 1 + i % 3; n++) print o ",s" s ",i" i ",k" (i + 5 * n) % 12 "," c } } }' >"$TMP/several.csv"
awk 'BEGIN { srand(7); print "order,student,item,skill,correct"; for (i = 0; i < 30; i++) b[i] = 4 * rand() - 2
    for (s = 0; s < 150; s++) for (t = 0; t < 30; t++) { o++; c = rand() < 1 / (1 + exp(b[t]))
        for (n = 0; n < 6; n++) print o ",s" s ",i" t ",k" (7 * t + 3 * n) % 20 "," c } }' >"$TMP/many.csv"
for data in few several many; do
    run "$COHORT" import csv "$TMP/$data.csv" -o "$TMP/$data.h5" || fail "import"
done
for case in "few rtrbm" "several ktm"; do
    expect_status 0 "$COHORT" train "data=$TMP/${case% *}.h5" "run=$TMP/${case/ /-}" "model.kind=${case#* }"
    expect_status 0 "$COHORT" evaluate "$TMP/${case/ /-}" --json
    expect_number log_loss '<' "$(awk -v m="$(json item_mean log_loss)" 'BEGIN { print m - 0.005 }')"
done

section "defaults of bkt: items of many skills that say nothing"
expect_status 0 "$COHORT" train "data=$TMP/many.h5" "run=$TMP/many-bkt" model.kind=bkt
expect_status 0 "$COHORT" evaluate "$TMP/many-bkt" --json
expect_number log_loss '<' "$(awk -v m="$(json item_mean log_loss)" 'BEGIN { print m + 0.001 }')"

section "the reasons"
expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" model.kind=rbm --explain
expect_match '^model.window = 15$'
expect_match 'an item met within the last 15 attempts'
expect_status 0 "$COHORT" train "data=$TMP/irt.h5" model.kind=rbm --explain
expect_no_match '^model.window'
expect_match '^train.batch = 24$' # a tenth of 240 students
expect_match '^    a tenth of the students, from 10 to 100$'
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
check "a second run of a kind" compgen -G "$TMP/auto1/models/*-2" >/dev/null
expect_status 0 "$COHORT" predict "$TMP/auto1/best" --split test -o "$TMP/p.csv"
expect_status 0 "$COHORT" evaluate "$TMP/auto1/best" --json
expect_number log_loss '<' "$(json item_mean log_loss)"

# saved_weights AUTO: tests that the leaderboard has the weights of the saved blend.
saved_weights() {
    rm -rf "$TMP/saved"
    expect_status 0 "$COHORT" export "$1/best" -o "$TMP/saved"
    expect_equal "$(awk -F, 'NR > 1 && $2 > 0 { printf "%.6f\n", $2 }' "$TMP/saved/weights.csv" | sort)" \
        "$(awk -F, 'NR > 1 && $11 > 0 { printf "%.6f\n", $11 }' "$1/leaderboard.csv" | sort)" "weights of $1"
}
saved_weights "$TMP/auto1"

section "auto decides by what the first rank sees"
# As on a shared file system, another rank still sees a trial as it was before.
for view in 0 1; do mkdir "$TMP/view$view" && cp -a "$TMP/auto1" "$TMP/view$view/auto"; done
sed -i 's/"state": "done"/"state": "failed"/' "$(grep -l '"model.kind": "ktm"' "$TMP"/view1/auto/kinds/trials/*/rung-1.json)"
# shellcheck disable=SC2016
expect_status 0 timeout 60 mpirun -n 2 bash -c 'cd "$TMP/view${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" && "$@"' auto \
    "$COHORT" auto "$TMP/bkt.h5" run=auto "${few[@]}"
sed "s|,auto/|,$TMP/auto1/|" "$TMP/view0/auto/leaderboard.csv" >"$TMP/board.csv"
expect_same "$TMP/auto1/leaderboard.csv" "$TMP/board.csv"

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
saved_weights "$TMP/auto4"

section "auto with one model"
expect_status 0 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/one" --trials 1
expect_match '^train ktm with its defaults'
expect_match '^The choice is .*/one/best, the only model, ktm'
expect_no_match ' blend '
expect_equal "models/ktm" "$(readlink "$TMP/one/best")" "best is a link to the only model"
expect_equal 4 "$(wc -l <"$TMP/one/leaderboard.csv")" "the model and two baselines"
expect_status 0 "$COHORT" verify "$TMP/one"
expect_match '/one/models/ktm/last.h5: ok, a checkpoint'
before=$(cksum <"$TMP/one/models/ktm/last.h5")
expect_status 0 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/two" --trials 2
mv "$TMP/two/best" "$TMP/two/blend"
ln -s models/ktm "$TMP/two/best"
expect_status 0 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/two" --trials 2
check "the blend replaces the link, not what it leads to" test ! -L "$TMP/two/best" -a -d "$TMP/two/best"
expect_equal "$before" "$(cksum <"$TMP/two/models/ktm/last.h5")" "the model is as it was"
for trials in 1 3; do
    expect_status 1 ranks 2 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/two" --trials $trials
    expect_match "/two: this directory was started with --trials 2, and --trials $trials would train other kinds of models"
    expect_match 'continue it with --trials 2, or choose another run='
done
awk 'BEGIN { srand(3); print "student,item,correct"; for (s = 0; s < 60; s++) for (t = 0; t < 8; t++)
    print "s" s ",i" int(rand() * 200) "," (rand() < 0.5) }' >"$TMP/noise.csv"
run "$COHORT" import csv "$TMP/noise.csv" -o "$TMP/noise.h5"
expect_status 0 "$COHORT" auto "$TMP/noise.h5" "run=$TMP/noise" --trials 1
expect_match '^warning: the model is no better than'

expect_status 1 "$COHORT" auto "$TMP/bkt.h5" "run=$TMP/auto1" --trials 2
expect_match 'this directory was started with --trials [0-9]+ or more, and --trials 2 would train other kinds'

section "one of two models has all the weight"
run "$COHORT" simulate irt --students 60 --items 10 --skills 1 --seed 3 --split by-student=60/20/20 -o "$TMP/small.h5"
expect_status 0 "$COHORT" auto "$TMP/small.h5" "run=$TMP/small" --trials 2
expect_match '^The choice is .*/small/best, a link to average: no other model has weight in a blend'
expect_no_match '^ +[0-9]+  blend '
expect_match '^ +[0-9]+  average .* 1\.000  defaults'
expect_equal "models/average" "$(readlink "$TMP/small/best")" "best is a link"
expect_equal 5 "$(wc -l <"$TMP/small/leaderboard.csv")" "two models and two baselines"
check "a report" grep -q '</html>' "$TMP/small/report.html"
rm "$TMP/small/best"
cp -r "$TMP/two/best" "$TMP/small/best"
expect_status 0 ranks 2 "$COHORT" auto "$TMP/small.h5" "run=$TMP/small" --trials 2
expect_match '^The choice is .*/small/best, a blend in which average has all the weight: an earlier blend is written again'
saved_weights "$TMP/small"
expect_status 0 "$COHORT" auto "$TMP/small.h5" "run=$TMP/small-refit" --trials 2 --refit
expect_equal "refit-average" "$(readlink "$TMP/small-refit/best")" "best is a link to the refit"

section "auto tries what can work, and says what it does not try"
expect_status 0 "$COHORT" auto "$TMP/small.h5" "run=$TMP/nine" --trials 9
expect_match '^try 1 setting around the defaults of lme$' # practice is always zero there
expect_no_match '^trials not used' # none is left
expect_status 0 "$COHORT" auto "$TMP/small.h5" "run=$TMP/ten" --trials 10
expect_match '^trials not used: 1 of 10 \(the settings around [a-z]+ need 4\)'
expect_no_match 'lme failed'
expect_status 0 "$COHORT" auto "$TMP/noise.h5" "run=$TMP/few" --trials 8
expect_match '^skipping bkt: no student practises a skill twice'

section "auto with models no better than item means"
awk 'BEGIN { srand(2); print "student,item,correct"; for (s = 0; s < 300; s++) for (t = 0; t < 10; t++)
    print "s" s ",i" t "," (rand() < (t + 0.5) / 10) }' >"$TMP/items.csv"
run "$COHORT" import csv "$TMP/items.csv" --split by-student=50/25/25 -o "$TMP/items.h5"
expect_status 0 "$COHORT" auto "$TMP/items.h5" "run=$TMP/items" --trials 2
expect_match "^warning: no model is better than predicting each item's mean \(validation log-loss 0\.[0-9]+, item means 0\."

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
for begun in "$TMP/auto1" "$TMP/begun"; do # finished; at the end of its first sweep
    mkdir -p "$begun" && [ -e "$begun/kinds" ] || cp -r "$TMP/auto1/kinds" "$begun"
    for command in "train data=$TMP/bkt.h5 model.kind=bkt run=" "submit data=$TMP/bkt.h5 model.kind=bkt --dry-run run=" \
        "update $TMP/bkt-bkt data=$TMP/bkt.h5 run=" "train run=" "train refit=$TMP/bkt-bkt run=" \
        "blend $TMP/bkt-bkt $TMP/bkt-lme --output="; do
        expect_status 1 "$COHORT" $command"$begun"
        expect_match "^cohort: $begun: this is the directory of .cohort auto.; continue it with .cohort auto., or choose"
    done
    expect_status 1 "$COHORT" sweep "data=$TMP/bkt.h5" "run=$begun" 'model.kind={bkt, lme}'
    expect_match "$begun: this directory belongs to .cohort auto.; choose another run= for the sweep"
    check "no run is begun there" test ! -e "$begun/config.ini" -a ! -e "$begun/sweep.ini"
done
expect_status 1 "$COHORT" evaluate "$TMP/begun"
expect_match 'begun: this is the directory of .cohort auto., which has not finished'
run "$COHORT" simulate bkt --students 60 --skills 2 --split none -o "$TMP/none.h5"
expect_status 1 "$COHORT" auto "$TMP/none.h5" "run=$TMP/x"
expect_match 'no validation attempts'
check "nothing is left" test ! -e "$TMP/x"
