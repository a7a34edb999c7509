#!/bin/bash
# cohort report --watch: the page follows a run, a sweep, folds and `cohort auto`; it reloads itself until training has
# ended, says when training was killed, and becomes the report. The watcher only reads.
# Training is paused with SIGSTOP while a page is looked at, so that no test depends on the speed of the machine.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
cd "$TMP" || exit 70
run "$COHORT" simulate irt --students 400 --items 12 --skills 2 --seed 1 -o class.h5 || fail "simulate"
quick=(data=class.h5 model.kind=rbm model.hidden=4 train.patience=0 train.seed=7 run.save_minutes=0.001)
reload='<meta http-equiv="refresh" content="1">'

# watch DIRECTORY PAGE [OPTION...]: watches in the background, as $WATCHER; its messages go to PAGE.err.
watch() {
    local directory=$1 page=$2
    shift 2
    "$COHORT" report --watch "$directory" --every 0.2 -o "$page" "$@" >"$page.out" 2>"$page.err" &
    WATCHER=$!
}
# until_page PATTERN PAGE: waits until a line of the page matches; a test that it does.
until_page() {
    for _ in $(seq 1 $((PATIENCE * 10))); do
        if grep -Eqs -e "$1" "$2"; then
            pass "the page has /$1/"
            return
        fi
        sleep 0.1
    done
    fail "$2 never has /$1/: $(sed -n '/class="lead/,$p' "$2" | head -5)"
}
# until_log RUN N: waits until N epochs are logged.
until_log() { while [ "$(cat "$1/log.jsonl" 2>/dev/null | wc -l)" -lt "$2" ]; do sleep 0.05; done; }
# train RUN EPOCHS: trains in the background, as $TRAINING.
train() {
    "$COHORT" train "${quick[@]}" run="$1" train.epochs="$2" >"$1.train" 2>&1 &
    TRAINING=$!
}
# ends STATUS PROCESS WHAT: waits for a process.
ends() {
    local status=0
    wait "$2" || status=$?
    expect_equal "$1" "$status" "$3"
}

section "a run, from before its start to its end"
watch one one.html --wait 60
until_page 'Waiting' one.html
expect_match "$reload" one.html
train one 1000000
until_log one 3
until [ -e one/last.h5 ]; do sleep 0.05; done
kill -STOP $TRAINING
until_page "epoch $(($(wc -l <one/log.jsonl) + 1)) of 1.?000.?000" one.html
until_page 'Saved after epoch' one.html
expect_match "$reload" one.html
expect_match 'of training left, at the pace of the last epochs' one.html
expect_equal 2 "$(grep -c '<svg' one.html)" "loss and score"
expect_match '<h2>The last epochs</h2>' one.html
last=$(tail -1 one/log.jsonl | grep -o '"valid".*' | grep -o '"log_loss": [0-9.]*' | grep -o '[0-9.]*$')
expect_match "<b>$(awk -v x="$last" 'BEGIN { printf "%.5f", x }')</b><span>validation log-loss" one.html
# Nothing is written while there is no news. (What came before the stop may still be on its way.)
sleep 1
before=$(stat -c %i-%y one.html)
sleep 1
expect_equal "$before" "$(stat -c %i-%y one.html)" "a page without news is not written again"
kill -CONT $TRAINING
seen=$(wc -l <one/log.jsonl)
until_log one $((seen + 2))
kill -STOP $TRAINING
until_page "epoch $(($(wc -l <one/log.jsonl) + 1)) of " one.html

section "a run that was killed"
kill -KILL $TRAINING
wait $TRAINING 2>/dev/null
until_page 'Training stopped after epoch [0-9]+ of' one.html
expect_match 'was killed or its machine failed: it ended without saving. The same command continues' one.html
expect_match 'This page reloads itself every second until' one.html
expect_match 'is memorizing its training students. The report of the finished training' one.html
expect_match 'class="lead warn"' one.html
expect_match "$reload" one.html
check "the watcher waits" alive $WATCHER

section "continued, stopped by a signal, continued, finished"
train one 1000000
until_log one $((seen + 4))
until_page '<b>Training epoch' one.html
kill -TERM $TRAINING
ends 85 $TRAINING "training stops"
until_page 'The job ended by itself, after a signal' one.html
n=$(($(wc -l <one/log.jsonl) + 3))
run "$COHORT" train "${quick[@]}" run=one train.epochs="$n" || fail "continue"
ends 0 $WATCHER "the watcher ends with training"
expect_match "^wrote one.html" one.html.err
expect_match '^one: stopped; waiting for it to continue' one.html.err
expect_no_match 'http-equiv="refresh"' one.html
run "$COHORT" report one -o report.html || fail "report"
expect_same report.html one.html
run ranks 2 "$COHORT" report --watch one -o ranks.html || fail "two ranks"
expect_same report.html ranks.html

section "the bytes of training"
# Saved at the end only: how many checkpoints are kept would depend on the clock otherwise.
run "$COHORT" train "${quick[@]}" run.save_minutes=60 run=alone train.epochs=40 || fail "train"
watch watched watched.html
run "$COHORT" train "${quick[@]}" run.save_minutes=60 run=watched train.epochs=40 || fail "train"
ends 0 $WATCHER "the watcher ends"
expect_same alone/last.h5 watched/last.h5
expect_same alone/best.h5 watched/best.h5
expect_same alone/result.json watched/result.json
expect_equal "$(ls alone)" "$(ls watched)" "the same files"

section "Ctrl-C"
train two 1000000
for n in 1 2; do
    until_log two 1
    mpi=()
    [ $n = 1 ] || mpi=(mpirun -n $n)
    rm -f two.html
    "${mpi[@]}" "$COHORT" report --watch two --every 0.2 -o two.html >two.out 2>two.err &
    WATCHER=$!
    until_page "$reload" two.html
    kill -TERM $WATCHER
    wait $WATCHER
    expect_match 'stopped watching two; two.html no longer reloads itself; training is not affected' two.err
    expect_no_match 'http-equiv="refresh"' two.html
    expect_match 'no longer updated: watching was stopped' two.html
    expect_match '</html>' two.html
    expect_equal "" "$(find . -name '*two.html?*.tmp' -o -name '.two.html*')" "nothing is left behind"
done
check "training goes on" alive $TRAINING
kill -TERM $TRAINING
wait $TRAINING

section "stopped for too long"
expect_status 85 "$COHORT" report --watch two --every 0.2 --wait 0 -o two.html
expect_match 'two: training stopped and did not continue within 0 s'
expect_match 'training did not continue in time' two.html
expect_no_match 'http-equiv="refresh"' two.html

section "a run that was killed before it saved"
cp -r two early
rm early/*.h5
expect_status 85 "$COHORT" report --watch early --every 0.2 --wait 0 -o early.html
expect_match 'Nothing was saved yet: the same command starts again' early.html

section "a checkpoint that is replaced while it is read"
if command -v strace >/dev/null && strace -o trace true 2>/dev/null; then
    # The first read finds a file that is gone, as on a network file system: it is read again.
    expect_status 85 strace -f -o trace -P two/last.h5 -e trace=read -e inject=read:error=ESTALE:when=1 \
        "$COHORT" report --watch two --every 0.2 --wait 0 -o stale.html
    expect_match 'ESTALE.*INJECTED' trace
    expect_match 'Saved after epoch' stale.html
    expect_no_match 'cannot be read' stale.html
    # A file that stays unreadable is named, and nothing ends.
    expect_status 85 strace -f -o trace -P two/last.h5 -e trace=read -e inject=read:error=EIO \
        "$COHORT" report --watch two --every 0.2 --wait 0 -o stale.html
    expect_match 'The newest checkpoint cannot be read: .*two/last.h5' stale.html

    section "the watcher only reads"
    expect_status 85 strace -f -y -o trace -e trace=openat,fcntl,unlink,rename,mkdir,link,ftruncate \
        "$COHORT" report --watch two --every 0.2 --wait 0 -o two.html
    grep -E '(two/|/two>)' trace >own
    expect_match 'two/last.h5' own
    expect_no_match 'O_WRONLY|O_RDWR|O_CREAT|SETLK|unlink|rename|mkdir|ftruncate' own
else
    (skip "strace is not installed, or not allowed")
fi
cp -r two swap
cp one/last.h5 other.h5
cp two/last.h5 same.h5
while [ ! -e swapped ]; do
    cp other.h5 new.h5 && mv new.h5 swap/last.h5
    cp same.h5 new.h5 && mv new.h5 swap/last.h5
done &
swapping=$!
expect_status 85 "$COHORT" report --watch swap --every 0.2 --wait 3 -o swap.html
touch swapped
wait $swapping
expect_match 'Saved after epoch' swap.html
expect_no_match 'cannot be read' swap.html

section "what is no run"
mkdir notes empty
echo text >notes/text
expect_status 1 "$COHORT" report --watch notes -o no.html
expect_match 'notes: this directory belongs to no run or sweep'
expect_status 1 "$COHORT" report --watch class.h5 -o no.html
expect_match 'class.h5: this is a file; --watch expects the directory'
check "nothing is written" test ! -e no.html
for directory in empty nowhere; do
    expect_status 1 "$COHORT" report --watch $directory --every 0.2 --wait 0 -o never.html
    expect_match "$directory: no training began here within 0 s"
    expect_match 'no training began in time' never.html
    expect_no_match 'http-equiv="refresh"' never.html
done
expect_status 2 "$COHORT" report --watch one two -o no.html
expect_match '2 runs given with --watch; expected one'
expect_status 2 "$COHORT" report --watch one -o -
expect_match 'name a file with -o'
expect_status 1 "$COHORT" report --watch two -o nowhere/page.html
expect_match 'nowhere/page.html'
# A damaged log and settings: what is intact is shown.
cp -r two hurt
printf '{"epoch": 1, "loss"' >>hurt/log.jsonl
printf '\377\376[train\n' >hurt/config.ini
expect_status 85 "$COHORT" report --watch hurt --every 0.2 --wait 0 -o hurt.html
expect_match 'Training stopped after epoch' hurt.html

section "a sweep"
printf '[model]\nkind = rbm\nhidden = {2, 3}\n[optimizer]\nrate = {0.01, 1e6}\n[train]\nepochs = 4\n[sweep]\nrungs = 2\n' >sweep.ini
watch sweep sweep.html --wait 60
until_page 'Waiting' sweep.html
run "$COHORT" sweep sweep.ini data=class.h5 run=sweep || fail "sweep"
ends 0 $WATCHER "the watcher ends with the sweep"
expect_no_match 'http-equiv="refresh"' sweep.html
run "$COHORT" report sweep -o sweep-report.html || fail "report"
expect_same sweep-report.html sweep.html
# Half of a sweep: its states, and the best trial first.
run "$COHORT" sweep sweep.ini data=class.h5 run=half sweep.rungs=1 --pack 1/2 || fail "half a sweep"
expect_status 85 "$COHORT" report --watch half --wait 0 -o half.html
expect_match '<b>2 of 4 trials have ended' half.html
run "$COHORT" sweep run=half --status --json || fail "status"
for state in "done" running failed waiting; do
    expect_match "<b>$(json $state)</b><span>$state</span>" half.html
done
expect_equal "model.hidden=$(json leaderboard 0 settings model.hidden) optimizer.rate=$(json leaderboard 0 settings optimizer.rate)" \
    "$(sed -n '/The best so far/,/<\/table>/p' half.html | sed -n 's/^<tr><th scope="row">\([^<]*\).*/\1/p' | head -1)" "the best comes first"
# One trial in training, seen from outside; then the job is killed.
"$COHORT" sweep sweep.ini data=class.h5 run=sweep2 train.epochs=1000000 train.patience=0 >sweep2.out 2>&1 &
TRAINING=$!
watch sweep2 sweep2.html --wait 60
until_page '<h2>In training now</h2>' sweep2.html
until_page '<svg' sweep2.html
expect_match '<b>1</b><span>running</span>' sweep2.html
expect_match "$reload" sweep2.html
kill -KILL $TRAINING
wait $TRAINING 2>/dev/null
until_page '<b>0</b><span>running</span>' sweep2.html
check "the watcher waits" alive $WATCHER
kill -TERM $WATCHER
ends 85 $WATCHER "the watcher ends"
expect_no_match 'http-equiv="refresh"' sweep2.html

section "folds"
watch folds folds.html --wait 60
run "$COHORT" train "${quick[@]}" run=folds train.folds=3 train.epochs=4 || fail "folds"
ends 0 $WATCHER "the watcher ends with the folds"
run "$COHORT" report folds -o folds-report.html || fail "report"
expect_same folds-report.html folds.html
mv folds/result.json .
expect_status 85 "$COHORT" report --watch folds --wait 0 -o folds.html
expect_match '<b>3 of 3 folds have ended' folds.html
expect_equal 1 "$(grep -c '<svg' folds.html)" "the curves of all folds"

section "auto"
watch auto auto.html --wait 60
run "$COHORT" auto class.h5 run=auto --trials 4 || fail "auto"
ends 0 $WATCHER "the watcher ends with auto"
run "$COHORT" report auto -o auto-report.html || fail "report"
expect_same auto-report.html auto.html
mv auto/leaderboard.csv .
expect_status 85 "$COHORT" report --watch auto --wait 0 -o auto.html
expect_match '<b>4 of 4 trials have ended' auto.html
expect_match '<tr><th scope="row">model.kind=' auto.html

section "help"
expect_status 0 "$COHORT" help report
expect_match '^ +--watch'
expect_match '^ *WATCHING'
