#!/bin/bash
# Every command that writes is killed at each system call that changes a file, or finds the disk full there. The same
# command again must give the bytes of an undisturbed run. Takes about ten minutes.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/faults.sh
class=$TMP/class.h5
run "$COHORT" simulate irt --students 200 --items 10 --skills 2 --seed 1 -o "$class"
small=(model.kind=rbm model.preset=binomial model.hidden=4 optimizer.rate=0.001 train.batch=200 data="$class" run.save_minutes=0)
run "$COHORT" train "${small[@]}" train.epochs=1 run="$TMP/one"
run "$COHORT" train "${small[@]}" model.hidden=2 train.epochs=2 run="$TMP/two"
run "$COHORT" predict "$TMP/one" -o "$TMP/answers.csv"

# both COMMAND...: tests kills and full disks at all its places below $TMP/it.
both() {
    everywhere signal=KILL '.*' "$TMP/it" "$@"
    everywhere error=ENOSPC 'mkdir|openat|write|pwrite64|link|fsync|rename' "$TMP/it" "$@"
    check "at least 3 faults ($N_FAULTS)" test "$N_FAULTS" -ge 3
}

section train
both "$COHORT" train "${small[@]}" train.epochs=2 run="$TMP/it"
section 'train with a running mean'
both "$COHORT" train "${small[@]}" optimizer.average=0.9 train.valid_every=5 train.epochs=3 run="$TMP/it"
section refit
both "$COHORT" train refit="$TMP/two" run="$TMP/it"
section 'cross-validation'
both "$COHORT" train "${small[@]}" train.epochs=1 train.folds=3 run="$TMP/it"
section sweep
both "$COHORT" sweep "${small[@]}" train.epochs=1 'model.hidden={2,3}' run="$TMP/it"
section 'sweep with rungs'
both "$COHORT" sweep "${small[@]}" train.epochs=2 sweep.rungs=2 'model.hidden={2,3}' run="$TMP/it"
section blend
both "$COHORT" blend "$TMP/one" "$TMP/two" -o "$TMP/it"

at_first() { rm -rf "$1" && mkdir "$1"; }
section simulate
both "$COHORT" simulate irt --students 50 --items 5 -o "$TMP/it/class.h5"
section import
both "$COHORT" import csv "$TMP/answers.csv" --student student --item item --outcome outcome -o "$TMP/it/class.h5"
section predict
both "$COHORT" predict "$TMP/one" -o "$TMP/it/p.csv"
both "$COHORT" predict "$TMP/one" -o "$TMP/it/p.h5"
section export
both "$COHORT" export "$TMP/one" -o "$TMP/it/tensors"
both "$COHORT" export "$TMP/one" --hidden -o "$TMP/it/tensors.h5"
section report
both "$COHORT" report "$TMP/one" -o "$TMP/it/page.html"
