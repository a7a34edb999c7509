#!/bin/bash
# Runs: one command starts a run, continues it, and recognises a finished one. Kills, signals, damage and a second job
# at any moment change no bit of the result.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}
class=$TMP/class.h5 other=$TMP/other.h5
run "$COHORT" simulate irt --students 600 --items 20 --seed 1 -o "$class"
run "$COHORT" simulate irt --students 600 --items 20 --seed 2 -o "$other"
# Small, but a second or two long, with many Gibbs steps. Saves whenever it checks the clock.
gibbs=400 n_kills=6
if [ -n "${COHORT_QUICK:-}" ]; then gibbs=80 n_kills=3; fi # builds that are slow
small=(model.kind=rbm model.preset=binomial model.hidden=40 model.cd_steps="$gibbs" optimizer.rate=0.0002 train.batch=20 train.block=4
    train.epochs=6 train.seed=3 data="$class" run.save_minutes=0)
quick=("${small[@]}" model.cd_steps=1)

# sums DIRECTORY: digests of everything in it except the lock, which may name a killed process.
sums() { (cd "$1" && find . -type f ! -name lock | sort | xargs sha256sum); }

# expect_reference DIRECTORY [REFERENCE]: tests: the same checkpoints and log as an uninterrupted run.
expect_reference() {
    local reference=${2:-$TMP/reference}
    expect_same "$reference/last.h5" "$1/last.h5"
    expect_same "$reference/best.h5" "$1/best.h5"
    expect_same "$reference/result.json" "$1/result.json"
    expect_log "$1/log.jsonl" 6
    expect_equal '' "$(find "$1" -name '*.tmp')" 'no temporary files'
}

section 'settings that are not given again'
expect_status 0 on 2 "$COHORT" train jobs/rbm.ini data="$class" run="$TMP/said" model.hidden=15 train.epochs=2 train.seed=7
expect_status 0 on 3 "$COHORT" train jobs/rbm.ini data="$class" run="$TMP/said"
expect_match '^continuing .*last.h5 after epoch 2, step 0'
expect_match '^seed = 7$' "$TMP/said/config.ini"
expect_status 0 on 2 "$COHORT" train run="$TMP/said"
expect_match 'is already finished'
expect_status 1 on 2 "$COHORT" train run="$TMP/said" train.seed=8
expect_match "was started with 'seed = 7' but now 'seed = 8'"
expect_status 1 "$COHORT" train run="$TMP/said" data="$class" model.kind=bkt
expect_match "was started with 'kind = rbm' but now 'kind = bkt'"

section 'start, repeat, more epochs'
expect_status 0 on 1 "$COHORT" train "${quick[@]}" train.epochs=3 run="$TMP/a"
expect_match '^done: 3 epochs'
expect_log "$TMP/a/log.jsonl" 3
for file in config.ini last.h5 previous.h5 best.h5 result.json; do
    check "there is $file" test -s "$TMP/a/$file"
done
expect_equal 3 "$(json_of "$TMP/a/result.json" epochs)" 'epochs in result.json'
before=$(sums "$TMP/a")
expect_status 0 on 2 "$COHORT" train "${quick[@]}" train.epochs=3 run="$TMP/a"
expect_match 'is already finished after 3 epochs'
expect_equal "$before" "$(sums "$TMP/a")" 'a finished run keeps its bytes'
check 'and its lock is empty' test ! -s "$TMP/a/lock"
expect_status 0 on 3 "$COHORT" train "${quick[@]}" train.epochs=6 run="$TMP/a"
expect_match '^continuing .*last.h5 after epoch 3, step 0'
expect_log "$TMP/a/log.jsonl" 6
expect_equal 6 "$(json_of "$TMP/a/result.json" epochs)" 'epochs in result.json'
expect_status 0 on 2 "$COHORT" train "${quick[@]}" train.epochs=6 run="$TMP/b"
expect_same "$TMP/b/last.h5" "$TMP/a/last.h5"
expect_status 0 on 1 "$COHORT" train "$TMP/b/config.ini" run="$TMP/c"
expect_same "$TMP/b/last.h5" "$TMP/c/last.h5"
expect_same "$TMP/b/best.h5" "$TMP/c/best.h5"

section 'a result with fewer epochs'
cp -r "$TMP/b" "$TMP/stale"
start 2 "$COHORT" train "${quick[@]}" train.epochs=100000 run="$TMP/stale"
until_epoch 8 "$TMP/stale"
kill_job all
finish
check 'is gone when the run goes on' test ! -e "$TMP/stale/result.json"
expect_status 0 on 1 "$COHORT" train "${quick[@]}" train.epochs=3 run="$TMP/stale"
check 'less than was done is finished' test "$(json_of "$TMP/stale/result.json" epochs)" -ge 7

section 'the reference run'
expect_status 0 on 1 "$COHORT" train "${small[@]}" run="$TMP/reference"
expect_log "$TMP/reference/log.jsonl" 6

# storms REFERENCE SETTINGS...: tests: a series of kills, more than one and within an epoch, changes no bits. Where
# the machine is too fast for that, or by chance, the series is repeated with kills sooner after a start.
storms() {
    local reference=$1 MOMENT n_killed=0 n_within=0
    shift
    for MOMENT in 300 300 100 30 10; do
        rm -rf "$TMP/storm"
        storm "$n_kills" "$TMP/storm" "$@"
        expect_reference "$TMP/storm" "$reference"
        n_killed=$((n_killed + N_KILLED)) n_within=$((n_within + N_WITHIN))
        if [ $n_killed -ge 2 ] && [ $n_within -ge 1 ]; then break; fi
    done
    check "was killed ($n_killed times)" test $n_killed -ge 2
    check "some were continued within an epoch ($n_within)" test $n_within -ge 1
}

section 'kill -9 at random moments'
storms "$TMP/reference" "${small[@]}"

section 'kill -9 with one chain per student'
persistent=("${small[@]}" model.persistent=yes)
expect_status 0 on 3 "$COHORT" train "${persistent[@]}" run="$TMP/chains"
storms "$TMP/chains" "${persistent[@]}"
check 'chains are part of it' test "$(wc -c <"$TMP/chains/last.h5")" -gt "$(wc -c <"$TMP/reference/last.h5")"

section signals
seldom=("${small[@]}" run.save_minutes=1000) # it saves only when it is told to
for case in 'USR1 1' 'TERM 1' 'USR1 3'; do
    read -r signal n <<<"$case"
    directory=$TMP/$signal$n
    stop "$n" "$signal" "$directory" "${seldom[@]}"
    expect_equal 85 "$ENDED" "exit code after $signal on $n ranks"
    expect_equal 1 "$(errors | grep -c 'stopped by a signal after epoch')" 'one rank says so'
    place=$(errors | sed -nE 's/.*stopped by a signal (after epoch [0-9]+, step [0-9]+);.*/\1/p')
    expect_status 0 on 2 "$COHORT" train "${small[@]}" run="$directory"
    expect_match "^continuing .*last.h5 $place\$"
    expect_reference "$directory"
done
# mpirun gives its ranks a moment after TERM; whether or not that was enough:
stop 3 TERM "$TMP/TERM3" "${seldom[@]}"
check "ends with a code for TERM to mpirun ($ENDED)" test "$ENDED" != 0 -a "$ENDED" != 124
expect_status 0 on 2 "$COHORT" train "${small[@]}" run="$TMP/TERM3"
expect_reference "$TMP/TERM3"

section 'damaged checkpoints'
start 2 "$COHORT" train "${small[@]}" run="$TMP/half"
until_epoch 3 "$TMP/half"
kill_job all
finish
check 'two checkpoints' test -s "$TMP/half/last.h5" -a -s "$TMP/half/previous.h5"
n=1
for damage in flip cut empty text vanish; do
    directory=$TMP/$damage
    cp -r "$TMP/half" "$directory"
    case $damage in
    flip) flip "$directory/last.h5" ;;
    cut) truncate -s -1000 "$directory/last.h5" ;;
    empty) : >"$directory/last.h5" ;;
    text) echo 'not a checkpoint' >"$directory/last.h5" ;;
    vanish) rm "$directory/last.h5" ;;
    esac
    expect_status 0 on $n "$COHORT" train "${small[@]}" run="$directory"
    if [ $damage != vanish ]; then
        expect_match '^warning: .*last.h5: .*(damaged|truncated)'
        expect_match '^warning: continuing from .*previous.h5'
    fi
    expect_match '^continuing .*previous.h5'
    expect_reference "$directory"
    n=$((n % 3 + 1))
done

# The good checkpoint must not be replaced by the bad one, however often the run is killed.
cp -r "$TMP/half" "$TMP/half_bad"
flip "$TMP/half_bad/last.h5"
storm 3 "$TMP/half_bad" "${small[@]}"
expect_reference "$TMP/half_bad"

cp -r "$TMP/half" "$TMP/both"
flip "$TMP/both/last.h5"
: >"$TMP/both/previous.h5"
before=$(sums "$TMP/both" | grep h5)
for n in 1 3; do
    expect_status 3 on $n "$COHORT" train "${small[@]}" run="$TMP/both"
    expect_equal 1 "$(errors | grep -c '^cohort: .*no checkpoint of this run can be read')" 'says so once'
    expect_equal "$before" "$(sums "$TMP/both" | grep h5)" 'nothing is touched'
done
cp -r "$TMP/reference" "$TMP/no_best"
rm "$TMP/no_best/best.h5"
expect_status 1 on 2 "$COHORT" train "${small[@]}" run="$TMP/no_best"
expect_match '^cohort: the best epoch cannot be read.*best.h5: .*No such file'

section leftovers
cp -r "$TMP/half" "$TMP/leftovers"
for file in last.h5 best.h5 config.ini result.json log.jsonl; do
    head -c 100000 /dev/urandom >"$TMP/leftovers/$file.tmp"
done
ln -sf "$TMP/nowhere/else" "$TMP/leftovers/last.h5.tmp"
printf '{"epoch": 4, "st' >>"$TMP/leftovers/log.jsonl"
expect_status 0 on 2 "$COHORT" train "${small[@]}" run="$TMP/leftovers"
expect_reference "$TMP/leftovers"

section 'one job per run'
start 2 "$COHORT" train "${quick[@]}" train.epochs=100000000 run="$TMP/held"
until_epoch 2 "$TMP/held"
for n in 1 3; do
    ( # what the first job says is kept
        LIB_OUT=$TMP/second.out LIB_ERR=$TMP/second.err
        expect_status 1 on $n "$COHORT" train "${quick[@]}" train.epochs=100000000 run="$TMP/held"
        expect_match "^cohort: .*held: another job is using this run \(process [0-9]+ on "
        expect_equal 1 "$(errors | grep -c '^cohort: ')" 'says so once'
    )
done
# A job that Slurm has restarted waits: the lock may be its own, held on a node that was lost.
SLURM_RESTART_COUNT=1 "$COHORT" train "${quick[@]}" train.epochs=100000000 run="$TMP/held" >"$TMP/again" 2>&1 &
again=$!
check 'a job that is started again waits' until_job grep -q 'held: the run is still locked' "$TMP/again"
holder=$(sed 's/process \([0-9]*\) .*/\1/' "$TMP/held/lock")
check 'the holder is one of its ranks' grep -qx "$holder" <(job_ranks)
check 'the first goes on' until_epoch $(($(wc -l <"$TMP/held/log.jsonl") + 1)) "$TMP/held"
kill -9 "$holder"
finish
check "and ends when its holder is killed ($ENDED)" test "$ENDED" != 0 -a "$ENDED" != 124
JOB=$again
check 'and then goes on' until_job grep -Eq ' ranks?$' "$TMP/again"
kill -USR1 "$JOB"
finish
expect_equal 85 "$ENDED" 'exit code of the job that waited'
start 1 "$COHORT" train "${quick[@]}" train.epochs=100000000 run="$TMP/held"
until_says '^continuing'
until_says ' ranks?$'
kill -USR1 "$JOB"
finish
expect_equal 85 "$ENDED" 'the lock is free again'

section 'other settings, other data'
before=$(sums "$TMP/half")
for n in 1 3; do
    expect_status 1 on $n "$COHORT" train "${small[@]}" model.hidden=41 run="$TMP/half"
    expect_match "^cohort: .*last.h5: this run was started with 'hidden = 40' but now 'hidden = 41'"
    expect_status 1 on $n "$COHORT" train "${small[@]}" data="$other" run="$TMP/half"
    expect_match '^cohort: .*last.h5: this run was trained on other data than .*other.h5 has now \(digest [0-9a-f]{32}, now'
done
expect_equal "$before" "$(sums "$TMP/half")" 'nothing is touched'
cp "$class" "$TMP/moved.h5"
expect_status 0 on 2 "$COHORT" train "${small[@]}" data="$TMP/moved.h5" run="$TMP/half"
expect_reference "$TMP/half"

section 'cross-validation'
folds=("${small[@]}" model.cd_steps=60 train.epochs=3 train.folds=5)
expect_status 0 on 2 "$COHORT" train "${folds[@]}" run="$TMP/folds"
expect_match '^5 folds, test scores'
expect_match '^  log_loss +0\.[0-9]+ \+- 0\.[0-9]+'
for k in 1 2 3 4 5; do
    expect_log "$TMP/folds/fold-$k/log.jsonl" 3
done
expect_equal 5 "$(find "$TMP/folds" -name 'fold-*' | wc -l)" 'folds'
expect_equal 5 "$(json_of "$TMP/folds/result.json" folds)" 'folds in result.json'
for k in 0 1 2 3 4; do
    values+=" $(json_of "$TMP/folds/result.json" test auc folds $k)"
done
mean=$(json_of "$TMP/folds/result.json" test auc mean)
spread=$(json_of "$TMP/folds/result.json" test auc spread)
check 'mean and spread are those of the folds' awk -v values="$values" -v mean="$mean" -v spread="$spread" 'BEGIN {
    n = split(values, v)
    for (i = 1; i <= n; i++) sum += v[i]
    for (i = 1; i <= n; i++) squares += (v[i] - sum / n) ^ 2
    a = sum / n - mean; b = sqrt(squares / (n - 1)) - spread
    exit !(n == 5 && a * a < 1e-16 && b * b < 1e-16 && spread > 0 && mean > 0.5) }'
start 3 "$COHORT" train "${folds[@]}" run="$TMP/folds_killed"
until_says '^fold 3 of 5'
pause 300
kill_job all
finish
expect_status 0 on 1 "$COHORT" train "${folds[@]}" run="$TMP/folds_killed"
expect_match 'fold 2 of 5'
expect_same "$TMP/folds/result.json" "$TMP/folds_killed/result.json"
for k in 1 2 3 4 5; do
    expect_same "$TMP/folds/fold-$k/last.h5" "$TMP/folds_killed/fold-$k/last.h5"
done

section 'early stopping'
stops=("${quick[@]}" optimizer.rate=0.005 train.epochs=1000 train.patience=4)
expect_status 0 on 2 "$COHORT" train "${stops[@]}" run="$TMP/patience"
expect_match '^done: .* stopped early'
epochs=$(json_of "$TMP/patience/result.json" epochs)
best=$(json_of "$TMP/patience/result.json" best_epoch)
expect_equal true "$(json_of "$TMP/patience/result.json" stopped_early)" stopped_early
expect_equal $((best + 4)) "$epochs" 'four epochs after the best'
check 'the best is not the last' test "$(sha256sum <"$TMP/patience/best.h5")" != \
    "$(sha256sum <"$TMP/patience/last.h5")"
run "$COHORT" inspect "$TMP/patience/best.h5" --json
expect_equal "$best" "$(json epoch)" 'best.h5 is of that epoch'
expect_status 0 on 3 "$COHORT" train "${stops[@]}" run="$TMP/patience"
expect_match "is already finished after $epochs epochs?"
expect_status 0 on 3 "$COHORT" train "${quick[@]}" optimizer.rate=0.005 train.epochs=1000 train.patience=6 \
    run="$TMP/patience"
expect_match "^continuing .* after epoch $epochs"
expect_status 0 on 1 "$COHORT" train "${stops[@]}" train.valid_every=3 run="$TMP/patience3"
last=$(json_of "$TMP/patience3/result.json" epochs)
check 'patience is in epochs, not in validations' \
    test $((last - $(json_of "$TMP/patience3/result.json" best_epoch))) = 6

section 'settings without effect'
run "$COHORT" simulate irt --students 60 --items 8 --split none -o "$TMP/unsplit.h5" || fail "simulate"
for kind in rbm bkt; do
    expect_status 0 on 2 "$COHORT" train "data=$TMP/unsplit.h5" model.kind=$kind train.epochs=2 train.batch=20 \
        train.block=10 train.patience=3 train.monitor=auc "run=$TMP/idle-$kind"
    expect_equal 1 "$(errors | grep -c '^warning: train.patience = 3 has no effect: ')" "says so once for $kind"
    expect_match '^warning: train.monitor = auc has no effect: '
done
expect_status 0 "$COHORT" train "data=$TMP/unsplit.h5" model.kind=rbm train.epochs=2 train.batch=20 "run=$TMP/idle"
expect_no_match '^warning'

section 'settings without effect: validation attempts without a known outcome, or all alike'
# answers VALID: 60 students, of whom 12 are for validation and have these outcomes.
answers() {
    awk -v valid="$1" 'BEGIN {
        print "student,item,outcome,skill,split,target"
        for (s = 0; s < 60; s++)
            for (t = 0; t < 8; t++)
                printf "s%d,i%d,%s,k%d,%s,%s\n", s, t, s % 5 ? (s * 7 + t * 5) % 11 < 6 : valid, t % 3, s % 5 ? "train" : "valid",
                    s % 5 ? s % 2 : valid }' >"$TMP/answers.csv"
    run "$COHORT" import csv "$TMP/answers.csv" --split-column split --skills skill --target target -o "$TMP/$2.h5" ||
        fail "import $2"
}
answers '' blank
expect_match '^warning: no known outcome is for validation \(attempts: 96, split .*training cannot stop at the best epoch'
why='no outcome of the 96 validation attempts is known; import the data with them'
idle=(train.epochs=2 train.batch=20 train.block=10 train.patience=1 train.monitor=auc)
for kind in rbm rtrbm dkt vae average ktm bkt lme; do
    expect_status 0 on 2 "$COHORT" train "data=$TMP/blank.h5" model.kind=$kind "${idle[@]}" "run=$TMP/blank-$kind"
    case $kind in bkt | lme) why='the result of this model is its last epoch' ;; esac
    expect_equal 1 "$(errors | grep -c "^warning: train.patience = 1 has no effect: $why")" "patience of $kind"
    expect_equal 1 "$(errors | grep -c "^warning: train.monitor = auc has no effect: $why")" "monitor of $kind"
done
why='no outcome of the 96 validation attempts is known'
printf '[train]\npatience = 1\nmonitor = rmse\n' >"$TMP/idle.ini"
expect_status 0 "$COHORT" train "$TMP/idle.ini" "data=$TMP/blank.h5" model.kind=average train.epochs=2 "run=$TMP/blank-ini"
expect_match "^warning: train.patience = 1 has no effect: $why"
expect_match "^warning: train.monitor = rmse has no effect: $why"
expect_status 0 "$COHORT" train "data=$TMP/blank.h5" model.kind=dkt model.task=final train.epochs=2 train.patience=1 \
    "run=$TMP/blank-target"
expect_match '^warning: train.patience = 1 has no effect: no target of the 12 validation students is known'
expect_status 0 "$COHORT" train "data=$TMP/blank.h5" model.kind=rbm "run=$TMP/blank-default"
expect_match '^done: 15 epochs'
expect_no_match '^warning: train'
answers 1 alike
expect_no_match 'no known outcome is for validation'
for kind in rbm rtrbm dkt vae average ktm; do
    expect_status 1 "$COHORT" train "data=$TMP/alike.h5" model.kind=$kind "${idle[@]}" "run=$TMP/alike-$kind"
    expect_match '^cohort: train.monitor = auc: no validation outcome is incorrect \(outcomes: 96\), so their AUC is undefined'
done
expect_status 1 "$COHORT" train "data=$TMP/alike.h5" model.kind=dkt model.task=final "${idle[@]}" "run=$TMP/alike-target"
expect_match '^cohort: train.monitor = auc: all 12 validation targets are 1, so their AUC is undefined'
# an update: the warnings are about what is set for it, and it takes as many epochs as led to the best
expect_status 0 "$COHORT" train "data=$TMP/alike.h5" model.kind=rbm train.epochs=3 train.patience=2 "run=$TMP/alike-rbm"
expect_status 0 "$COHORT" update "$TMP/alike-rbm" --data "$TMP/blank.h5"
expect_match "^done: $(json_of "$TMP/alike-rbm/result.json" best_epoch) epoch"
expect_no_match '^warning: train'
expect_status 0 "$COHORT" update "$TMP/alike-rbm" --data "$TMP/blank.h5" "run=$TMP/alike-again" train.patience=1 train.monitor=auc
expect_match "^warning: train.patience = 1 has no effect: $why"
expect_match "^warning: train.monitor = auc has no effect: $why"

section presets
for preset in $("$COHORT" help rbm | sed -n '/^  Presets of rbm/,/^SEE/s/^    \([a-z_]*\)  .*/\1/p'); do
    expect_status 0 on 2 "$COHORT" train model.kind=rbm model.preset="$preset" train.epochs=2 data="$class" \
        run="$TMP/preset_$preset"
    n_presets=$((${n_presets:-0} + 1))
done
check "all presets (${n_presets:-0})" test "${n_presets:-0}" -ge 5
expect_status 0 on 1 "$COHORT" train jobs/rbm.ini train.epochs=2 data="$class" run="$TMP/job"
