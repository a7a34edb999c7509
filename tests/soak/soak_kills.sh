#!/bin/bash
# Kills runs with random settings at random moments, on random numbers of ranks, now and then with a damaged checkpoint:
# the bytes must be those of an undisturbed run. Takes 10 minutes by default; `make soak MINUTES=60` for longer. SEED=
# repeats the settings of a run.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
end=$((60 * ${MINUTES:-10}))
[ $end -lt $((${LIMIT:-7200} - 60)) ] || end=$((${LIMIT:-7200} - 60))
n_killed=0 n_within=0 n_damaged=0

# any WORD...: prints one of the words at random.
any() { echo "${@:RANDOM % $# + 1:1}"; }

# Data of different shapes: whole students held out, single attempts held out, many items.
run "$COHORT" simulate irt --students 800 --items 25 --skills 2 --seed 1 -o "$TMP/0.h5"
run "$COHORT" simulate bkt --students 300 --skills 5 --seed 2 -o "$TMP/1.h5"
run "$COHORT" simulate irt --students 500 --items 200 --missing 0.9 --split by-last --seed 3 -o "$TMP/2.h5"

# choose: chooses the settings of one round, in the array `settings`.
choose() {
    local block epochs
    block=$(any 1 2 4 7)
    epochs=$(any 6 10 15)
    settings=(model.kind=rbm data="$TMP/$(any 0 1 2).h5" train.seed=$RANDOM train.epochs="$epochs"
        train.block="$block" train.batch=$((block * $(any 5 6 9)))
        train.monitor="$(any cbd log_loss auc accuracy)" train.valid_every="$(any 1 1 2 3)"
        train.patience="$(any 0 0 3)"
        model.visible="$(any softmax bernoulli)" model.copies="$(any 1 2 3)" model.hidden="$(any 1 7 16 40)"
        model.hidden_kind="$(any binary binary gaussian relu)" model.conditional="$(any no yes)"
        model.factors="$(any 0 0 5)" model.repeats="$(any each last)" model.persistent="$(any no yes)"
        model.start="$(any zero log_odds)" model.prediction="$(any exact mean_field)"
        model.cd_steps="$(any 1 20 60)" optimizer.method="$(any sgd adam)" optimizer.rate="$(any 0.0001 0.00003)"
        optimizer.schedule="$(any constant linear cosine step)" optimizer.warm_up="$(any 0 50)"
        optimizer.clip="$(any 0 10)" optimizer.decay="$(any 0 0.1)" run.save_minutes="$(any 0 0 0.001 1)")
}

# Damages last.h5 now and then if there is another checkpoint, which may be a hard link to it: so a copy is damaged.
between_kills() {
    [ $((RANDOM % 4)) = 0 ] && [ -s "$1/last.h5" ] && [ -s "$1/previous.h5" ] || return
    cp "$1/last.h5" "$1/hurt"
    case $(any flip cut empty) in
    flip) flip "$1/hurt" ;;
    cut) truncate -s $((RANDOM * $(wc -c <"$1/hurt") / 32768)) "$1/hurt" ;;
    empty) : >"$1/hurt" ;;
    esac
    mv "$1/hurt" "$1/last.h5"
    n_damaged=$((n_damaged + 1))
}

for ((round = 1; SECONDS < end; round++)); do
    RANDOM=$(((seed + round) % 32768))
    choose
    section "round $round of SEED=$seed: ${settings[*]}"
    COHORT_SHARED=$(any yes no)
    export COHORT_SHARED
    rm -rf "$TMP/reference" "$TMP/storm"
    expect_status 0 on "$(any 1 2 3 5)" "$COHORT" train "${settings[@]}" run="$TMP/reference"
    storm "$(any 3 6 10)" "$TMP/storm" "${settings[@]}"
    n_killed=$((n_killed + N_KILLED)) n_within=$((n_within + N_WITHIN))
    for file in last.h5 best.h5 result.json; do
        expect_same "$TMP/reference/$file" "$TMP/storm/$file"
    done
    expect_log "$TMP/storm/log.jsonl" "$(json_of "$TMP/reference/result.json" epochs)"
done
section 'all rounds'
check "killed $n_killed times, continued $n_within times within an epoch, $n_damaged damaged checkpoints" \
    test $n_killed -gt 0 -a $n_within -gt 0
echo "$((round - 1)) rounds with SEED=$seed: killed $n_killed times, continued $n_within times within an epoch," \
    "$n_damaged damaged checkpoints"
