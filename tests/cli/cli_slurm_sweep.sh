#!/bin/bash
# Sweeps as job arrays on a real Slurm: packs of trials with a throttle, one trial that fails, a task that is stopped
# and continues, rungs of successive halving, and the job that collects the results.
# not under: debug double sanitize
# alone: yes
. "$(dirname "$0")/../lib/slurm.sh"
slurm_namespace "$0" "$@"
. "$(dirname "$0")/../lib/lib.sh"
PATIENCE=${PATIENCE:-120}
why=$(slurm_possible 2>&1) || skip "$why"
(trap 'slurm_stop' EXIT
export SLURM_ARRAY_SIZE=8 # a small site
slurm_start 4 2 2>"$TMP/why" || { slurm_stop; skip "$(cat "$TMP/why")"; }

run "$COHORT" simulate irt --students 100 --items 10 --seed 1 --split by-student=60/20/20 -o "$TMP/class.h5"
# 51 trials and one more with an absurd learning rate.
cat >"$TMP/sweep.ini" <<END
[data]
file = $TMP/class.h5
[model]
kind = rbm
hidden_kind = gaussian
hidden = 9
cd_steps = 400
[optimizer]
rate = {$(seq -f '%g' -s ', ' 0.0001 0.0001 0.0051), 1000000}
[train]
epochs = 2
batch = 30
END
sweep=(sweep "$TMP/sweep.ini" model.hidden=5)
halving=(sweep "$TMP/sweep.ini" 'optimizer.rate={0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008}' train.epochs=4
    sweep.rungs=2 sweep.factor=2)
# Two trials of several seconds: long enough to be stopped halfway.
long=(sweep "$TMP/sweep.ini" 'optimizer.rate={0.001, 0.002}' model.cd_steps=10000)

# until_empty: waits until the queue is empty.
until_empty() {
    local left deadline=$((SECONDS + PATIENCE))
    until left=$(squeue -h -o %A) && [ -z "$left" ]; do
        if [ $SECONDS -ge $deadline ]; then
            fail "jobs that do not end: $(squeue -h -o '%A %K %T %r' | paste -sd ';')"
            return
        fi
        sleep 0.1
    done
}

section 'dry run'
expect_status 0 "$COHORT" "${sweep[@]}" run="$TMP/none" --submit --packs 10 --throttle 2 --dry-run
expect_match '^### job 1: sbatch --array=0-9%2 $'
expect_match '^### job 2: sbatch  --dependency=afterany:1$'
expect_match "^    'optimizer.rate=\\{0.0001, 0.0002, .*, 1000000\\}'$"
check 'nothing is made' test ! -e "$TMP/none"

section 'refused'
expect_status 1 "$COHORT" "${sweep[@]}" run="$TMP/none" --submit --partition nowhere
expect_match 'sbatch refused .*partition'
check 'nothing is made' test ! -e "$TMP/none"
# Refused at the second array: the first is cancelled.
mkdir "$TMP/bin"
printf '#!/bin/bash\n[[ "$*" != *afterany* ]] || { echo "no more jobs" >&2; exit 1; }\nexec %s --hold "$@"\n' \
    "$(type -P sbatch)" >"$TMP/bin/sbatch"
chmod +x "$TMP/bin/sbatch"
PATH=$TMP/bin:$PATH expect_status 1 "$COHORT" "${sweep[@]}" run="$TMP/none" --submit --ranks 2
expect_match 'no more jobs'
expect_equal '' "$(squeue -h)" 'jobs left'
check 'nothing is made' test ! -e "$TMP/none"

section 'arrays'
expect_status 0 "$COHORT" "${sweep[@]}" run="$TMP/array" --submit --packs 10 --throttle 2 --ranks 1 --time 10
expect_match '^52 trials in 10 packs'
jobs=$(output)
expect_equal 3 "$(wc -l <<<"$jobs")" 'two arrays, since this site takes 8 tasks in one, and a job that collects'
array=$(head -1 <<<"$jobs")
while sleep 0.1; do squeue -h -t R -j "$array" -o %K 2>/dev/null | wc -l; done >"$TMP/at_once" &
sampler=$!
expect_status 0 "$COHORT" "${long[@]}" run="$TMP/long" --submit --packs 1 --ranks 1
stopped=$(output | head -1)
# Only when the job handles signals, and repeated until it does: srun ignores signals while it starts.
deadline=$((SECONDS + PATIENCE))
until grep -q 'start 1:' "$TMP"/long/slurm/pack-*.log 2>/dev/null || [ $SECONDS -ge $deadline ]; do sleep 0.05; done
until grep -qE 'requeueing|exit code' "$TMP"/long/slurm/pack-*.log 2>/dev/null || [ $SECONDS -ge $deadline ]; do
    scancel --quiet --signal=USR1 --batch "$stopped" 2>/dev/null
    sleep 0.2
done
expect_status 0 "$COHORT" "${halving[@]}" run="$TMP/halving" --submit --packs 2 --ranks 2
expect_equal 3 "$(output | wc -l)" 'an array for each rung, and a job that collects'
expect_status 0 ranks 2 "$COHORT" "${sweep[@]}" run="$TMP/teams"
expect_status 0 "$COHORT" "${halving[@]}" run="$TMP/halving-here"
expect_status 0 ranks 2 "$COHORT" "${long[@]}" run="$TMP/long-here"
until_empty
kill $sampler
expect_equal 2 "$(sort -n "$TMP/at_once" | tail -1)" 'tasks at once'
expect_match '51 done, 0 running, 1 failed, 0 waiting' "$TMP/array/slurm/collect.log"
expect_match 'failed: .*optimizer.rate=1000000' "$TMP/array/slurm/collect.log"
expect_equal 8 "$(find "$TMP/array/slurm" -name 'pack-*' | wc -l)" 'logs'
for file in leaderboard.csv effects.csv; do
    expect_same "$TMP/teams/$file" "$TMP/array/$file"
    expect_same "$TMP/halving-here/$file" "$TMP/halving/$file"
    expect_same "$TMP/long-here/$file" "$TMP/long/$file"
done
expect_equal 53 "$(wc -l <"$TMP/array/leaderboard.csv")" 'lines of the leaderboard'
expect_match 'requeueing the job' "$TMP"/long/slurm/pack-*.log

section 'submitting again'
expect_status 0 "$COHORT" "${sweep[@]}" run="$TMP/array" --submit --ranks 2
expect_match 'no trial is missing'
expect_equal '' "$(output)$(squeue -h)" 'jobs'
)
