#!/bin/bash
# Slips of the keyboard, and things given where others belong: the sentence that helps.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70
run "$COHORT" simulate irt --students 100 --items 6 --skills 1 --seed 1 -o class.h5
quick=(data=class.h5 run=run train.epochs=1)
# says STATUS PATTERN COMMAND...: cohort fails with a sentence that matches, and writes no run.
says() {
    expect_status "$1" "$COHORT" "${@:3}"
    expect_match "$2"
    check 'nothing is written' test ! -e run
}

section "settings"
says 1 'command line: unknown setting model.knid; the nearest is model.kind' train "${quick[@]}" model.knid=rbm
printf '[modle]\nkind = rbm\n' >slip.ini
says 1 'slip.ini:2: unknown setting modle.kind; the nearest is model.kind' train slip.ini "${quick[@]}"
says 1 'bkt models have no setting model.hidden \(only: .*rbm.*dkt.*\); `cohort help bkt`' \
    train "${quick[@]}" model.kind=bkt model.hidden=3
says 1 'unknown setting model.hiden; the nearest is model.hidden' train "${quick[@]}" model.kind=rbm model.hiden=3
says 1 'unknown setting model.zzzzzz \(`cohort help models`' train "${quick[@]}" model.kind=rbm model.zzzzzz=3
says 1 "unknown model.kind 'rmb'; choices: .*; did you mean 'rbm'\?" train "${quick[@]}" model.kind=rmb
says 1 "unknown model.preset 'binomail'; .*did you mean 'binomial'\?" train "${quick[@]}" model.kind=rbm model.preset=binomail
says 1 "train.*monitor = acu: expected one of .*did you mean 'auc'|monitor = acu: .*did you mean 'auc'" \
    train "${quick[@]}" model.kind=rbm train.monitor=acu
says 2 "'dat' has no section; .*did you mean data=\?" train dat=class.h5 run=run model.kind=rbm
says 2 "'kind' has no section; expected section.key=value, such as model.kind=rbm" train "${quick[@]}" kind=rbm
says 1 'model.kind is not set; .*such as rbm.ini' train "${quick[@]}"
expect_no_match 'jobs/'

section "commands, formats, options"
says 2 "unknown command 'trian'; did you mean 'train'" trian
says 2 "unknown format 'cvs'; did you mean 'csv'" import cvs answers.csv -o x.h5
says 2 "unknown kind 'itr'; did you mean 'irt'" simulate itr -o x.h5
says 2 "did you mean 'rbm'" help rmb
says 2 'unknown option --jsno; did you mean --json' evaluate run --jsno

section "files"
printf 'student,item,correct\na,b,1\n' >answers.csv
says 3 'answers.csv: this is not a data set but a file of text; import it first, .*cohort import csv answers.csv -o' \
    train data=answers.csv run=run model.kind=rbm
says 1 'class.h5: this is an HDF5 file; .*data=class.h5' train class.h5 run=run model.kind=rbm
says 1 'cannot open rmb.ini: No such file.*did you mean rbm.ini, which comes with cohort' train rmb.ini "${quick[@]}"
says 1 'cannot open no/rbm.ini: No such file' train no/rbm.ini "${quick[@]}"

section "a cross-validation or a sweep is not a run"
mkdir -p cv/fold-1 swept
touch swept/sweep.ini
expect_status 1 "$COHORT" train data=class.h5 run=cv model.kind=average train.epochs=1
expect_match 'this is a cross-validation; .*train.folds='
check 'nothing is written' test ! -e cv/config.ini
expect_status 1 "$COHORT" train data=class.h5 run=swept model.kind=average train.epochs=1
expect_match 'this is a sweep'

section "a sweep by its directory"
printf '[model]\nkind = rbm\nhidden_kind = gaussian\nhidden = {2, 3}\n[train]\nepochs = 2\nseed = {1, 2}\n[run]\ndirectory = sweep\n' >sweep.ini
expect_status 0 "$COHORT" sweep sweep.ini data=class.h5 optimizer.rate="{0.01, 1e6}" sweep.design=halton sweep.trials=6
expect_status 0 "$COHORT" sweep sweep.ini data=class.h5 optimizer.rate="{0.01, 1e6}" sweep.design=halton sweep.trials=6 \
    --collect --json
output >by-file.json
expect_status 0 "$COHORT" sweep run=sweep --collect --json
output >by-directory.json
expect_same by-file.json by-directory.json
expect_status 0 "$COHORT" sweep run=sweep --status
expect_match '^sweep: 6 trials: [1-5] done, 0 running, [1-5] failed, 0 waiting'
expect_status 1 "$COHORT" sweep run=nowhere --status
expect_match 'run=nowhere: no such directory; expected the directory of a sweep'

section "a blend of trials"
expect_status 0 "$COHORT" blend sweep/trials/* -o blend
expect_match '^skipping sweep/trials/[0-9a-f]+, a trial that failed: training diverged'
expect_match '^1 sweep/trials/[0-9a-f]+ \(rbm\) '
