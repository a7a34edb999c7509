#!/bin/bash
# Progress and Ctrl-C: the line that a terminal shows, under mpirun too; plain lines in logs; a stopped run continues,
# and its time counts all starts.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
cd "$TMP" || exit 70
run "$COHORT" simulate irt --students 4000 --items 20 --skills 2 --seed 1 -o class.h5
quick=(data=class.h5 model.kind=rbm model.hidden=8 train.seed=7)

section "slow runs do not say 0.0 million"
printf 'student,item,correct\na,q,1\nb,q,0\n' >few.csv
run "$COHORT" import csv few.csv --split none -o few.h5
expect_status 0 "$COHORT" train data=few.h5 run=few model.kind=dkt model.hidden=200 train.epochs=1
expect_match '^epoch 1: .* s, [1-9][0-9]* (thousand )?attempts per second$'

# A sweep of two rungs that waits: another process holds one trial. It prints where it is after half a minute.
printf '[model]\nkind = rbm\nhidden = {2, 3}\n[train]\nepochs = 2\n[sweep]\nrungs = 2\n[run]\ndirectory = sweep\n' >sweep.ini
run "$COHORT" simulate irt --students 60 --items 5 --skills 1 --seed 1 -o small.h5
expect_status 0 "$COHORT" sweep sweep.ini data=small.h5 run=sample
held=$(ls sample/trials | head -1)
mkdir -p "sweep/trials/$held"
perl -MFcntl -e 'open F, ">", shift or die; $l = pack "ssx![q]qql", F_WRLCK, 0, 0, 0, 0; fcntl F, F_SETLK, $l or die;
    open H, ">", "held" or die; select undef, undef, undef, 0.1 while -e "held"' "sweep/trials/$held/claim" &
holder=$!
until [ -e held ] || ! kill -0 $holder 2>/dev/null; do sleep 0.1; done
(
    "$COHORT" sweep sweep.ini data=small.h5 2>waiting.err >waiting.out &
    job=$!
    until grep -q 'of 2 trials' waiting.err || ! kill -0 $job 2>/dev/null; do sleep 0.2; done
    rm -f held
    wait $job
) &
waiting=$!

if script -qec true /dev/null >/dev/null 2>&1; then
    # on_terminal FILE WHEN COMMAND: runs it on a terminal, presses Ctrl-C when the run WHEN has an epoch. The command
    # replaces the shell (exec), because a shell that waits for it would get the Ctrl-C too and end with 130.
    on_terminal() {
        {
            until [ -s "$2/log.jsonl" ]; do sleep 0.1; done
            printf '\003'
            until [ -e "$1.ended" ]; do sleep 0.1; done
        } | (
            script -qefc "exec $3" "$1" >/dev/null
            echo $? >"$1.ended"
        )
        tr '\r' '\n' <"$1" >"$1.lines"
    }
    live='^epoch [0-9]+ of 1000000, step [0-9]+ of [0-9]+, .*(s|min) left; best valid log_loss'

    section "on a terminal"
    on_terminal one.txt one "$COHORT train ${quick[*]} run=one train.epochs=1000000"
    expect_equal 85 "$(cat one.txt.ended)" "exit status"
    expect_match "$live" one.txt.lines
    expect_match '^stopping after this step, then saving; press Ctrl-C again' one.txt.lines
    expect_match 'everything is saved in one; run the same command again to continue' one.txt.lines
    check "a checkpoint" test -s one/last.h5
    expect_status 0 "$COHORT" verify one

    section "under mpirun on a terminal"
    on_terminal two.txt two "mpirun -n 2 $COHORT train ${quick[*]} run=two train.epochs=1000000"
    expect_match "$live" two.txt.lines
    expect_match 'everything is saved in two; run the same command again to continue' two.txt.lines
    check "a checkpoint" test -s two/last.h5

    section "no live line when it is switched off"
    COHORT_LIVE=no script -qefc "$COHORT train ${quick[*]} run=off train.epochs=2" off.txt >/dev/null
    expect_no_match 'step [0-9]+ of' off.txt
else
    (skip "script(1) cannot open a terminal here")
fi

section "no live line in a file"
run ranks 2 "$COHORT" train "${quick[@]}" run=three train.epochs=2
expect_no_match 'step [0-9]+ of'

section "the time of all starts"
"$COHORT" train "${quick[@]}" run=four train.epochs=1000000 2>four.err &
job=$!
until [ -s four/log.jsonl ]; do sleep 0.1; done
kill -USR1 $job
wait $job
expect_match '^{"seconds": [0-9.]+}$' four/elapsed.json
echo '{"seconds": 5000}' >four/elapsed.json
expect_status 0 "$COHORT" train run=four train.epochs="$(($(wc -l <four/log.jsonl) + 1))"
expect_match 'done: [0-9]+ epochs in 83 min'
check "the note is gone" test ! -e four/elapsed.json
expect_match '"elapsed": 500[0-9]' four/log.jsonl
expect_status 0 "$COHORT" train run=four train.epochs="$(($(wc -l <four/log.jsonl) + 1))"
expect_match 'done: [0-9]+ epochs in 83 min'

section "plain lines in a log"
check "the sweep ends" wait $waiting
expect_match '^rung 1 of 2, 1 of 2 trials, [0-9]+ s' waiting.err
expect_match '^[0-9] trials? trained by 1 team' waiting.err
