#!/bin/bash
# Jobs on a real Slurm with emulated nodes: runs that are stopped before their time limit, cancelled, or lose a rank
# or a node end with the bytes of an undisturbed run.
# not under: debug double sanitize
# alone: yes
. "$(dirname "$0")/../lib/slurm.sh"
slurm_namespace "$0" "$@"
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
why=$(slurm_possible 2>&1) || skip "$why"
(trap 'slurm_stop' EXIT
slurm_start 4 2 2>"$TMP/why" || { slurm_stop; skip "$(cat "$TMP/why")"; }

class=$TMP/class.h5
run "$COHORT" simulate irt --students 600 --items 20 --seed 1 -o "$class"
# Several seconds long, even on a fast machine: it is stopped three times before it ends.
small=(model.kind=rbm model.preset=binomial model.hidden=40 model.cd_steps=1600 optimizer.rate=0.0002 train.batch=20 train.block=4
    train.epochs=6 train.seed=3 data="$class" run.save_minutes=0)

# state JOB: RUNNING, COMPLETED, ...
state() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -1; }

# until_state JOB STATE: a test: the job reaches the state.
until_state() {
    local deadline=$((SECONDS + PATIENCE))
    until [ "$(state "$1")" = "$2" ]; do
        if [ $SECONDS -ge $deadline ]; then
            fail "job $1 is $(state "$1") instead of $2"
            return
        fi
        sleep 0.05
    done
    pass "job $1 is $2"
}

# until_start LOG N: waits until the N-th start in the log is training.
until_start() {
    local deadline=$((SECONDS + PATIENCE))
    until [ "$(grep -cE '^rbm on ' "$1" 2>/dev/null)" = "$2" ]; do
        if [ $SECONDS -ge $deadline ]; then
            fail "$1: no start $2"
            return
        fi
        sleep 0.05
    done
}

# submit DIRECTORY OPTION...: a test; the job id is in $job.
submit() {
    expect_status 0 "$COHORT" submit "${small[@]}" run="$1" "${@:2}"
    job=$(output)
}

expect_reference() {
    expect_same "$TMP/reference/last.h5" "$1/last.h5"
    expect_same "$TMP/reference/best.h5" "$1/best.h5"
    expect_same "$TMP/reference/result.json" "$1/result.json"
}

# Two runs at the same time, since a requeued job waits in the queue for some seconds.
limited="$TMP/a limited run" unlucky=$TMP/unlucky poor=$TMP/poor

section 'time limits'
submit "$limited" --nodes 2 --ranks 4 --sbatch=--nodelist=n[1-2]
limited_job=$job
for n in 1 2 3; do
    until_start "$limited/slurm.log" $n
    scancel --signal=USR1 --batch "$limited_job"
done &
stopper=$!

section 'cancelled jobs'
submit "$unlucky" --nodes 2 --ranks 4 --sbatch=--nodelist=n[3-4]
expect_status 1 "$COHORT" submit "${small[@]}" run="$unlucky"
expect_match "job $job for this run is in the queue already \((PENDING|RUNNING|CONFIGURING)\); .*scancel $job"
until_start "$unlucky/slurm.log" 1
scancel "$job"
until_state "$job" CANCELLED
expect_match 'cancelled; submit the same job again' "$unlucky/slurm.log"
check 'a checkpoint is left' test -s "$unlucky/last.h5"

section 'a killed rank'
submit "$unlucky" --nodes 2 --ranks 4 --sbatch=--nodelist=n[3-4]
until_start "$unlucky/slurm.log" 2
ranks_of() { # JOB
    local pid
    for pid in $(slurm_left); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$(basename "$COHORT")" ] ||
            ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "SLURM_JOB_ID=$1" || echo "$pid"
    done
}
kill -9 "$(ranks_of "$job" | tail -1)"
until_state "$job" FAILED
expect_match 'exit code 137' "$unlucky/slurm.log"

section 'without PMIx, without requeue'
# Without PMIx mpirun starts the ranks; a job that cannot be requeued is followed by another.
mkdir "$TMP/bin"
printf '#!/bin/bash\n[ "$*" != --mpi=list ] || exec echo none\nexec %s "$@"\n' "$(type -P srun)" >"$TMP/bin/srun"
# Also with a Slurm that is too busy to report the state of the job at once.
printf '#!/bin/bash\n[ -e "%s" ] || { touch "%s" && exit 1; }\nexec %s "$@"\n' "$TMP/asked" "$TMP/asked" "$(type -P squeue)" \
    >"$TMP/bin/squeue"
chmod +x "$TMP/bin/"*
PATH=$TMP/bin:$PATH submit "$poor" --ranks 2 --restarts 1 --sbatch='--no-requeue --nodelist=n3'
until_start "$poor/slurm.log" 1
scancel --signal=USR1 --batch "$job"
until_start "$poor/slurm.log" 2
next=$(sed -n 's/.*continued by job //p' "$poor/slurm.log")
expect_match "job $next: start 2: mpirun on n[0-9], ranks: 2" "$poor/slurm.log"
check 'it was asked again' test -e "$TMP/asked"
scancel --signal=USR1 --batch "$next"
until_state "$next" FAILED
expect_match "job $next: restart limit reached \(1\)" "$poor/slurm.log"

section 'the template submitted by hand'
expect_status 0 sbatch --parsable --chdir="$TMP" --ntasks=2 --nodelist=n3 --export=ALL,PATH="${COHORT%/*}:$PATH" \
    jobs/train.sbatch "${small[@]}" run="$poor"
poor_job=$(output)

section 'a lost node'
submit "$unlucky" --nodes 2 --ranks 3 --sbatch=--exclude=n[1-2]
until_start "$unlucky/slurm.log" 3
scontrol update nodename=n3 state=down reason=test
scontrol update nodename=n3 state=resume
until_start "$unlucky/slurm.log" 4

section 'finished runs'
expect_status 0 on 3 "$COHORT" train "${small[@]}" run="$TMP/reference"
wait $stopper
until_state "$limited_job" COMPLETED
until_state "$job" COMPLETED
expect_match 'start 4: srun on n\[1-2\], ranks: 4' "$limited/slurm.log"
expect_equal 3 "$(grep -c '^continuing' "$limited/slurm.log")" 'continued, in the same log'
expect_equal 3 "$(grep -c 'requeueing the job' "$limited/slurm.log")" 'requeued'
expect_reference "$limited"
expect_equal 3 "$(grep -c '^continuing' "$unlucky/slurm.log")" 'continued'
expect_reference "$unlucky"
until_state "$poor_job" COMPLETED
expect_match '^continuing' "$TMP/cohort.log"
expect_reference "$poor"

section 'the best model'
expect_status 0 "$COHORT" auto "$class" "run=$TMP/auto" --trials 3 --submit --ranks 2
auto_job=$(output)
until_state "$auto_job" COMPLETED
expect_match '^The choice is .*/auto/best' "$TMP/auto/slurm.log"
expect_status 0 "$COHORT" verify "$TMP/auto/best"
)
