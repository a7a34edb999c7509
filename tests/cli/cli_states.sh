#!/bin/bash
# Directories in states that no single run leaves: files lost, copied at different moments or left by another run,
# replaced data, nodes that see different files, several jobs at once.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
class=$TMP/class.h5
run "$COHORT" simulate irt --students 300 --items 12 --seed 1 -o "$class"
run "$COHORT" simulate irt --students 300 --items 12 --seed 2 -o "$TMP/other.h5"
small=(model.kind=rbm model.preset=binomial model.hidden=5 optimizer.rate=0.002 train.batch=60 data="$class" run.save_minutes=0)
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=6 run="$TMP/reference"
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=3 run="$TMP/three"

# epochs FILE: the epochs recorded in a log.
epochs() { sed -E 's/^."epoch": ([0-9]+),.*/\1/' "$1" | xargs; }

section 'lost records of the log'
cp -r "$TMP/three" "$TMP/hole"
sed -i 2,3d "$TMP/hole/log.jsonl"
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=5 run="$TMP/hole"
expect_equal '1 4 5' "$(epochs "$TMP/hole/log.jsonl")" 'epochs in the log'
cp "$TMP/three/last.h5" "$TMP/hole/last.h5"
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=6 run="$TMP/hole"
expect_match '^continuing .*after epoch 3, step 0'
expect_equal '1 4 5 6' "$(epochs "$TMP/hole/log.jsonl")" 'epochs in the log'
expect_same "$TMP/reference/last.h5" "$TMP/hole/last.h5"

section 'the best checkpoint of another run'
mkdir "$TMP/anew"
cp "$TMP/reference/best.h5" "$TMP/anew"
start 1 "$COHORT" train "${small[@]}" model.hidden=3 train.epochs=1000000 train.valid_every=1000000 run="$TMP/anew"
until_epoch 2 "$TMP/anew"
kill_job all
finish
check 'is not taken for this one' test ! -e "$TMP/anew/best.h5"

section 'the same epoch of another run'
run "$COHORT" simulate irt --students 60 --items 8 --seed 3 -o "$TMP/small.h5"
twin=(train model.kind=rbm model.preset=binomial data="$TMP/small.h5" train.epochs=3)
for seed in 1 9; do expect_status 0 "$COHORT" "${twin[@]}" train.seed=$seed run="$TMP/twin-$seed"; done
if [ "$(json_of "$TMP/twin-1/result.json" best_epoch)" = "$(json_of "$TMP/twin-9/result.json" best_epoch)" ]; then
    cp "$TMP/twin-9/best.h5" "$TMP/twin-1/best.h5"
    cp "$TMP/twin-9/best.h5" "$TMP/twin-1/previous_best.h5"
    rm "$TMP/twin-1/result.json"
    expect_status 3 "$COHORT" "${twin[@]}" train.seed=1 run="$TMP/twin-1"
    expect_match 'best.h5: this is epoch .* with score .* different runs'
else
    fail "the twins' best epochs differ: choose other seeds"
fi

section 'files from different moments'
cp -r "$TMP/reference" "$TMP/mixed"
cp "$TMP/three/best.h5" "$TMP/mixed/best.h5"
best=$(json_of "$TMP/reference/result.json" best_epoch)
before=$(json_of "$TMP/three/result.json" best_epoch)
check "the best epoch came late ($best after $before)" test "$best" -gt "$before"
rm "$TMP/mixed"/{result.json,previous_best.h5}
expect_status 3 "$COHORT" train "${small[@]}" train.epochs=6 run="$TMP/mixed"
expect_match "^cohort: the best epoch cannot be read.*best.h5: this is epoch $before .* but the best was epoch $best "

section 'killed after saving the best epoch and before saving the checkpoint'
cp -r "$TMP/three" "$TMP/ahead"
rm "$TMP/ahead/result.json"
cp "$TMP/reference/best.h5" "$TMP/ahead/best.h5"
cp "$TMP/three/best.h5" "$TMP/ahead/previous_best.h5"
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=2 run="$TMP/ahead"
for file in last.h5 best.h5 result.json; do expect_same "$TMP/three/$file" "$TMP/ahead/$file"; done
expect_status 0 "$COHORT" train "${small[@]}" train.epochs=6 run="$TMP/ahead"
for file in last.h5 best.h5 result.json; do expect_same "$TMP/reference/$file" "$TMP/ahead/$file"; done

section 'only the previous checkpoint is there'
cp -r "$TMP/reference" "$TMP/before"
rm "$TMP/before/last.h5"
expect_status 0 "$COHORT" train run="$TMP/before"
expect_match '^continuing .*previous.h5 after epoch 5'
expect_same "$TMP/reference/last.h5" "$TMP/before/last.h5"

section 'links and pipes in a run'
echo precious >"$TMP/precious"
for name in lock log.jsonl last.h5 config.ini; do
    rm -rf "$TMP/odd"
    cp -r "$TMP/three" "$TMP/odd"
    rm "$TMP/odd/$name"
    mkfifo "$TMP/odd/$name"
    expect_status 1 timeout 30 "$COHORT" train "${small[@]}" train.epochs=6 run="$TMP/odd"
    expect_match "^cohort: .*odd/$name: this .*pipe"
done
for name in lock log.jsonl; do
    rm -rf "$TMP/odd"
    mkdir "$TMP/odd"
    ln -s "$TMP/precious" "$TMP/odd/$name"
    expect_status "$([ "$name" = lock ] && echo 1 || echo 0)" timeout 30 "$COHORT" train "${small[@]}" train.epochs=1 run="$TMP/odd"
    expect_equal precious "$(cat "$TMP/precious")" "what $name leads to is as it was"
done
mkfifo "$TMP/pipe"
for command in inspect verify; do
    expect_status 3 timeout 30 "$COHORT" $command "$TMP/pipe"
    expect_match 'pipe: not a cohort file'
done
expect_status 1 timeout 30 "$COHORT" evaluate "$TMP/pipe"
expect_status 1 timeout 30 "$COHORT" predict "$TMP/three" -o "$TMP/pipe"

section 'folds that link to themselves'
cp -r "$TMP/three" "$TMP/loop"
for n in 1 2 3; do ln -s . "$TMP/loop/fold-$n"; done
expect_status 0 timeout 60 "$COHORT" verify "$TMP/loop"
expect_status 0 timeout 60 "$COHORT" inspect "$TMP/loop" --json
expect_equal 3 "$(output | grep -c '"state": "finished"')" 'folds'

section 'fewer epochs than already trained'
start 1 "$COHORT" train "${small[@]}" train.epochs=1000000 run="$TMP/fewer"
until_epoch 4 "$TMP/fewer"
kill -USR1 "$JOB"
finish
expect_status 0 "$COHORT" train run="$TMP/fewer" train.epochs=2
expect_match '^done: '
expect_status 0 "$COHORT" train run="$TMP/fewer"
expect_match 'is already finished'
expect_status 0 "$COHORT" train refit="$TMP/fewer" run="$TMP/fewer.all"
run "$COHORT" simulate irt --students 300 --items 12 --seed 1 --split none -o "$TMP/all.h5"
start 1 "$COHORT" train "${small[@]}" data="$TMP/all.h5" optimizer.average=0.9 train.epochs=1000000 run="$TMP/mean"
until_epoch 4 "$TMP/mean"
kill -USR1 "$JOB"
finish
expect_status 0 "$COHORT" train run="$TMP/mean" train.epochs=2
check 'the mean of the steps is kept' test -s "$TMP/mean/best.h5"

section 'nodes that see different files'
for n in 0 1; do printf 'model.hidden = %d\n' $((n + 3)) >"$TMP/$n.ini"; done
# each_rank COMMAND: run it on every rank, with $rank set.
each_rank() { on 2 sh -c "rank=\$OMPI_COMM_WORLD_RANK; exec $1"; }
export PATIENCE=60
train="'$COHORT' train model.kind=rbm data='$class' run='$TMP/nodes'"
expect_status 74 each_rank "$train '$TMP/'\$rank.ini"
expect_match "^cohort: the settings: rank 1 has 'hidden = 4' but rank 0 has 'hidden = 3': the ranks read different files"
rm "$TMP/1.ini"
expect_status 1 each_rank "$train '$TMP/'\$rank.ini"
expect_match 'cannot open .*1.ini: No such file'
sweep="'$COHORT' sweep 'model.hidden={2,3}' model.kind=rbm data='$class' run='$TMP/nodes'"
expect_status 1 each_rank "$sweep '$TMP/'\$rank.ini"
for n in 0 1; do printf 'train.seed = %d\n' "$n" >"$TMP/$n.ini"; done
expect_status 74 each_rank "$sweep '$TMP/'\$rank.ini"
cp "$class" "$TMP/0.h5"
cp "$TMP/other.h5" "$TMP/1.h5"
expect_status 74 each_rank "'$COHORT' train model.kind=rbm data='$TMP/'\$rank.h5 run='$TMP/nodes'"
expect_match '^cohort: .*1.h5: rank 1 has .[0-9a-f]{32}. but rank 0 has'
expect_status 74 each_rank "'$COHORT' evaluate '$TMP/reference' --data '$TMP/'\$rank.h5"
check 'nothing was begun' test ! -e "$TMP/nodes"

section 'a file system without locks'
if command -v strace >"$TMP/strace" && strace -o "$TMP/trace" true; then
    expect_status 0 strace -f -qq -o "$TMP/trace" -e trace=flock -e inject=flock:error=ENOLCK "$COHORT" inspect "$class"

    section 'a member of a blend is replaced after it has predicted'
    cp -r "$TMP/three" "$TMP/member"
    : >"$TMP/trace"
    start 1 strace -o "$TMP/trace" -P "$TMP/blend" -e trace=mkdir -e inject=mkdir:signal=STOP:when=1 \
        "$COHORT" blend "$TMP/member" "$TMP/reference" -o "$TMP/blend"
    until grep -q SIGSTOP "$TMP/trace" || ! alive "$JOB"; do sleep 0.05; done
    cp "$TMP/reference/best.h5" "$TMP/member/best.h5"
    mapfile -t pids < <(job_ranks)
    kill -CONT "${pids[@]}"
    finish
    expect_equal 74 "$ENDED" 'exit code'
    expect_match '^cohort: .*member/best.h5: the checkpoint was replaced while the blend was being made'
    check 'no blend' test ! -e "$TMP/blend/last.h5"
    expect_status 0 "$COHORT" blend "$TMP/member" "$TMP/reference" -o "$TMP/blend"
fi

section 'the data of a sweep are replaced'
cp "$class" "$TMP/data.h5"
sweep=(sweep "${small[@]}" data="$TMP/data.h5" train.epochs=2 'model.hidden={2,3,4}')
expect_status 0 "$COHORT" "${sweep[@]}" run="$TMP/swept"
rm -r "$TMP/swept/trials/$(sed -n 3p "$TMP/swept/leaderboard.csv" | cut -d, -f2)"
cp "$TMP/other.h5" "$TMP/data.h5"
expect_status 1 "$COHORT" "${sweep[@]}" run="$TMP/swept"
expect_match '^cohort: .*swept: trial [0-9a-f]{16} was trained on a data set with digest [0-9a-f]{32}, but .*data.h5 has'
cp "$class" "$TMP/data.h5"
expect_status 0 "$COHORT" "${sweep[@]}" run="$TMP/swept"
expect_match '^1 trial trained'
rm "$TMP/data.h5"
expect_status 1 "$COHORT" "${sweep[@]}" run="$TMP/swept.2"
check 'no trial has failed for it' test ! -e "$TMP/swept.2/trials"

section 'tasks that start a sweep at the same time'
begin() {
    local pids=() k pid
    for k in 1 2 3 4 5 6; do
        "$COHORT" "${sweep[@]}" data="$class" run="$1" "--pack=$k/6" >"$TMP/task.$k" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || return; done
}
for n in 1 2; do check 'all succeed' begin "$TMP/array.$n"; done

section 'halving by several jobs'
halving=("${sweep[@]}" data="$class" 'model.hidden={2,3,4,5,6,7}' 'optimizer.rate=0.002' sweep.rungs=2
    sweep.factor=3 train.epochs=60)
expect_status 0 "$COHORT" "${halving[@]}" run="$TMP/halving"
jobs=()
for n in 1 2 3; do
    "$COHORT" "${halving[@]}" run="$TMP/halving.3" >"$TMP/job.$n" 2>&1 &
    jobs+=($!)
done
for n in 0 1 2; do check "job $n" wait "${jobs[n]}"; done
for file in leaderboard.csv effects.csv; do expect_same "$TMP/halving/$file" "$TMP/halving.3/$file"; done
expect_status 2 "$COHORT" "${halving[@]}" run="$TMP/halving.4" --pack 1/2
expect_match 'add --rung'
expect_status 0 "$COHORT" "${halving[@]}" run="$TMP/halving.4" --pack 1/2 --rung 1
expect_status 1 "$COHORT" "${halving[@]}" run="$TMP/halving.4" --rung 2
expect_match '^cohort: .*halving.4: not done yet: 3 of the 6 trials of rung 1'
