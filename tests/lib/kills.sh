# shellcheck shell=bash
# Stops and kills jobs: for tests/cli/cli_runs.sh and similar tests, after lib.sh.
PATIENCE=${PATIENCE:-120} # seconds after which a job counts as hanging

# on N COMMAND...: runs the command on N ranks with a time limit (exit code 124). One rank needs no mpirun.
on() {
    local n=$1
    shift
    if [ "$n" = 1 ]; then
        timeout -k 5 "$PATIENCE" "$@"
    else
        timeout -k 5 "$PATIENCE" mpirun -n "$n" "$@"
    fi
}

# start N COMMAND...: the same in the background, as $JOB; its output goes where `run` puts it.
start() {
    local n=$1
    shift
    if [ "$n" != 1 ]; then set -- mpirun -n "$n" "$@"; fi
    : >"$LIB_ERR"
    "$@" >"$LIB_OUT" 2>"$LIB_ERR" &
    JOB=$!
}

# alive PID: whether the process exists and has not ended.
alive() { [ -e "/proc/$1/exe" ]; }

# descendants PID: prints its children and their descendants.
descendants() {
    local child
    for child in $(grep -ls "^PPid:[[:space:]]$1\$" /proc/[0-9]*/status | cut -d/ -f3); do
        echo "$child"
        descendants "$child"
    done
}

# job_ranks: prints the processes of $JOB that train, in no particular order.
job_ranks() {
    local pid
    for pid in "$JOB" $(descendants "$JOB"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$(basename "$COHORT")" ] || echo "$pid"
    done
}

# finish: waits for $JOB and stores its exit code in $ENDED; 124 if it had to be killed.
finish() {
    local deadline=$((SECONDS + PATIENCE))
    ENDED=
    while alive "$JOB"; do
        if [ $SECONDS -ge $deadline ]; then
            ENDED=124
            kill_job all
        fi
        sleep 0.02
    done
    wait "$JOB"
    ENDED=${ENDED:-$?}
} 2>/dev/null # hides bash's message that the job was killed

# kill_job all|one|launcher: sends kill -9 to all processes of $JOB, to one of its ranks as soon as there is one, or
# only to mpirun, after which the ranks end by themselves. Returns when the processes that must end are gone, and
# removes their files in /dev/shm.
kill_job() {
    local victims leaving memory pid deadline=$((SECONDS + PATIENCE))
    if [ "$1" = one ]; then
        until victims=($(job_ranks | shuf -n 1)) && [ ${#victims[@]} = 1 ]; do
            alive "$JOB" || return
            sleep 0.01
        done
        leaving=("${victims[@]}")
    else
        kill -STOP "$JOB" # so that it starts no ranks that are not in the list
        leaving=("$JOB" $(descendants "$JOB"))
        victims=("${leaving[@]}")
        if [ "$1" = launcher ]; then victims=("$JOB"); fi
    fi
    memory=$(for pid in "${leaving[@]}"; do grep -ho '/dev/shm/vader_segment[^ ]*' "/proc/$pid/maps"; done)
    kill -9 "${victims[@]}"
    for pid in "${leaving[@]}"; do
        while alive "$pid" && [ $SECONDS -lt $deadline ]; do sleep 0.01; done
    done
    if [ "$1" != one ]; then rm -f $memory; fi # otherwise mpirun cleans up
} 2>/dev/null

# until_says PATTERN: waits until $JOB prints it on stderr; fails if the job ends or hangs first.
until_says() { until_job grep -Eq -e "$1" "$LIB_ERR"; }

# until_epoch N DIRECTORY: waits until N epochs are logged there.
until_epoch() { until_job has_epochs "$1" "$2/log.jsonl"; }
has_epochs() { [ "$(wc -l <"$2" || echo 0)" -ge "$1" ]; } 2>/dev/null

# until_job COMMAND...: waits until the command succeeds; fails if $JOB ends or hangs first.
until_job() {
    local deadline=$((SECONDS + PATIENCE))
    until "$@"; do
        alive "$JOB" && [ $SECONDS -lt $deadline ] || return 1
        sleep 0.01
    done
}

# pause MOST: sleeps for a random number of milliseconds.
pause() {
    local ms=$((RANDOM % $1))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# stop N SIGNAL DIRECTORY SETTINGS...: trains there on N ranks, sends the signal at a random moment and stores the exit
# code in $ENDED. If training had ended by then, starts again and sends the signal sooner.
stop() {
    local n=$1 signal=$2 directory=$3 most
    shift 3
    for most in 300 100 30 10 1; do
        rm -rf "$directory"
        start "$n" "$COHORT" train "$@" run="$directory"
        until_says ' ranks?$'
        pause $most
        kill -"$signal" "$JOB" 2>/dev/null
        finish
        if [ "$ENDED" != 0 ]; then break; fi
    done
}

# between_kills DIRECTORY: a hook of `storm` that may change the run between two jobs.
between_kills() { :; }

# storm N DIRECTORY SETTINGS...: trains there, is killed N times at random moments and continued on another number of
# ranks, and then trains to the end, which is one test. Stores the number of kills in $N_KILLED and how often it
# continued within an epoch in $N_WITHIN. $MOMENT is the longest time before a kill, in milliseconds.
storm() {
    local n_kills=$1 directory=$2 counts=(1 2 3 5) round n
    shift 2
    N_KILLED=0 N_WITHIN=0
    for ((round = 0; round <= n_kills; round++)); do
        n=${counts[RANDOM % ${#counts[@]}]}
        if [ $round = "$n_kills" ]; then
            expect_status 0 on "$n" "$COHORT" train "$@" run="$directory"
        else
            start "$n" "$COHORT" train "$@" run="$directory"
            if [ $((RANDOM % 4)) != 0 ]; then until_says ' ranks?$'; fi
            pause "${MOMENT:-300}"
            kill_job "$(shuf -n 1 -e all one launcher)"
            finish
            [ "$ENDED" != 124 ] || fail "did not end after a kill on $n ranks"
            if [ "$ENDED" != 0 ]; then N_KILLED=$((N_KILLED + 1)); fi
            between_kills "$directory"
        fi
        N_WITHIN=$((N_WITHIN + $(grep -Ec '^continuing .* step [1-9]' "$LIB_ERR")))
    done
}

# expect_log FILE N: tests that there is exactly one JSON record for each of N epochs, in order.
expect_log() {
    local number='-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?' good
    good="^\{\"epoch\": [0-9]+, \"step\": [0-9]+, \"loss\": $number, "
    good+="(\"valid\": \{\"n\": [0-9]+(, \"[a-z_]+\": ($number|null))+\}, )?"
    good+="\"seconds\": $number, \"attempts_per_second\": $number, \"elapsed\": $number\}\$"
    expect_equal "$(seq 1 "$2" | tr '\n' ' ')" \
        "$(grep -E "$good" "$1" | sed -E 's/^."epoch": ([0-9]+),.*/\1/' | tr '\n' ' ')" "epochs in $1"
    expect_equal "$2" "$(($(wc -l <"$1")))" "records in $1"
}

# flip FILE: changes one byte in the middle.
flip() {
    local middle=$(($(wc -c <"$1") / 2)) byte
    byte=$(od -An -tu1 -j $middle -N 1 "$1")
    printf "\\x$(printf %02x $((byte ^ 85)))" | dd of="$1" bs=1 seek=$middle conv=notrunc status=none
}
