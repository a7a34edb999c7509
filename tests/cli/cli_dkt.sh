#!/bin/bash
# Deep knowledge tracing on the command line: its probabilities recomputed in numpy, the same bits at any number of
# ranks and after stops and kills, nothing learned from random outcomes, very long and very short students.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}
small="model.kind=dkt model.cell=lstm model.hidden=20 model.layers=2 train.batch=60 train.block=7 train.epochs=3
    optimizer.method=adam optimizer.rate=0.01"

# Long tails, unknown outcomes, hidden attempts, items with any number of skills.
run "$COHORT" simulate grockit --students 240 --items 50 --seed 3 -o "$TMP/tails.h5" || fail "simulate grockit"

# train RANKS RUN WORD...: a run on the class with long tails, unless a word sets other data.
train() {
    local n=$1 run=$2
    shift 2
    # shellcheck disable=SC2086
    run on "$n" "$COHORT" train "data=$TMP/tails.h5" $small "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}

# sums RUN: the checksums of its two checkpoints.
sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5) | awk '{ printf "%s ", $1 }'; }

result() { json_of "$TMP/$1/result.json" "${@:2}"; }

section "the same bits"
hard="optimizer.clip=2 optimizer.average=0.9 model.dropout=0.2 model.smoothing=0.02"
for case in 'lstm 1 2 3 5' 'gru 1 3 5' 'rnn 1 2'; do
    read -r cell numbers <<<"$case"
    for n in $numbers; do
        # shellcheck disable=SC2086
        train $n "$cell-$n" model.cell=$cell model.input=both $hard
        [ $n = 1 ] || expect_equal "$(sums $cell-1)" "$(sums $cell-$n)" "the checkpoints of 1 and $n ranks, $cell"
    done
done
expect_equal 3 "$(sha256sum "$TMP"/{lstm,gru,rnn}-1/last.h5 | cut -d ' ' -f 1 | sort -u | wc -l)" "cells differ"
# shellcheck disable=SC2086
COHORT_SHARED=no train 3 sent model.cell=gru model.input=both $hard
expect_equal "$(sums gru-1)" "$(sums sent)" "the checkpoints of 1 rank and of 3 that send, gru"
for isa in plain avx2 avx512; do
    COHORT_ISA=$isa run "$COHORT" --version || continue
    # shellcheck disable=SC2086
    COHORT_ISA=$isa train 1 "isa-$isa" model.cell=lstm model.input=both $hard
    expect_equal "$(sums lstm-1)" "$(sums isa-$isa)" "the checkpoints of the best instruction set and of $isa"
done

section "stopped and killed"
for cell in lstm gru rnn; do
    # shellcheck disable=SC2206
    words=("data=$TMP/tails.h5" $small $hard model.cell=$cell train.epochs=8 train.batch=10 train.block=2
        run.save_minutes=0)
    train 1 "whole-$cell" "${words[@]}"
    stop 2 USR1 "$TMP/cut-$cell" "${words[@]}"
    expect_equal 85 "$ENDED" "exit code after USR1, $cell"
    start 1 "$COHORT" train "${words[@]}" "run=$TMP/cut-$cell"
    until_says ' ranks?$'
    pause 200
    kill_job all
    finish
    train 3 "cut-$cell" "${words[@]}"
    expect_match '^continuing'
    expect_equal "$(sums whole-$cell)" "$(sums cut-$cell)" "the checkpoints of a run in one piece and of one in three"
done

section "probabilities recomputed in numpy"
run "$COHORT" simulate grockit --students 90 --items 30 --seed 4 -o "$TMP/few.h5" || fail "simulate grockit"
for case in 'lstm both' 'gru skill' 'rnn item'; do
    read -r cell input <<<"$case"
    train 1 "numpy-$cell" "data=$TMP/few.h5" model.cell="$cell" model.input="$input"
    expect_status 0 "$COHORT" export "$TMP/numpy-$cell" -o "$TMP/$cell-tensors.h5"
    expect_status 0 "$COHORT" predict "$TMP/numpy-$cell" --split test -o "$TMP/$cell-test.csv"
done
for n in 1 3; do
    expect_status 0 on $n "$COHORT" predict "$TMP/numpy-lstm" -o "$TMP/lstm-all-$n.csv"
done
expect_same "$TMP/lstm-all-1.csv" "$TMP/lstm-all-3.csv"
mv "$TMP/lstm-all-1.csv" "$TMP/lstm-all.csv"
check "probabilities differ" test "$(cut -d , -f 5 "$TMP/lstm-all.csv" | sort -u | wc -l)" -gt 1000
(
    run /usr/bin/python3 -c 'import numpy, h5py' || skip "there is no python3-h5py to compare with"
    for case in 'lstm test' 'gru test' 'rnn test' 'lstm all'; do
        read -r cell split <<<"$case"
        expect_status 0 /usr/bin/python3 tests/cli/check_dkt.py "$TMP/few.h5" "$TMP/$cell-tensors.h5" \
            "$TMP/$cell-$split.csv" "$split"
        expect_match '^[0-9]+ probabilities, the largest difference is [0-9.]+e-0[6-9]'
    done
    sed '5s/,0\.[0-9]*,/,0.01,/' "$TMP/gru-test.csv" >"$TMP/wrong.csv" # it would see a wrong one
    expect_status 1 /usr/bin/python3 tests/cli/check_dkt.py "$TMP/few.h5" "$TMP/gru-tensors.h5" "$TMP/wrong.csv" test
    expect_match 'line 5 is wrong'
)

# expect_chance RUN: a test: the AUC of the test attempts is within 4 standard errors of 0.5.
expect_chance() {
    if awk -v n="$(result "$1" test n)" -v auc="$(result "$1" test auc)" 'BEGIN {
            off = auc - 0.5
            exit !(n > 3000 && off * off < 16 / (12 * n * 0.3 * 0.7)) }'; then
        pass "AUC $(result "$1" test auc) of $(result "$1" test n) attempts"
    else
        fail "AUC $(result "$1" test auc) of $(result "$1" test n) attempts, expected 0.5"
    fi
}

# Two skills of 15 items each, answered repeatedly; settings that overfit the training outcomes.
for split in by-student=60/10/30 by-attempt=60/10/30; do
    section "shuffled outcomes, $split"
    for shuffle in '' --shuffle-outcomes; do
        # shellcheck disable=SC2086
        run "$COHORT" simulate bkt --students 400 --skills 2 --items 30 --attempts 40 --seed 5 --split $split \
            $shuffle -o "$TMP/class$shuffle.h5" || fail "simulate"
    done
    for case in 'lstm both' 'gru item' 'rnn skill'; do
        read -r cell input <<<"$case"
        train 1 "chance-$split-$cell" "data=$TMP/class--shuffle-outcomes.h5" model.cell=$cell model.input=$input \
            model.layers=1 train.epochs=6 optimizer.clip=5
        expect_chance "chance-$split-$cell"
    done
    train 1 "true-$split" "data=$TMP/class.h5" model.input=both model.layers=1 train.epochs=6 optimizer.clip=5
    check "what was not shuffled is learned ($(result "true-$split" test auc))" \
        awk -v auc="$(result "true-$split" test auc)" 'BEGIN { exit !(auc > 0.65) }'
done

section "students of 20 000 attempts and of one" # of 100 000: cli_targets.sh
# three_line SEED: students of 20 000, 1, 5, 1 and 40 attempts.
three_line() {
    awk -v seed="$1" 'BEGIN {
        srand(seed)
        n_students = split("20000 1 5 1 40", length_of, " ")
        for (s = 1; s <= n_students; s++) {
            items = outcomes = ""
            for (t = 0; t < length_of[s]; t++) {
                comma = t ? "," : ""
                items = items comma int(8 * rand())
                outcomes = outcomes comma int(2 * rand())
            }
            print length_of[s] "\n" items "\n" outcomes
        }
    }'
}
three_line 1 >"$TMP/train.csv"
three_line 2 >"$TMP/test.csv"
expect_status 0 "$COHORT" import three-line --train "$TMP/train.csv" --test "$TMP/test.csv" -o "$TMP/long.h5"
long="data=$TMP/long.h5 model.hidden=8 train.batch=4 train.block=2 train.epochs=2 optimizer.clip=5"
for cell in lstm gru rnn; do
    # shellcheck disable=SC2086
    train 1 "long-$cell" $long model.cell=$cell
    expect_match '^test +n 20047 '
    expect_status 0 "$COHORT" predict "$TMP/long-$cell" --split test -o "$TMP/long.csv"
    expect_equal 20047 "$(awk -F , 'NR > 1 && $5 > 0 && $5 < 1' "$TMP/long.csv" | wc -l)" "probabilities"
done
# shellcheck disable=SC2086
train 2 long-2 $long
expect_same "$TMP/long-lstm/last.h5" "$TMP/long-2/last.h5"
# shellcheck disable=SC2086
train 1 long-window $long model.window=100
check "a window is another gradient" test "$(sha256sum <"$TMP/long-window/last.h5")" != \
    "$(sha256sum <"$TMP/long-lstm/last.h5")"

section "data without skills"
for input in skill both; do
    # shellcheck disable=SC2086
    expect_status 1 on 2 "$COHORT" train "data=$TMP/long.h5" $small run="$TMP/none" model.input=$input
    expect_match "^cohort: model.input = $input, but the data set has no skills; "
    expect_equal 1 "$(errors | grep -c '^cohort: ')" 'says so once'
done
