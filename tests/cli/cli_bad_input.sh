#!/bin/bash
# Wrong settings, files or data: one error message on stderr, from one rank, the right exit code on any number of
# ranks, no partial files, no hang.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
class=$TMP/class.h5
run "$COHORT" simulate irt --students 3000 --items 40 --seed 1 -o "$class" # more than one chunk of attempts
printf '[model]\nkind = rbm\n\n[train]\nepochs = 2\nbatch = 200\nblock = 10\n' >"$TMP/good.ini"

# refuses CODE PATTERN WORDS...: tests: `cohort train WORDS run=...` exits with CODE on 1 and on 3 ranks, prints one
# message that matches, and leaves no checkpoint. A word that begins with run= replaces the run directory.
refuses() {
    local code=$1 pattern=$2 n word where=(run="$TMP/refused")
    shift 2
    for word; do
        [[ $word != run=* ]] || where=()
    done
    for n in 1 3; do
        rm -rf "$TMP/refused"
        expect_status "$code" on $n "$COHORT" train "$@" "${where[@]}"
        expect_match "^cohort: .*$pattern"
        expect_equal 1 "$(errors | grep -c '^cohort: ')" 'one sentence'
        expect_equal '' "$(output)" 'nothing on stdout'
        expect_equal '' "$(find "$TMP/refused" -name '*.h5*' -o -name '*.tmp' -o -name '*.json*' 2>/dev/null)" \
            'nothing is half-written'
    done
}
# bad WORDS...: refuses, with good settings and data before the words.
bad() { refuses "$1" "$2" "$TMP/good.ini" data="$class" "${@:3}"; }

section 'good settings'
expect_status 0 on 3 "$COHORT" train "$TMP/good.ini" data="$class" run="$TMP/good"

section keys
bad 1 'command line: unknown setting model.hiden; the nearest is model.hidden' model.hiden=3
printf '[model]\nkind = rbm\n\n[train]\n# a comment\nepoch = 2\n' >"$TMP/key.ini"
refuses 1 "key.ini:6: unknown setting train.epoch; the nearest is train.epochs" "$TMP/key.ini" data="$class"
printf '[modle]\nkind = rbm\n' >"$TMP/section.ini"
refuses 1 "section.ini:2: unknown setting modle.kind; the nearest is model.kind" "$TMP/section.ini" data="$class"
printf '[train]\nepochs = 3\nepochs 4\n' >"$TMP/line.ini"
refuses 1 "line.ini:3: 'epochs 4' has no '='" "$TMP/line.ini" data="$class"
bad 2 "'hidden' has no section" hidden=3
bad 2 'train: unknown option --epochs; settings are given as section.key=value' --epochs 3
printf '\xef\xbb\xbf[model]\nkind = rbm\n[train]\nepochs = 1\n' >"$TMP/mark.ini"
expect_status 0 "$COHORT" train "$TMP/mark.ini" data="$class" run="$TMP/mark"

section 'runs that are not there'
for n in 1 2; do
    expect_status 1 on $n "$COHORT" train run="$TMP/tpyo" train.epochs=3
    expect_match "^cohort: run=$TMP/tpyo: no such directory, so there is no run to continue"
    expect_status 1 on $n "$COHORT" train "$TMP/tpyo" run="$TMP/new"
    expect_match "^cohort: cannot open $TMP/tpyo: No such file"
    expect_status 1 on $n "$COHORT" train "$TMP/good"
    expect_match "^cohort: $TMP/good is a directory; .*run=$TMP/good"
done
mkdir "$TMP/hollow"
expect_status 1 "$COHORT" train run="$TMP/hollow"
expect_match "^cohort: run=$TMP/hollow: no checkpoint in this directory"
expect_status 1 "$COHORT" train run="$TMP/good/config.ini"
expect_match "^cohort: run=$TMP/good/config.ini: the run directory cannot be opened: Not a directory"
lost="so the settings of $TMP/lost/last.h5 are unknown; restore config.ini, or set data= and all settings again"
for state in gone link directory pipe socket empty; do
    rm -rf "$TMP/lost" && cp -r "$TMP/good" "$TMP/lost"
    config=$TMP/lost/config.ini
    rm "$config"
    case $state in
    link) ln -s nowhere "$config" ;;
    directory) mkdir "$config" ;;
    pipe) mkfifo "$config" ;;
    socket) /usr/bin/python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$config')" || continue ;;
    empty) : >"$config" ;;
    esac
    for more in '' "data=$TMP/class.h5"; do
        # shellcheck disable=SC2086
        expect_status 1 "$COHORT" train run="$TMP/lost" $more
        expect_match "^cohort: run=$TMP/lost: .*$lost"
    done
done
if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$TMP/good" 2>/dev/null; then
    nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp)
    rm -rf "$TMP/lost" && cp -r "$TMP/good" "$TMP/lost"
    chmod 000 "$TMP/lost/config.ini"
    expect_status 1 "${nobody[@]}" "$COHORT" train run="$TMP/lost"
    expect_match "cannot open $TMP/lost/config.ini: Permission denied, $lost"
    chmod 000 "$TMP/lost"
    expect_status 1 "${nobody[@]}" "$COHORT" train run="$TMP/lost"
    expect_match "^cohort: run=$TMP/lost: the run directory cannot be opened: Permission denied; check the name"
    chmod 755 "$TMP/lost"
fi
mkdir -p "$TMP/cv/fold-1"
expect_status 1 "$COHORT" train run="$TMP/cv"
expect_match "^cohort: run=$TMP/cv: this is a cross-validation; give all its settings again, .*run=$TMP/cv/fold-1"

section values
bad 1 'command line: hidden = -3: expected a whole number, 1 to 4096' model.hidden=-3
bad 1 'command line: epochs = many: expected a whole number' train.epochs=many
bad 1 'command line: epochs = 2.5: expected a whole number' train.epochs=2.5
bad 1 'command line: momentum = 1.5: expected a number' optimizer.momentum=1.5
bad 1 'command line: rate = nan: expected a number' optimizer.rate=nan
bad 1 'command line: rate = : expected a number' optimizer.rate=
bad 1 "visible = sofmax: expected one of bernoulli, softmax; did you mean 'softmax'" model.visible=sofmax
bad 1 'persistent = perhaps: expected yes or no' model.persistent=perhaps
bad 1 "unknown model.kind 'rmb'; choices: rbm" model.kind=rmb
bad 1 "unknown model.preset 'nice'; choices: .*binomial" model.preset=nice
bad 1 'cd_schedule = 3:x: expected epoch:steps' model.cd_schedule=3:x
bad 1 'train.block = 300 is larger than train.batch = 200' train.block=300
bad 1 'train.folds = 1: expected at least 3' train.folds=1
bad 1 'train.fold = 7, but train.folds = 5' train.folds=5 train.fold=7

section 'more ranks than blocks'
for n in 2 3; do
    expect_status 1 on $n "$COHORT" train "$TMP/good.ini" data="$class" run="$TMP/lanes" train.batch=4 train.block=4
    expect_match "^cohort: there are $n ranks but only 1 block of students per mini-batch"
    check 'nothing is made' test ! -e "$TMP/lanes"
done

section 'missing and unsuitable files'
refuses 1 'cannot open .*nowhere.ini: No such file' "$TMP/nowhere.ini" data="$class"
refuses 1 "$TMP is a directory; expected a file of settings" "$TMP" data="$class"
head -c 3000 /dev/urandom >"$TMP/garbage.ini"
printf '\0' >>"$TMP/garbage.ini"
refuses 1 'garbage.ini: not a text file' "$TMP/garbage.ini" data="$class"
head -c 3000 /dev/urandom | tr -d '\0' >"$TMP/noise.ini"
refuses 1 'noise.ini:[0-9]+: ' "$TMP/noise.ini" data="$class"
refuses 1 'data= is not set: .*; set data=... on the command line, or data.file in a file' "$TMP/good.ini"
bad 1 'cannot open the data set .*nowhere.h5: No such file' data="$TMP/nowhere.h5"
bad 1 'data= is empty' data=
bad 3 'this is a directory; expected the file of a data set' data="$TMP"
bad 3 'good.ini: this is not an HDF5 file, or it is damaged' data="$TMP/good.ini"
: >"$TMP/empty.h5"
bad 3 'empty.h5: this file is empty' data="$TMP/empty.h5"
bad 3 'last.h5: this is not a cohort data set' data="$TMP/good/last.h5"

section 'run directories'
: >"$TMP/file"
bad 1 'run= is empty' run=
bad 1 'cannot create the directory .*file: a file of this name exists' run="$TMP/file/below/it"
bad 1 'cannot create the directory .*file: a file of this name exists' run="$TMP/file"
check 'the file is as it was' test ! -s "$TMP/file"

section 'damaged data'
size=$(wc -c <"$class")
# hurt NAME PLACE: a copy with sixteen changed bytes.
hurt() {
    cp "$class" "$TMP/$1"
    head -c 16 /dev/urandom | dd of="$TMP/$1" bs=1 seek="$2" conv=notrunc status=none
}
hurt head.h5 16
bad 3 'head.h5: ' data="$TMP/head.h5"
for tenth in 2 4 6; do
    hurt $tenth.h5 $((size * tenth / 10))
    bad 3 "$tenth.h5: .*(missing or damaged|is damaged)" data="$TMP/$tenth.h5"
done
head -c $((size * 6 / 10)) "$class" >"$TMP/cut.h5"
bad 3 'cut.h5: this is not an HDF5 file, or it is damaged' data="$TMP/cut.h5"

section 'data without anything to train on'
# csv NAME: a data set from the rows on stdin.
csv() {
    cat >"$TMP/$1.csv"
    run "$COHORT" import csv "$TMP/$1.csv" --student s --item i --outcome o --split by-student=80/10/10 -o "$TMP/$1.h5"
}
for outcome in 0 1; do
    { echo s,i,o && seq 0 399 | awk -v o=$outcome '{ print "s" int($1 / 4) ",i" $1 % 4 "," o }'; } | csv same$outcome
    bad 1 "same$outcome.h5: all [0-9]+ training outcomes are $([ $outcome = 1 ] && echo correct || echo incorrect)" \
        data="$TMP/same$outcome.h5"
done
{ echo s,i,o && seq 0 399 | awk '{ print "s" int($1 / 4) ",i" $1 % 4 "," }'; } | csv unknown
bad 1 'unknown.h5: no training attempt has a known outcome' data="$TMP/unknown.h5"

section 'names with terminal escapes'
escape=$(printf '\033')
{ echo s,i,o && seq 0 399 | awk '{ printf "s%d\033]0;title\007,i%d\302\2332J\177 \303\244\n", int($1 / 4), $1 % 4 }' |
    awk '{ print $0 "," (NR * 7919) % 5 % 2 }'; } | csv "loud${escape}[2J"
expect_match 'wrote .*loud.u001b\[2J.h5'
expect_status 0 "$COHORT" inspect "$TMP/loud${escape}[2J.h5" --items --students 3
expect_match 's[0-9]+.u001b]0;title.u0007'
expect_match 'i1.u009b2J.u007f ä'
run "$COHORT" inspect "$TMP/loud${escape}[2J.h5" --items --students 3 --json
expect_equal "$TMP/loud${escape}[2J.h5" "$(printf '%b' "$(json path | sed 's/.u001[bB]/\\033/')")" 'the path in JSON'
expect_status 1 "$COHORT" evaluate "$TMP/good" --strict --data "$TMP/loud${escape}[2J.h5"
expect_match "^cohort: .*loud.u001b\[2J.h5: item 'i[0-3].u009b2J.u007f ä' was never seen"
expect_equal 0 "$(cat "$LIB_OUT" "$LIB_ERR" | tr -d '\n\t\40-\176\303\244' | wc -c)" 'bytes that are no text'
expect_status 0 "$COHORT" train "$TMP/good.ini" data="$TMP/loud${escape}[2J.h5" run="$TMP/loud"
expect_status 0 "$COHORT" predict "$TMP/loud" -o "$TMP/loud.csv"
expect_match "$(printf 's0\033]0;title\007')" "$TMP/loud.csv" # files keep every byte

section 'students without answers'
{ echo s,i,o && seq 0 1199 | awk '{ print "s" int($1 / 4) ",i" $1 % 4 "," ($1 % 12 < 4 ? "" : ($1 * 7919) % 5 % 2) }'; } | csv silent
for n in 1 3; do
    expect_status 0 on $n "$COHORT" train "$TMP/good.ini" data="$TMP/silent.h5" run="$TMP/silent$n"
done
expect_same "$TMP/silent1/last.h5" "$TMP/silent3/last.h5"
{ echo s,i,o && printf 's%d,i1,%d\n' 1 1 2 0 3 1 4 0 5 1 6 0 7 1 8 0 9 1 10 0; } | csv few
for n in 1 3; do # most lanes have nobody
    expect_status 0 on $n "$COHORT" train "$TMP/good.ini" data="$TMP/few.h5" run="$TMP/few$n"
done
expect_same "$TMP/few1/last.h5" "$TMP/few3/last.h5"

section 'bad lines for predict --follow'
{
    printf 'student,item,outcome\nanna,item-1,1\nanna,item-2,perhaps\nanna\n\nanna,no such item,\n'
    head -c 200000 /dev/zero | tr '\0' x
    printf '\nanna,item-2,'
} >"$TMP/lines.csv"
expect_status 3 "$COHORT" predict "$TMP/good" --follow <"$TMP/lines.csv"
output >"$TMP/answers.csv"
check 'good lines are answered' test "$(grep -c '^[0-9]*,anna,item-[12],0\.' "$TMP/answers.csv")" = 2

section 'a run with other data, a run with other settings'
run "$COHORT" simulate irt --students 300 --items 50 --seed 2 -o "$TMP/other.h5"
for n in 1 3; do
    expect_status 1 on $n "$COHORT" train "$TMP/good.ini" data="$TMP/other.h5" run="$TMP/good" train.epochs=9
    expect_match '^cohort: .*this run was trained on other data than .*other.h5 has now .*choose another run=, or remove '
done

section divergence
# The learning rate grows until training diverges, so that some epochs are good.
diverges=("$TMP/good.ini" data="$class" model.hidden_kind=gaussian train.epochs=50 optimizer.method=sgd
    optimizer.gradient=sum optimizer.rate=0.1 optimizer.warm_up=600)
for n in 1 3; do
    bad 4 'training diverged in epoch 1, by step [0-9]+: (weights|visible_bias|hidden_bias) reached ' \
        optimizer.rate=1e6 optimizer.decay=0.1
    for minutes in 0 1000; do
        directory=$TMP/diverged$n.$minutes
        expect_status 4 on $n "$COHORT" train "${diverges[@]}" run="$directory" run.save_minutes=$minutes
        expect_match '^cohort: training diverged in epoch ([2-9]|[1-4][0-9]), by step [0-9]+: [a-z_]+ reached '
        expect_equal 1 "$(errors | grep -c '^cohort: ')" 'one sentence'
        check 'the best epoch is kept' run "$COHORT" verify "$directory/best.h5"
        check 'and can be used' run "$COHORT" evaluate "$directory"
        check 'there is no result' test ! -e "$directory/result.json"
    done
    check 'the last checkpoint is whole' run "$COHORT" verify "$TMP/diverged$n.0"
done
expect_same "$TMP/diverged1.0/best.h5" "$TMP/diverged1.1000/best.h5" "$TMP/diverged3.0/best.h5"

section 'item numbers too large for a Q-matrix'
printf '1,0\n0,1\n' >"$TMP/q.csv"
for item in 4294967296 4294967297 9223372036854775807; do # cut to 32 bits, the second would be item 1
    printf '2\n1,%s\n1,0\n' $item >"$TMP/large.txt"
    expect_status 3 "$COHORT" import three-line "$TMP/large.txt" --q-matrix "$TMP/q.csv" -o "$TMP/large.h5"
    expect_match "item '$item' is not the number of one of its rows"
done

section 'a model larger than the memory'
(
    awk '/^MemTotal/ { exit $2 > 40e6 }' /proc/meminfo || skip "this machine has room for the largest model"
    run "$COHORT" simulate irt --students 20 --items 20000 --skills 2 --seed 1 -o "$TMP/many.h5" || fail "simulate"
    expect_status 1 "$COHORT" train "data=$TMP/many.h5" "run=$TMP/large" model.kind=dkt model.hidden=4096 model.layers=8
    expect_match 'parameters, and training them needs [0-9.]+ GB of memory, but there are only [0-9.]+ GB'
    check 'no run is begun' test ! -e "$TMP/large/last.h5"
)

section 'limited addresses'
# limited KILOBYTES COMMAND...
limited() {
    # shellcheck disable=SC2016
    bash -c 'ulimit -v "$0"; exec timeout -k 1 30 "$@"' "$@"
}
(
    ! nm "$COHORT" 2>/dev/null | grep -q __asan_init || skip 'sanitizers need all addresses'
    # A batch larger than the class.
    for kind in rbm dkt ktm; do
        expect_status 0 limited 4000000 "$COHORT" train "data=$class" train.epochs=1 model.kind=$kind \
            train.batch=1000000000 train.block=1 run="$TMP/huge-$kind"
    done
    # OpenBLAS asks for a buffer until it gets it, in each of its threads.
    unset OPENBLAS_NUM_THREADS # tests/lib/mpi.sh
    expect_status 0 limited 200000 "$COHORT" --version
    expect_status 0 limited 200000 "$COHORT" train "$TMP/good.ini" data="$class" run="$TMP/limited"
    expect_status 74 limited 150000 "$COHORT" train data="$class" model.kind=lme run="$TMP/lme"
    expect_match '^cohort: out of memory: OpenBLAS needs a buffer'
    command -v strace >/dev/null || skip 'no strace'
    run env OPENBLAS_NUM_THREADS=4 strace -f -qq -e trace=clone,clone3 "$COHORT" --version
    expect_no_match clone
)

section 'MPI-IO without shared memory'
(
    hidden() { unshare -m bash -c 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"' bash "$@"; }
    hidden true 2>/dev/null || skip 'no right to mount'
    expect_status 0 hidden mpirun -n 2 "$COHORT" evaluate "$TMP/good"
    run "$COHORT" train "$TMP/good.ini" data="$class" run="$TMP/shared" || fail 'training'
    expect_status 0 hidden mpirun -n 2 "$COHORT" train "$TMP/good.ini" data="$class" run="$TMP/alone"
    expect_same "$TMP/shared/last.h5" "$TMP/alone/last.h5"
)
