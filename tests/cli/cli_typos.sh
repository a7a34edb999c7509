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
printf '# a comment\nkind = bkt\n' >bare.ini
says 1 "bare.ini:2: 'kind' has no section; expected a line \[section\] above it, or .*as in model.kind = " \
    train bare.ini "${quick[@]}"
printf 'data = class.h5\n' >bare.ini
says 1 "bare.ini:1: 'data' has no section; .*as in data.file = " train bare.ini run=run model.kind=bkt
says 1 'bkt models have no setting model.hidden \(only: .*rbm.*dkt.*\); `cohort help bkt`' \
    train "${quick[@]}" model.kind=bkt model.hidden=3
says 1 'unknown setting model.hiden; the nearest is model.hidden' train "${quick[@]}" model.kind=rbm model.hiden=3
says 1 'unknown setting model.hiden; the nearest is model.hidden, which bkt models do not have \(only: .*dkt' \
    train "${quick[@]}" model.kind=bkt model.hiden=3
says 1 'unknown setting model.zzzzzz \(`cohort help models`' train "${quick[@]}" model.kind=rbm model.zzzzzz=3
says 1 "unknown model.kind 'rmb'; choices: .*; did you mean 'rbm'\?" train "${quick[@]}" model.kind=rmb
says 1 "unknown model.preset 'binomail'; .*did you mean 'binomial'\?" train "${quick[@]}" model.kind=rbm model.preset=binomail
says 1 "train.*monitor = acu: expected one of .*did you mean 'auc'|monitor = acu: .*did you mean 'auc'" \
    train "${quick[@]}" model.kind=rbm train.monitor=acu
says 2 "'dat' has no section; .*did you mean data=\?" train dat=class.h5 run=run model.kind=rbm
says 2 "'kind' has no section; expected section.key=value, such as model.kind=rbm" train "${quick[@]}" kind=rbm
says 1 'model.kind is not set; .*such as rbm.ini' train "${quick[@]}"
expect_no_match 'jobs/'

says 1 "unknown model.kind 'RBM'; .*did you mean 'rbm'" train "${quick[@]}" model.kind=RBM
says 1 'unknown setting model.rate; the nearest is optimizer.rate' train "${quick[@]}" model.kind=rbm model.rate=1
says 1 'run= is not set: .*; set run=... on the command line' train data=class.h5 model.kind=rbm
expect_status 0 "$COHORT" train data=class.h5 run=twice model.kind=average train.epochs=2 train.epochs=1
expect_match '^note: train.epochs is given twice, as 2 and 1; the last one counts'
expect_match '^done: 1 epoch'
expect_status 0 "$COHORT" train data=class.h5 run=twice model.kind=average train.epochs=1
expect_no_match 'given twice'

section "commands, formats, options"
says 2 "predict: 'each' is a second run; did you mean --mastery=each" predict twice --mastery each -o x.csv
says 2 "predict: 'class.h5' is a second run; did you mean --data class.h5" predict twice class.h5 -o x.csv
says 1 'predict: -o no/where/x.csv: there is no directory no/where' predict twice -o no/where/x.csv
printf 'student,item,correct\na,b,1\n' >week.csv
says 2 "import: 'week.csv' is a file, .*did you mean .cohort import csv week.csv" import week.csv -o x.h5
says 2 "unknown command 'trian'; did you mean 'train'" trian
says 2 "unknown format 'cvs'; did you mean 'csv'" import cvs answers.csv -o x.h5
says 2 "unknown kind 'itr'; did you mean 'irt'" simulate itr -o x.h5
says 2 "did you mean 'rbm'" help rmb
says 2 'unknown option --jsno; did you mean --json' evaluate run --jsno
says 2 'import: --train is given twice; expected one value' import csv --train a.csv --train=b.csv -o x.h5

section "an empty value, as of an unset variable"
says 2 'import: the value of --pseudonyms is empty; give a value or omit the option' \
    import csv week.csv --pseudonyms '' -o x.h5
says 2 'import: the value of --threshold is empty' import csv week.csv --threshold= -o x.h5
says 2 'report: the value of --student is empty' report twice --student '' -o x.html
says 2 'evaluate: the value of --data is empty' evaluate twice --data ''
says 2 'simulate: the value of --students is empty' simulate irt --students '' -o x.h5
says 2 'predict: the value of --output is empty' predict twice -o ''
check 'nothing is written' test ! -e x.h5 -a ! -e x.html

section "files"
printf 'student,item,correct\na,b,1\n' >answers.csv
says 3 'answers.csv: this is not a data set but a file of text; import it first, .*cohort import csv answers.csv -o' \
    train data=answers.csv run=run model.kind=rbm
says 1 'class.h5: this is an HDF5 file; .*data=class.h5' train class.h5 run=run model.kind=rbm
says 1 'cannot open rmb.ini: No such file.*did you mean rbm.ini, which comes with cohort' train rmb.ini "${quick[@]}"
says 1 'cannot open no/rbm.ini: No such file' train no/rbm.ini "${quick[@]}"

mkdir folder
: >empty.h5
says 3 'folder: this is a directory; expected the file of a data set' train data=folder run=run model.kind=rbm
says 3 'empty.h5: this file is empty' train data=empty.h5 run=run model.kind=rbm
says 3 'twice/last.h5: this is not a cohort data set but holds a cohort checkpoint' \
    train data=twice/last.h5 run=run model.kind=rbm
says 1 'directory empty.h5: a file of this name exists' train data=class.h5 run=empty.h5 model.kind=rbm
for again in 0 1; do
    expect_status 0 "$COHORT" import csv week.csv --split none -o week.h5
    expect_equal $again "$(errors | grep -c '^note: week.h5 replaced an earlier file')" "a note about a file that was there"
done

section "--explain refuses what a run refuses"
says 1 'unknown setting train.epocs; the nearest is train.epochs' train "${quick[@]}" model.kind=bkt --explain train.epocs=3
expect_no_match 'items, .* skills'
says 1 'unknown setting modle.x' train data=class.h5 model.kind=bkt --explain modle.x=3
printf 'seed = 7\n' >seed.ini
says 1 "seed.ini:1: 'seed' has no section" train seed.ini data=class.h5 model.kind=bkt --explain
says 1 'train.block = 2000 is larger than' train data=class.h5 model.kind=bkt --explain train.block=2000
says 2 'explain is for a new run: a refit or an update has' train data=class.h5 refit=twice model.kind=bkt --explain
expect_status 0 "$COHORT" train data=class.h5 model.kind=bkt --explain
expect_match '^train.epochs = 1000'

section "the data of another run"
expect_status 0 "$COHORT" train data=class.h5 run=skilled model.kind=bkt train.epochs=1
expect_status 0 "$COHORT" import csv week.csv --split none -o bare.h5
expect_status 1 ranks 2 "$COHORT" train data=bare.h5 run=skilled model.kind=bkt # which has model.items = yes
expect_match 'skilled/last.h5: this run was trained on other data than bare.h5 has now .*choose another run='
expect_no_match 'model.items'
says 1 'model.items = yes, but the data set has no skills' train data=bare.h5 run=run model.kind=bkt model.items=yes

section "a run before its first checkpoint"
mkdir early
: >early/lock
exec 8<>early/lock
if command -v python3 >/dev/null; then
    python3 -c 'import fcntl, time; fcntl.lockf(8, fcntl.LOCK_EX); open("held", "w"); time.sleep(20)' &
    holder=$!
    for _ in $(seq 100); do [ -e held ] && break; sleep 0.1; done
    says 1 'early: .* no checkpoint yet; it saves one every few minutes \(run.save_minutes\) and at the end' evaluate early
    printf '[run]\nsave_minutes = 7\n' >early/config.ini
    says 1 'early: .* it saves one every 7 minutes' evaluate early
    says 1 'early: another job is using this run' train run=early
    kill $holder
    wait $holder 2>/dev/null
fi
says 1 'early: no checkpoint in this directory' evaluate early

section "the same key twice, a section with a slip, a byte-order mark"
printf '[model]\nkind = bkt\n[train]\nepochs = 2\n[model]\nkind = rbm\n' >twice.ini
says 1 'twice.ini:6: model.kind is set again, after twice.ini:2; remove one of them' train twice.ini "${quick[@]}"
printf '[modle]\npreset = binomial\n' >section.ini
says 1 'section.ini:2: unknown section \[modle\]; the nearest is \[model\]' train section.ini "${quick[@]}"
printf '\xef\xbb\xbf[model]\nkind = average\n' >mark.ini
expect_status 0 "$COHORT" train mark.ini data=class.h5 run=marked train.epochs=1

section "mistyped directories"
for command in evaluate inspect verify; do
    expect_status 1 "$COHORT" $command markde
    expect_match 'markde: No such file or directory; expected .*; did you mean marked\?'
done
mkdir sub
expect_status 1 "$COHORT" evaluate sub/../markde/
expect_match 'did you mean sub/../marked\?'
expect_status 1 "$COHORT" train run=markde
expect_match 'run=markde: no such directory.*; did you mean marked\?'
check 'nothing is written' test ! -e markde
expect_status 1 "$COHORT" evaluate zzzzzzzzzzzz
expect_no_match 'did you mean'

section "a cross-validation continues by its directory"
folds=(data=class.h5 run=folds model.kind=rbm model.hidden=3 train.folds=3 train.epochs=2)
expect_status 0 "$COHORT" train "${folds[@]}"
cp -r folds whole
rm -r folds/fold-3 folds/result.json
expect_status 0 "$COHORT" train run=folds
expect_match '^3 folds, test scores'
expect_same whole/fold-3/last.h5 folds/fold-3/last.h5
expect_same whole/result.json folds/result.json
expect_status 1 "$COHORT" train run=folds train.fold=2
expect_match 'run=folds: this is a cross-validation; .*run=folds/fold-2'
check 'no run inside the cross-validation' test ! -e folds/config.ini
expect_status 1 "$COHORT" train run=marked train.folds=3
expect_match 'run=marked: this is a run, not a cross-validation'
check 'no cross-validation inside the run' test ! -e marked/fold-1

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
