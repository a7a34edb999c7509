#!/bin/bash
# The recurrent temporal RBM on the command line: the same bits at any number of ranks, after stops and kills and with
# recomputed states; nothing learned from random outcomes; likelihoods, samples, graphs; very long and very short
# students, steps with all keys off.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}
small="model.kind=rtrbm model.hidden=20 train.batch=60 train.block=7 train.epochs=3
    optimizer.method=adam optimizer.rate=0.01 optimizer.clip=5"

# Long tails, unknown outcomes, hidden attempts, items with any number of skills.
run "$COHORT" simulate grockit --students 200 --items 40 --skills 12 --seed 3 -o "$TMP/tails.h5" || fail "simulate grockit"
# Chords: sequences of sets of 12 keys, some of them empty, one of a single frame.
for part in train valid test; do
    awk -v seed="${#part}" 'BEGIN {
        srand(seed)
        for (s = 0; s < 30; s++) {
            n = s == 7 ? 1 : 5 + int(20 * rand())
            print n
            root = int(12 * rand())
            for (t = 0; t < n; t++) {
                if (rand() < 0.3) root = (root + 7) % 12
                print rand() < 0.1 ? "" : root " " (root + 4) % 12 " " (root + 7) % 12
            }
        }
    }' >"$TMP/$part.txt"
done
expect_status 0 "$COHORT" import sequences --train "$TMP/train.txt" --valid "$TMP/valid.txt" --test "$TMP/test.txt" \
    --items 12 -o "$TMP/chords.h5"
chords="data=$TMP/chords.h5 model.visible=bernoulli model.dense=yes model.loop=0 model.scale=0.1"

# train RANKS RUN WORD...: a run on the class with long tails, unless a word sets other data.
train() {
    local n=$1 run=$2
    shift 2
    # shellcheck disable=SC2086
    run on "$n" "$COHORT" train "data=$TMP/tails.h5" $small "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}

# sums RUN: the checksums of its two checkpoints.
sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5) | awk '{ printf "%s ", $1 }'; }

# tensors RUN: the checksum of its tensors alone.
tensors() {
    run "$COHORT" export "$TMP/$1" -o "$TMP/$1.tensors" || fail "export $1"
    cat "$TMP/$1.tensors"/*.csv | sha256sum
}

result() { json_of "$TMP/$1/result.json" "${@:2}"; }

declare -A words=(
    [exact]="model.spread=0.3"
    [cd]="model.gradient=cd model.cd_steps=2 model.visible=bernoulli"
    [skills]="model.structure=skills model.hidden=4 model.skill_units=1 model.penalty=1e-4"
    [chords]="$chords model.cd_steps=3 train.monitor=likelihood train.batch=20"
)

section "the same bits"
for kind in exact cd skills chords; do
    for n in 1 2 3; do
        # shellcheck disable=SC2086
        train $n "$kind-$n" ${words[$kind]}
        [ $n = 1 ] || expect_equal "$(sums $kind-1)" "$(sums $kind-$n)" "the checkpoints of 1 and $n ranks, $kind"
    done
    # shellcheck disable=SC2086
    train 1 "$kind-again" ${words[$kind]} model.recompute=yes
    expect_equal "$(tensors $kind-1)" "$(tensors $kind-again)" "tensors with states kept and computed again, $kind"
done
expect_equal 4 "$(sha256sum "$TMP"/{exact,cd,skills,chords}-1/last.h5 | cut -d ' ' -f 1 | sort -u | wc -l)" "kinds differ"
# shellcheck disable=SC2086
train 5 exact-5 ${words[exact]}
expect_equal "$(sums exact-1)" "$(sums exact-5)" "the checkpoints of 1 and 5 ranks"
for isa in plain avx2 avx512; do
    COHORT_ISA=$isa run "$COHORT" --version || continue
    for kind in exact chords; do
        # shellcheck disable=SC2086
        COHORT_ISA=$isa train 1 "$kind-$isa" ${words[$kind]}
        expect_equal "$(sums $kind-1)" "$(sums $kind-$isa)" "the checkpoints of the best instruction set and of $isa"
    done
done

section "stopped and killed"
for kind in exact chords; do
    # shellcheck disable=SC2206
    all=("data=$TMP/tails.h5" $small ${words[$kind]} train.epochs=8 train.batch=10 train.block=2 run.save_minutes=0)
    train 1 "whole-$kind" "${all[@]}"
    stop 2 USR1 "$TMP/cut-$kind" "${all[@]}"
    expect_equal 85 "$ENDED" "exit code after USR1, $kind"
    start 1 "$COHORT" train "${all[@]}" "run=$TMP/cut-$kind"
    until_says ' ranks?$'
    pause 200
    kill_job all
    finish
    train 3 "cut-$kind" "${all[@]}"
    expect_match '^continuing'
    expect_equal "$(sums whole-$kind)" "$(sums cut-$kind)" "the checkpoints of a run in one piece and of one in three"
done

section "likelihood"
expect_status 0 "$COHORT" evaluate "$TMP/exact-1" --likelihood --json
mean=$(json likelihood mean)
check "steps of one answer: minus the log-loss ($mean)" \
    awk -v a="$mean" -v b="$(json log_loss)" 'BEGIN { d = a + b; exit !(a < 0 && d * d < 1e-10) }'
expect_equal "$(json n)" "$(json likelihood steps)" "a step for each answer"
expect_equal 0 "$(json likelihood sampled_steps)" "no step is sampled"
# 12 keys, 20 hidden units: summed over the keys, or sampled.
expect_status 0 "$COHORT" evaluate "$TMP/chords-1" --likelihood --json
exact=$(json likelihood mean)
expect_equal 0 "$(json likelihood sampled_steps)" "no frame is sampled"
expect_number "likelihood spread_error" ">" 0
for n in 1 3; do
    expect_status 0 on $n "$COHORT" evaluate "$TMP/chords-1" --likelihood --enumerate 2 --chains 20 --temperatures 50 --json
    cp "$LIB_OUT" "$TMP/sampled-$n.json"
done
expect_same "$TMP/sampled-1.json" "$TMP/sampled-3.json"
check "sampled ($(json likelihood mean)) and summed ($exact) agree" \
    awk -v a="$(json likelihood mean)" -v b="$exact" -v e="$(json likelihood standard_error)" \
    'BEGIN { d = a - b; exit !(e > 0 && e < 0.01 && d * d < 25 * e * e + 1e-6) }'
expect_equal "$(json likelihood steps)" "$(json likelihood sampled_steps)" "all frames are sampled"
expect_status 0 "$COHORT" evaluate "$TMP/chords-1" --likelihood
expect_match '^log-likelihood: -[0-9.]+ nats per step \(steps: [0-9]+, students: 30\)$'
expect_status 0 "$COHORT" train "data=$TMP/tails.h5" model.kind=rbm train.epochs=1 "run=$TMP/rbm"
expect_status 1 "$COHORT" evaluate "$TMP/rbm" --likelihood
expect_match 'rbm models have no joint likelihood'
expect_status 1 "$COHORT" train "data=$TMP/tails.h5" model.kind=rbm train.monitor=likelihood "run=$TMP/none"
expect_match 'train.monitor = likelihood, but rbm models have no joint likelihood'

section "likelihood of a sharp model"
# Few chords and a melody on 44 keys, overfitted with 12 hidden units, whose states can be summed. With few
# temperatures the estimate is too high, and the spread of the weights shows only a small part of that.
for part in train valid test; do
    awk -v seed="${#part}" 'BEGIN {
        srand(seed)
        split("0 5 7 0 9 5 7 2", root, " ")
        for (s = 0; s < 16; s++) {
            n = 30 + int(30 * rand())
            print n
            k = int(8 * rand())
            m = int(8 * rand())
            for (t = 0; t < n; t++) {
                if (t % 4 == 0) k = rand() < 0.8 ? (k + 1) % 8 : int(8 * rand())
                if (rand() < 0.5) m = (m + int(3 * rand()) + 7) % 8
                r = root[k + 1]
                print r " " r + 4 " " r + 7 " " r + 12 (rand() < 0.9 ? " " 24 + 2 * m : "")
            }
        }
    }' >"$TMP/sharp-$part.txt"
done
expect_status 0 "$COHORT" import sequences --train "$TMP/sharp-train.txt" --valid "$TMP/sharp-valid.txt" \
    --test "$TMP/sharp-test.txt" --items 44 -o "$TMP/sharp.h5"
expect_status 0 "$COHORT" train "data=$TMP/sharp.h5" "run=$TMP/sharp" model.kind=rtrbm model.visible=bernoulli model.dense=yes \
    model.hidden=12 model.loop=0 model.scale=0.05 model.gradient=cd model.cd_steps=5 optimizer.method=adam \
    optimizer.rate=0.03 optimizer.clip=10 train.batch=8 train.block=4 train.epochs=120 train.valid_every=120
expect_status 0 "$COHORT" evaluate "$TMP/sharp" --likelihood --json
exact=$(json likelihood mean)
for chains in 4 16; do
    expect_status 0 "$COHORT" evaluate "$TMP/sharp" --likelihood --enumerate 1 --chains $chains --temperatures 15 --json
    check "$chains chains: sampled ($(json likelihood mean) +- $(json likelihood standard_error)) and summed ($exact) agree" \
        awk -v a="$(json likelihood mean)" -v b="$exact" -v e="$(json likelihood standard_error)" \
        'BEGIN { d = a - b; exit !(e < 0.3 && d * d < 2.25 * e * e) }'
done
expect_number "likelihood temperatures" ">" 15
expect_status 0 "$COHORT" evaluate "$TMP/sharp" --likelihood --enumerate 1 --chains 2 --temperatures 2 --most-temperatures 2
expect_match '^unreliable: the mean has not settled'

section "predictions of whole frames"
# Given the previous frames, with Gibbs chains: 12 keys and 20 hidden units.
# shellcheck disable=SC2086
train 1 learned ${words[chords]} train.monitor=log_loss train.epochs=60 train.valid_every=20 model.chains=8 model.sweeps=24
expect_status 0 "$COHORT" evaluate "$TMP/learned" --json
expect_number log_loss "<" "$(json item_mean log_loss)"
expect_status 0 "$COHORT" predict "$TMP/learned" -o "$TMP/frames-1.csv"
expect_status 0 on 3 "$COHORT" predict "$TMP/learned" -o "$TMP/frames-3.csv"
for isa in plain avx2 avx512; do
    COHORT_ISA=$isa run "$COHORT" --version || continue
    COHORT_ISA=$isa expect_status 0 "$COHORT" predict "$TMP/learned" -o "$TMP/frames-$isa.csv"
done
expect_same "$TMP"/frames-*

section "samples"
for n in 1 2; do
    expect_status 0 on $n "$COHORT" sample "$TMP/exact-1" --students 300 --split by-student=60/20/20 -o "$TMP/s$n.h5"
    expect_status 0 on $n "$COHORT" sample "$TMP/chords-1" --students 20 --gibbs 20 -o "$TMP/c$n.h5"
done
expect_same "$TMP/s1.h5" "$TMP/s2.h5"
expect_same "$TMP/c1.h5" "$TMP/c2.h5"
expect_status 0 "$COHORT" sample "$TMP/exact-1" --students 300 --seed 2 -o "$TMP/s3.h5"
check "another seed is another class" test "$(sha256sum <"$TMP/s1.h5")" != "$(sha256sum <"$TMP/s3.h5")"
expect_status 0 "$COHORT" verify "$TMP/s1.h5" "$TMP/c1.h5"
expect_status 0 "$COHORT" inspect "$TMP/s1.h5" --json
expect_equal 300 "$(json students)" "students"
expect_equal 40 "$(json items)" "items"
train 1 on-samples "data=$TMP/s1.h5" train.epochs=1
expect_status 0 "$COHORT" evaluate "$TMP/exact-1" --data "$TMP/s1.h5" --likelihood --json
expect_number "auc" ">" 0.5
expect_status 1 "$COHORT" sample "$TMP/rbm" -o "$TMP/none.h5"
expect_match 'rbm models cannot be sampled from'
expect_status 2 "$COHORT" sample "$TMP/exact-1"

section "graphs"
for n in 1 2; do
    expect_status 0 on $n "$COHORT" export "$TMP/skills-1" --graph -o "$TMP/edges$n.csv"
    expect_status 0 on $n "$COHORT" export "$TMP/skills-1" --graph --least 0.4 -o "$TMP/edges$n.dot"
done
expect_same "$TMP/edges1.csv" "$TMP/edges2.csv"
expect_same "$TMP/edges1.dot" "$TMP/edges2.dot"
n_skills=$("$COHORT" inspect "$TMP/tails.h5" --json | json_of /dev/stdin skills)
expect_equal $((n_skills * (n_skills - 1) + 1)) "$(wc -l <"$TMP/edges1.csv")" "a line for each pair of skills"
expect_match '^from,to,gate,strength$' "$TMP/edges1.csv"
expect_match '^    "[^"]+" -> "[^"]+" \[label="0\.[0-9]+", penwidth=[0-9.]+\];$' "$TMP/edges1.dot"
expect_match '^}$' "$TMP/edges1.dot"
(
    command -v dot >/dev/null || skip "there is no graphviz to draw with"
    expect_status 0 dot -Tsvg "$TMP/edges1.dot" -o "$TMP/edges.svg"
)
expect_status 1 "$COHORT" export "$TMP/exact-1" --graph -o "$TMP/none.csv"
expect_match 'this model has no graph'

# Nothing is learned from shuffled outcomes; from real ones something is.
section "shuffled outcomes"
for shuffle in '' --shuffle-outcomes; do
    # shellcheck disable=SC2086
    run "$COHORT" simulate bkt --students 400 --skills 2 --items 30 --attempts 40 --seed 5 --split by-student=60/10/30 \
        $shuffle -o "$TMP/class$shuffle.h5" || fail "simulate"
done
for kind in exact skills; do
    # shellcheck disable=SC2086
    train 1 "chance-$kind" ${words[$kind]} "data=$TMP/class--shuffle-outcomes.h5" train.epochs=6
    # shellcheck disable=SC2086
    train 1 "true-$kind" ${words[$kind]} "data=$TMP/class.h5" train.epochs=15 train.batch=20
    check "AUC $(result "chance-$kind" test auc) is chance" awk -v n="$(result "chance-$kind" test n)" \
        -v auc="$(result "chance-$kind" test auc)" \
        'BEGIN { off = auc - 0.5; exit !(n > 3000 && off * off < 16 / (12 * n * 0.3 * 0.7)) }'
    check "what was not shuffled is learned ($(result "true-$kind" test auc))" \
        awk -v auc="$(result "true-$kind" test auc)" 'BEGIN { exit !(auc > 0.65) }'
done

section "students of 100 000 attempts and of one"
awk 'BEGIN {
    srand(1)
    n_students = split("100000 1 5 1 40", length_of, " ")
    for (s = 1; s <= n_students; s++) {
        items = outcomes = ""
        for (t = 0; t < length_of[s]; t++) {
            comma = t ? "," : ""
            items = items comma int(8 * rand())
            outcomes = outcomes comma int(2 * rand())
        }
        print length_of[s] "\n" items "\n" outcomes
    }
}' >"$TMP/long.csv"
printf '3\n1,2,8\n0,1,1\n' >"$TMP/new.csv" # item 8 is never seen at training
expect_status 0 "$COHORT" import three-line --train "$TMP/long.csv" --test "$TMP/new.csv" -o "$TMP/long.h5"
for again in no yes; do
    train 1 "long-$again" "data=$TMP/long.h5" model.hidden=8 train.batch=4 train.block=2 train.epochs=1 \
        model.recompute=$again
    expect_match '^test +n 3 '
done
expect_equal "$(tensors long-no)" "$(tensors long-yes)" "tensors with states kept and computed again"
expect_status 0 "$COHORT" predict "$TMP/long-yes" -o "$TMP/long-p.csv"
expect_equal 100050 "$(awk -F , 'NR > 1 && $5 > 0 && $5 < 1' "$TMP/long-p.csv" | wc -l)" "probabilities"

section "settings that contradict each other"
# shellcheck disable=SC2086
while IFS='|' read -r setting sentence; do
    expect_status 1 "$COHORT" train "data=$TMP/long.h5" $small "run=$TMP/none" $setting
    expect_match "$sentence"
done <<'END'
model.dense=yes|requires model.visible = bernoulli
model.structure=skills|the data set has no skills
model.hidden=0|leaves no hidden units
model.cd_schedule=3|expected epoch:steps pairs
model.structure=items model.skill_units=1024 model.hidden=4096 data.file=none|cannot open the data set none
END
