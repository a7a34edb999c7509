#!/bin/bash
# Retraining as a test for leaks. Parameters are trained on all training answers, including later ones, so a model
# with parameters per student could know a student's later answers at an early attempt. Here every student has a twin
# with the same early history, and some students get altered later training answers. After retraining, the early
# predictions of such a student must equal those of the twin, whose answers are unchanged. Shared parameters have
# moved for both, and nothing else may have.
. "$(dirname "$0")/../lib/lib.sh"

# 160 pairs of 20 attempts at 10 items of 3 skills, a fifth of them held out one by one. The altered class flips the
# training answers of the first twin from attempt 10 on, in every fourth pair. Each student has two sessions, each
# with early and late attempts, and a room that some share.
class() {
    awk -v altered="$1" 'BEGIN {
        srand(8)
        print "student,item,skill,outcome,time,split,session,room"
        for (pair = 0; pair < 160; pair++) {
            ability = 3 * (rand() - rand())
            for (t = 0; t < 20; t++) {
                item = int(10 * rand())
                right = rand() < 1 / (1 + exp(-ability - (item - 4.5) / 4))
                u = rand()
                part = u < 0.8 ? "train" : u < 0.85 ? "valid" : "test"
                for (twin = 1; twin <= 2; twin++) {
                    turned = altered && twin == 1 && pair % 4 == 0 && t >= 10 && part == "train"
                    printf "%d-%d,i%d,k%d,%d,%d,%s,%d-%d-%d,%d\n", pair, twin, item, item % 3, turned ? !right : right, t, part,
                        pair, twin, t % 2, pair % 7
                }
            }
        }
    }' >"$TMP/class-$1.csv"
    run "$COHORT" import csv "$TMP/class-$1.csv" --student student --item item --skills skill --outcome outcome --time time \
        --split-column split --factors session,room --withheld -o "$TMP/class-$1.h5" || fail "import"
}
class 0
class 1
check "answers were altered" test "$(diff "$TMP/class-0.csv" "$TMP/class-1.csv" | grep -c '^<')" -gt 280

# train RUN CLASS WORD...: train, and predict all attempts: $TMP/RUN.csv.
train() {
    run "$COHORT" train "data=$TMP/class-$2.h5" "run=$TMP/$1" train.patience=0 "${@:3}" || fail "training $1"
    run "$COHORT" predict "$TMP/$1" --split all -o "$TMP/$1.csv" || fail "predicting $1"
}

# expect_twins RUN: tests: students with altered answers have the predictions of their twins up to the first altered
# answer (attempt 10 is predicted before it is answered), and different ones afterwards.
expect_twins() {
    local n n_apart most n_later
    read -r n n_apart most n_later < <(awk -F '[,-]' 'FNR > 1 && $1 % 4 == 0 {
            if (!(($1, $4) in p)) { p[$1, $4] = $6; next }
            off = $6 - p[$1, $4]
            if (off < 0) off = -off
            if ($4 > 10) { n_later += off > 1e-4; next }
            n++
            n_apart += off > 0
            if (off > most) most = off }
        END { printf "%d %d %g %d\n", n, n_apart, most, n_later }' "$TMP/$1.csv")
    check "$1: $n_apart of $n early predictions differ from the twin's, by $most at most; later ones $n_later" \
        test "$n" = 440 -a "$n_apart" = 0 -a "$n_later" -gt 150
}

printf '[model]\nfactors = item session room\n' >"$TMP/session.ini"
# Settings that can overfit.
declare -A words=(
    [rbm]='model.kind=rbm model.hidden=20 model.copies=1 model.scale=0.1 model.start=log_odds train.batch=50 train.epochs=20 optimizer.rate=0.01'
    [persistent]='model.kind=rbm model.hidden=8 model.persistent=yes train.epochs=10 optimizer.rate=0.003'
    [rtrbm]='model.kind=rtrbm model.hidden=8 train.epochs=5'
    [dkt]='model.kind=dkt model.hidden=16 train.epochs=5 optimizer.method=adam optimizer.rate=0.01'
    [vae]='model.kind=vae model.hidden=12 optimizer.method=adam optimizer.rate=0.02 train.batch=60 train.epochs=8'
    [lme]='model.kind=lme model.grid=1x1 train.epochs=10'
    [lme-session]="$TMP/session.ini model.kind=lme model.grid=1x1 train.epochs=10"
    [bkt]='model.kind=bkt train.epochs=10'
    [rasch]='model.kind=ktm model.preset=rasch model.l2=0.1'
    [fm]='model.kind=ktm model.preset=fm model.factors=3 model.l2=0.1 model.l2_factors=0.1 model.scale=0.3'
    [ktm-session]='model.kind=ktm model.features=student,item,session,room model.l2=0.1'
)
for kind in rbm persistent rtrbm dkt vae lme lme-session bkt rasch fm ktm-session; do
    section $kind
    # shellcheck disable=SC2086
    train $kind 1 ${words[$kind]}
    expect_twins $kind
done

section blend
run "$COHORT" blend "$TMP/rasch" "$TMP/fm" "$TMP/dkt" -o "$TMP/blend" || fail "blend"
run "$COHORT" predict "$TMP/blend" --split all -o "$TMP/blend.csv" || fail "predicting blend"
expect_twins blend

# Folds hold out different attempts of two twins, so twins are similar and not equal: retraining on the altered class
# moves early predictions of both, and those of altered students no more than those of the others.
section folds
for class in 0 1; do
    # shellcheck disable=SC2086
    train "folds-$class" $class ${words[rasch]} train.folds=4 train.fold=2
done
read -r n altered other < <(awk -F '[,-]' 'FNR > 1 && $1 % 4 == 0 && $4 <= 10 {
        if (NR == FNR) { p[$1, $2, $4] = $6; next }
        off = $6 - p[$1, $2, $4]
        n[$2]++
        moved[$2] += off < 0 ? -off : off }
    END { printf "%d %.5f %.5f\n", n[1], moved[1] / n[1], moved[2] / n[2] }' "$TMP/folds-0.csv" "$TMP/folds-1.csv")
check "$n early predictions of altered students move by $altered, those of their twins by $other" \
    awk -v n="$n" -v a="$altered" -v b="$other" 'BEGIN { exit !(n == 440 && b > 0 && a < 1.2 * b) }'

# Every student has an item that nobody else answers, and every second one a skill that nobody else practises. Held-out
# attempts at these come before training answers. The altered class flips these later answers of every fourth student:
# what a model learned from them may not reach any earlier prediction.
owners() {
    awk -v altered="$1" 'BEGIN {
        srand(5)
        print "student,item,skill,outcome,time,split"
        for (s = 0; s < 120; s++) {
            always = rand() < 0.5
            for (t = 0; t < 16; t++) {
                own = t % 2 == 0
                right = own ? always : rand() < 0.5
                part = t >= 8 ? "train" : own ? "test" : "train"
                turned = altered && own && s % 4 == 0 && t >= 8
                printf "s%d,%s,%s,%d,%d,%s\n", s, own ? "own" s : "i" t, own && s % 2 ? "mine" s : "k" t % 3,
                    turned ? !right : right, t, part
            }
        }
    }' >"$TMP/owners-$1.csv"
    run "$COHORT" import csv "$TMP/owners-$1.csv" --split-column split --withheld -o "$TMP/class-owners-$1.h5" || fail "import"
}
section "items and skills of one student"
owners 0
owners 1
for kind in rbm rtrbm dkt vae lme bkt rasch fm; do
    for class in 0 1; do
        # shellcheck disable=SC2086
        train "own-$kind-$class" "owners-$class" ${words[$kind]}
    done
    read -r n moved < <(awk -F , 'FNR > 1 && $3 < 8 { if (NR == FNR) p[$1, $3] = $5; else { n++; moved += p[$1, $3] != $5 } }
        END { print n + 0, moved + 0 }' "$TMP/own-$kind-0.csv" "$TMP/own-$kind-1.csv")
    check "$kind: $moved of $n early predictions moved" test "$n" = 960 -a "$moved" = 0
done
# Hidden from training only: predictions know these answers, as those of any other run do.
expect_equal 0 "$(awk -F , '$4 == ""' "$TMP/own-bkt-0.csv" | wc -l)" "answers missing in predictions"
for split in train all; do
    expect_status 0 "$COHORT" evaluate "$TMP/own-bkt-0" "$TMP/own-rasch-0" --split $split
    run "$COHORT" evaluate "$TMP/own-bkt-0" --split $split --json || fail "evaluate"
    expect_equal "$([ $split = all ] && echo 1920 || echo 1440)" "$(json n)" "answers scored in $split"
done
expect_status 0 ranks 3 "$COHORT" train "data=$TMP/class-owners-0.h5" "run=$TMP/own-ranks" train.patience=0 model.kind=bkt train.epochs=10
expect_match '^note: training skips 480 answers at items, skills or groups of only one student' "$LIB_ERR"
expect_same "$TMP/own-bkt-0/last.h5" "$TMP/own-ranks/last.h5"

# Every student practises an item and its skill that others answer once, so that only this student's answers say how
# practice changes the chance. The altered class flips the later answers of every fourth student.
practised() {
    awk -v altered="$1" 'BEGIN {
        srand(6)
        print "student,item,skill,outcome,time,split"
        for (s = 0; s < 120; s++) {
            always = rand() < 0.5
            for (t = 0; t < 40; t++) {
                of = t < 10 ? s : (s + t) % 120
                right = t == 0 || (t < 4 || t >= 10 ? rand() < 0.5 : altered && s % 4 == 0 ? !always : always)
                part = t == 2 || t == 3 || t % 10 == 9 && t > 10 ? "test" : "train"
                printf "s%d,h%d,k%d,%d,%d,%s\n", s, of, of, right, t, part
            }
        }
    }' >"$TMP/practised-$1.csv"
    run "$COHORT" import csv "$TMP/practised-$1.csv" --split-column split --withheld -o "$TMP/class-practised-$1.h5" || fail "import"
}
section "items and skills that one student practises"
practised 0
practised 1
check "answers were altered" test "$(diff "$TMP/practised-0.csv" "$TMP/practised-1.csv" | grep -c '^<')" = 180
for kind in bkt pfa das3h; do
    settings=${words[$kind]:-"model.kind=ktm model.preset=$kind"}
    for class in 0 1; do
        # shellcheck disable=SC2086
        train "practised-$kind-$class" "practised-$class" $settings
    done
    read -r n moved < <(awk -F , 'FNR > 1 && $3 < 4 { if (NR == FNR) p[$1, $3] = $5; else { n++; moved += p[$1, $3] != $5 } }
        END { print n + 0, moved + 0 }' "$TMP/practised-$kind-0.csv" "$TMP/practised-$kind-1.csv")
    check "$kind: $moved of $n early predictions moved" test "$n" = 480 -a "$moved" = 0
done

# classes NAME COMMAND...: imports two classes that the command prints, given 0 or 1: as they are, and altered.
classes() {
    local name=$1 altered
    shift
    for altered in 0 1; do
        "$@" $altered >"$TMP/$name-$altered.csv"
        run "$COHORT" import csv "$TMP/$name-$altered.csv" --split-column split --withheld --time-unit s \
            -o "$TMP/class-$name-$altered.h5" || fail "import"
    done
}

# moves NAME KIND WORD...: how much the first held-out predictions of altered students (every fourth) and of the others
# move, and how well they tell apart students by their later answers (AUC).
moves() {
    local name=$1 kind=$2 altered
    shift 2
    for altered in 0 1; do train "$name-$kind-$altered" "$name-$altered" "$@"; done
    awk -F , 'FNR > 1 && !((FILENAME, $1) in met) {
            met[FILENAME, $1]
            s = substr($1, 2)
            if ($6 != "test" || $1 !~ /^s/) { delete met[FILENAME, $1]; next }
            if (NR == FNR) { p[s] = $5; y[s] = $4; next }
            off = $5 - p[s]
            n[s % 4 == 0]++
            moved[s % 4 == 0] += off < 0 ? -off : off }
        END {
            for (a in p) for (b in p) if (y[a] > y[b]) { pairs++; above += p[a] > p[b] ? 1 : p[a] == p[b] ? 0.5 : 0 }
            printf "%.5f %.5f %.4f\n", moved[1] / n[1], moved[0] / n[0], above / pairs }' \
        "$TMP/$name-$kind-0.csv" "$TMP/$name-$kind-1.csv"
}

# expect_alike NAME KIND WORD...: tests that altered students move no more than others, by chance apart.
expect_alike() {
    local altered others auc
    read -r altered others auc < <(moves "$@")
    check "$2: altered students move by $altered, others by $others, AUC $auc" \
        awk -v a="$altered" -v b="$others" -v auc="$auc" 'BEGIN { exit !(a < 1.15 * b + 1e-4 && auc > 0.35 && auc < 0.65) }'
}

# First three items that nobody else answers, each once, with outcomes by chance; then common items, whose outcomes are
# the student's coin. What a model learned about the first items must not tell the coin.
coins() {
    awk -v altered="$1" 'BEGIN {
        srand(11)
        print "student,item,outcome,time,split"
        for (s = 0; s < 240; s++) {
            coin = rand() < 0.5
            for (t = 0; t < 16; t++) {
                right = rand() < 0.5
                item = int(6 * rand())
                if (t >= 3) right = altered && s % 4 == 0 && t >= 5 ? !coin : coin
                printf "s%d,%s,%d,%d,%s\n", s, t < 3 ? "u" s "_" t : "i" item, right, t, t == 3 || t == 4 ? "test" : "train"
            }
        }
    }'
}
section "items of one student, answered once"
classes coins coins
for kind in rbm rtrbm dkt vae lme rasch fm; do
    # shellcheck disable=SC2086
    expect_alike coins $kind ${words[$kind]}
done
expect_alike coins conditional model.kind=rbm model.conditional=yes

# Skill k of s and of b: b's answers there are hidden, since they are at an item of b's own; so only s trains the skill.
chain() {
    awk -v altered="$1" 'BEGIN {
        srand(7)
        print "student,item,skill,outcome,time,split"
        for (j = 0; j < 60; j++) {
            coin = rand() < 0.5
            for (t = 0; t < 15; t++) {
                right = t ? coin : rand() < 0.5
                if (altered && j % 4 == 0 && t >= 3) right = !right
                printf "s%d,x%d_%d,k%d,%d,%d,%s\n", j, j, t, j, right, t, t == 1 || t == 2 ? "test" : "train"
            }
            for (t = 0; t < 15; t++)
                if (t == 0 || t >= 10)
                    printf "b%d,own%d,k%d,%d,%d,train\n", j, j, j, rand() < 0.5, t
                else
                    printf "b%d,c%d,C,%d,%d,%s\n", j, t, rand() < 0.5, t, t < 3 ? "test" : "train"
        }
    }'
}
section "a skill of two students, one of whom is hidden"
classes chain chain
for kind in bkt pfa; do
    # shellcheck disable=SC2086
    read -r altered others auc < <(moves chain $kind ${words[$kind]:-model.kind=ktm model.preset=$kind})
    check "$kind: altered students move by $altered" test "$altered" = 0.00000
done

# Every student waits for times of an own length, so that only this student trains that length.
waits() {
    awk -v altered="$1" 'BEGIN {
        srand(5)
        print "student,item,skill,outcome,time,split"
        for (s = 0; s < 24; s++) {
            coin = int(s / 2) % 2
            time = 1600000000
            for (t = 0; t < 30; t++) {
                time += 2 ^ (s + 1)
                right = t ? coin : rand() < 0.5
                if (altered && s % 4 == 0 && t >= 3) right = !right
                item = int(6 * rand())
                printf "s%d,i%d,k%d,%d,%d,%s\n", s, item, item, right, time, t == 1 || t == 2 ? "test" : "train"
            }
        }
    }'
}
section "waiting times of one student"
printf '[model]\nfeatures = item elapsed previous_item\n' >"$TMP/waits.ini"
classes waits waits
read -r altered others auc < <(moves waits elapsed "$TMP/waits.ini" model.kind=ktm)
check "altered students move by $altered, others by $others" awk -v a="$altered" -v b="$others" 'BEGIN { exit !(a < 1.15 * b) }'

# Validation and test scores of training are those of evaluate, though training hides answers.
section "scores of training"
run "$COHORT" evaluate "$TMP/own-dkt-0" --split test --json || fail "evaluate"
expect_equal "$(json log_loss | cut -c 1-12)" "$(json_of "$TMP/own-dkt-0/result.json" test log_loss | cut -c 1-12)" "log-loss"
