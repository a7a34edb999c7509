#!/bin/bash
# A training run that is killed at every call that changes its directory, or whose disk is full there, and then
# continued: the same bytes. tests/soak_faults.sh does it to everything that writes.
. "$(dirname "$0")/lib.sh"
. tests/faults.sh
run "$COHORT" simulate irt --students 200 --items 10 --seed 1 -o "$TMP/class.h5"
train=("$COHORT" train model.kind=rbm model.hidden=4 optimizer.rate=0.001 train.batch=200 data="$TMP/class.h5"
    run.save_minutes=0)
run "${train[@]}" run="$TMP/one" train.epochs=1
at_first() { rm -rf "$1" && cp -r "$TMP/one" "$1"; }

section 'killed at every change'
everywhere signal=KILL 'write|link|rename|unlink' "$TMP/run" "${train[@]}" train.epochs=2 run="$TMP/run"
check "there were some ($N_FAULTS)" test "$N_FAULTS" -ge 12

section 'no room'
everywhere error=ENOSPC 'openat|pwrite64|write|link|fsync' "$TMP/run" "${train[@]}" train.epochs=2 run="$TMP/run"
check "there were some ($N_FAULTS)" test "$N_FAULTS" -ge 12

section 'no room for the end of a data set'
mkdir "$TMP/data"
simulate=("$COHORT" simulate irt --students 50 --items 5 -o "$TMP/data/class.h5")
places "$TMP/data" "${simulate[@]}"
for place in $(printf '%s\n' "${PLACES[@]}" | grep pwrite64 | tail -4 | tr ' ' =); do
    ended=0
    fault error=ENOSPC "${place/=/ }" "${simulate[@]}" || ended=$?
    expect_equal 74 "$ended" "exit code after $place"
    expect_match '^cohort: .*class.h5: .*is the disk full'
done
