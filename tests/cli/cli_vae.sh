#!/bin/bash
# ML2P-VAE on the command line: the same bits at any number of ranks and after stops and kills, abilities and items
# recovered from a simulated class, published numbers, tables with errors, bad input.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
RANDOM=${SEED:-$$}
small="model.kind=vae model.hidden=12 model.samples=4 train.batch=60 train.block=7 train.epochs=3
    optimizer.method=adam optimizer.rate=0.01"
data=../shared/data

run "$COHORT" simulate irt --students 500 --items 24 --skills 2 --missing 0.3 --correlation 0.5 --seed 3 \
    --split by-student=70/10/20 -o "$TMP/class.h5" || fail "simulate irt"
printf '1,0.5\n0.5,1\n' >"$TMP/correlation.csv"

# train RANKS RUN WORD...: a run on the class, unless a word sets other data.
train() {
    local n=$1 run=$2
    shift 2
    # shellcheck disable=SC2086
    run on "$n" "$COHORT" train "data=$TMP/class.h5" $small "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}

sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5) | awk '{ printf "%s ", $1 }'; }

section "the same bits"
full="model.posterior=full model.prior_correlation=$TMP/correlation.csv model.prior_b=3"
one="model.preset=1pl model.samples=1 model.prefixes=2 model.kl_warm_up=2"
for n in 1 2 3 5; do
    # shellcheck disable=SC2086
    train $n "full-$n" $full
    # shellcheck disable=SC2086
    train $n "one-$n" $one
    [ $n = 1 ] || expect_equal "$(sums full-1)" "$(sums "full-$n")" "checkpoints of 1 and $n ranks, full posterior"
    [ $n = 1 ] || expect_equal "$(sums one-1)" "$(sums "one-$n")" "checkpoints of 1 and $n ranks, 1PL"
done
# shellcheck disable=SC2086
COHORT_SHARED=no train 3 sent $full
expect_equal "$(sums full-1)" "$(sums sent)" "the checkpoints of 1 rank and of 3 that send"
for isa in plain avx2 avx512; do
    COHORT_ISA=$isa run "$COHORT" --version || continue
    # shellcheck disable=SC2086
    COHORT_ISA=$isa train 1 "isa-$isa" $full
    expect_equal "$(sums full-1)" "$(sums "isa-$isa")" "the checkpoints of the best instruction set and of $isa"
done
for n in 1 3; do
    expect_status 0 on $n "$COHORT" export "$TMP/full-1" --hidden -o "$TMP/exported-$n"
    expect_status 0 on $n "$COHORT" predict "$TMP/full-1" -o "$TMP/exported-$n/p.csv"
    run on $n "$COHORT" evaluate "$TMP/full-1" --likelihood --json
    output >"$TMP/exported-$n/scores.json"
    run on $n "$COHORT" inspect "$TMP/full-1" --truth --json
    output >"$TMP/exported-$n/truth.json"
done
for file in hidden.csv table_items.csv p.csv scores.json truth.json; do
    expect_same "$TMP"/exported-{1,3}/$file
done
expect_equal student,theta_1,theta_2,sigma_1,sigma_2 "$(head -1 "$TMP/exported-1/hidden.csv")" "columns of students"
expect_equal item,a_1,a_2,b,error_a_1,error_a_2,error_b,answers "$(head -1 "$TMP/exported-1/table_items.csv")" \
    "columns of items"
check "each item has errors" awk -F , 'NR > 1 && !($7 > 0 && $7 < 2 && ($5 > 0 || $6 > 0)) { exit 1 }' \
    "$TMP/exported-1/table_items.csv"

section "standard errors are written only if they were computed"
expect_status 0 "$COHORT" export "$TMP/full-1" -o "$TMP/plain-tables"
expect_status 0 "$COHORT" export "$TMP/full-1" -o "$TMP/plain.h5"
expect_equal "" "$(find "$TMP/plain-tables" -name 'error_*')" "files of errors that were not computed"
check "difficulties are among them" test -f "$TMP/plain-tables/difficulty.csv"
check "the tensors of errors have the numbers of the table" awk -F , 'FNR == 1 { next } FILENAME == ARGV[1] { a[FNR] = $5 "," $6; b[FNR] = $7; next }
    FILENAME == ARGV[2] { if ($2 "," $3 != a[FNR]) exit 1; next } $2 != b[FNR] { exit 1 }' \
    "$TMP/exported-1/"{table_items,error_a,error_b}.csv
expect_status 0 "$COHORT" export "$TMP/full-1" --hidden -o "$TMP/errors.h5"
for tensor in difficulty error_a error_b; do # names are stored as plain text
    expect_equal "$([ $tensor = difficulty ] && echo 1 || echo 0) 1" \
        "$(grep -aq $tensor "$TMP/plain.h5" && echo 1 || echo 0) $(grep -aq $tensor "$TMP/errors.h5" && echo 1 || echo 0)" \
        "$tensor in HDF5 files without and with --hidden"
done
expect_status 1 "$COHORT" export "$TMP/full-1" --tensor error_b -o "$TMP/error_b.csv"
expect_match "'error_b' is computed from the training data; use --hidden, and -o FILE.h5 or a directory"
expect_status 0 "$COHORT" export "$TMP/full-1" --tensor error_b --hidden -o "$TMP/error_b"
check "one tensor" cmp "$TMP/error_b/error_b.csv" "$TMP/exported-1/error_b.csv"

section "stopped and killed"
# shellcheck disable=SC2206
words=("data=$TMP/class.h5" $small $full train.epochs=40 train.batch=20 train.block=4 run.save_minutes=0)
train 1 whole "${words[@]}"
stop 2 USR1 "$TMP/cut" "${words[@]}"
expect_equal 85 "$ENDED" "exit code after USR1"
start 1 "$COHORT" train "${words[@]}" "run=$TMP/cut"
until_says ' ranks?$'
pause 200
kill_job all
finish
train 3 cut "${words[@]}"
expect_match '^continuing'
expect_equal "$(sums whole)" "$(sums cut)" "the checkpoints of a run in one piece and of one in three"

section "a run does not need the file of correlations"
mv "$TMP/correlation.csv" "$TMP/moved.csv"
expect_match '^prior_correlation = 1 0\.5 / 0\.5 1$' "$TMP/full-1/config.ini"
expect_status 0 "$COHORT" evaluate "$TMP/full-1"
expect_status 0 "$COHORT" train "$TMP/full-1/config.ini" train.epochs=4
expect_match '^continuing'

section "recovery of a simulated class"
run "$COHORT" simulate irt --students 3000 --items 40 --skills 2 --correlation 0.5 --missing 0.2 --seed 5 \
    --split by-student=80/0/20 -o "$TMP/large.h5" || fail "simulate irt"
good="model.kind=vae model.posterior=full model.samples=8 optimizer.method=adam optimizer.rate=0.02
    optimizer.schedule=cosine train.batch=300 train.block=50 train.epochs=40"
# shellcheck disable=SC2086
train 2 large "data=$TMP/large.h5" $good "model.prior_correlation=1 0.5 / 0.5 1"
expect_status 0 "$COHORT" inspect "$TMP/large" --truth --json
expect_equal a "$(json truth 0 name)" "the first truth"
expect_number "truth 0 correlation" ">=" 0.93
expect_number "truth 0 rmse" "<=" 0.17
expect_number "truth 0 within" ">=" 0.8
expect_equal b "$(json truth 1 name)" "the second truth"
expect_number "truth 1 correlation" ">=" 0.995
expect_number "truth 1 rmse" "<=" 0.12
expect_equal "theta test students" "$(json truth 3 name) $(json truth 3 of)" "the fourth truth"
expect_number "truth 3 correlation" ">=" 0.87
expect_number "truth 3 within" ">=" 0.92
expect_number "truth 3 within" "<=" 0.98
# An encoder trained only on complete students predicts worse after a few answers.
# shellcheck disable=SC2086
train 1 whole-only "data=$TMP/large.h5" $good "model.prior_correlation=1 0.5 / 0.5 1" model.prefixes=0
check "beginnings help predictions" awk -v with="$(json_of "$TMP/large/result.json" test log_loss)" \
    -v without="$(json_of "$TMP/whole-only/result.json" test log_loss)" 'BEGIN { exit !(with < without - 0.001) }'

section "standard errors of a class with fewer students than parameters"
expect_status 0 "$COHORT" simulate irt --students 60 --items 40 --skills 1 --seed 3 -o "$TMP/few.h5"
expect_status 0 "$COHORT" train "data=$TMP/few.h5" "run=$TMP/few" model.kind=vae
expect_status 0 "$COHORT" export "$TMP/few" --hidden -o "$TMP/few-tables"
expect_no_match "standard errors are missing"
check "errors are within those of the prior" awk -F , 'NR > 1 && !($4 > 0.1 && $4 < $2 && $5 > 0.2 && $5 < 2) { exit 1 }' \
    "$TMP/few-tables/table_items.csv"
expect_status 0 "$COHORT" inspect "$TMP/few" --truth --json
expect_number "truth 0 within" ">=" 0.85
expect_number "truth 1 within" ">=" 0.9

section "default settings, and steps that are too large"
run "$COHORT" simulate irt --students 600 --items 50 --skills 3 -o "$TMP/first.h5"
expect_status 0 timeout -s KILL 60 "$COHORT" train "data=$TMP/first.h5" "run=$TMP/first" model.kind=vae
check "it learns" awk -v auc="$(json_of "$TMP/first/result.json" test auc)" 'BEGIN { exit !(auc > 0.72) }'
expect_status 4 timeout -s KILL 60 "$COHORT" train "data=$TMP/first.h5" "run=$TMP/large-steps" model.kind=vae \
    optimizer.method=sgd optimizer.rate=1
expect_match 'training diverged'

section "one student with many answers"
awk 'BEGIN { print "student,item,correct"; srand(3)
    for (t = 0; t < 60000; t++) print "s1,i" int(30 * rand()) "," (rand() < 0.7)
    for (t = 0; t < 600; t++) print "s" 2 + t % 20 ",i" int(30 * rand()) "," (rand() < 0.6) }' >"$TMP/long.csv"
run "$COHORT" import csv "$TMP/long.csv" --split none -o "$TMP/long.h5" || fail "import of a long student"
# shellcheck disable=SC2086
expect_status 0 timeout -s KILL 60 "$COHORT" train "data=$TMP/long.h5" $small "run=$TMP/long"
expect_status 0 timeout -s KILL 30 "$COHORT" export "$TMP/long" -o "$TMP/long-tables"

section "dimensions without a Q-matrix"
train 1 free model.dimensions=3 model.posterior=full model.discrimination=signed
expect_status 0 "$COHORT" inspect "$TMP/free" --errors
expect_match '^item +a_1 +a_2 +a_3 +b '

section "published numbers"
(
    [ -f $data/irt/LSAT6_1000x5.csv ] || skip "there is no $data/irt"
    expect_status 0 "$COHORT" import matrix $data/irt/LSAT6_1000x5.csv --split none -o "$TMP/lsat.h5"
    # shellcheck disable=SC2043
    for case in '2pl -2466.653' '1pl -2466.938' 'rasch -2473.054'; do
        read -r preset expected <<<"$case"
        run "$COHORT" train jobs/vae_lsat6.ini "data=$TMP/lsat.h5" "run=$TMP/lsat-$preset" "model.preset=$preset"
        expect_status 0 "$COHORT" evaluate "$TMP/lsat-$preset" --split train --likelihood --json
        check "log-likelihood of $preset: 1000 x $(json likelihood mean)" awk -v mean="$(json likelihood mean)" \
            -v expected="$expected" 'BEGIN { off = 1000 * mean - expected; exit !(off > -0.5 && off < 0.001) }'
    done
    # a, its standard error, and -b, in the notation of other programs
    expect_status 0 "$COHORT" export "$TMP/lsat-2pl" --hidden -o "$TMP/lsat"
    check "items of LSAT 6" awk -F , 'BEGIN { split("0.826 0.723 0.891 0.688 0.657", a, " ")
        split("2.773 0.990 0.249 1.285 2.053", d, " "); split("0.258 0.187 0.233 0.185 0.210", s, " ") }
        NR > 1 && ($2 - a[NR - 1])^2 > 0.06^2 { exit 1 } NR > 1 && ($3 + d[NR - 1])^2 > 0.04^2 { exit 1 }
        NR > 1 && ($4 / s[NR - 1] - 1)^2 > 0.08^2 { exit 1 }' "$TMP/lsat/table_items.csv"
)
(
    [ -f $data/irt/fraction_subtraction_536x20.csv ] || skip "there is no $data/irt"
    expect_status 0 "$COHORT" import matrix $data/irt/fraction_subtraction_536x20.csv \
        --q-matrix $data/irt/fraction_subtraction_Q_20x8.csv --split none -o "$TMP/fraction.h5"
    run "$COHORT" train jobs/vae_fraction.ini "data=$TMP/fraction.h5" "run=$TMP/fraction" train.epochs=60
    expect_status 0 "$COHORT" export "$TMP/fraction" --tensor q_matrix -o "$TMP/q.csv"
    expect_same <(tail -n +2 $data/irt/fraction_subtraction_Q_20x8.csv) <(tail -n +2 "$TMP/q.csv" | cut -d , -f 2-)
    expect_status 0 "$COHORT" export "$TMP/fraction" -o "$TMP/fraction-tables"
    # 5 4/5 - 3 2/5 (item 8) and the like are easy, 4 - 1 4/3 (item 19) is not; zeros of Q stay exactly 0
    check "items of fraction subtraction" awk -F , 'NR == FNR { for (c = 2; c <= 9; c++) q[FNR, c] = $c; next }
        FNR > 1 { b[FNR - 1] = $10; for (c = 2; c <= 9; c++) if ((q[FNR, c] == 0) != ($c == 0)) exit 1 }
        END { exit !(b[8] < -1 && b[6] < -1.5 && b[19] > 1.5 && b[13] > 1.5) }' "$TMP/q.csv" \
        "$TMP/fraction-tables/table_items.csv"
)
(
    ml2p=$data/ml2p
    [ -f $ml2p/responses.csv.gz ] || skip "there is no $ml2p"
    expect_status 0 "$COHORT" import matrix $ml2p/responses.csv.gz --q-matrix $ml2p/q_matrix.csv \
        --split by-order=80/0/20 -o "$TMP/ml2p.h5" \
        --truth "a=$ml2p/disc_true.csv,b=-$ml2p/diff_true.csv,theta=$ml2p/theta_true.csv"
    run on 2 "$COHORT" train jobs/vae_ml2p.ini "data=$TMP/ml2p.h5" "run=$TMP/ml2p" || fail "training on ml2p"
    expect_status 0 "$COHORT" inspect "$TMP/ml2p" --truth --json
    expect_number "truth 0 n" "==" 43
    expect_number "truth 0 correlation" ">=" 0.94
    expect_number "truth 0 rmse" "<=" 0.15
    expect_number "truth 1 correlation" ">=" 0.998
    expect_number "truth 1 rmse" "<=" 0.1
    expect_number "truth 3 correlation" ">=" 0.84
    run "$COHORT" export "$TMP/ml2p" --hidden -o "$TMP/theta.csv"
    check "abilities of students 4200 to 4400" awk -F , 'NR == FNR { for (k = 1; k <= 3; k++) t[FNR, k] = $k; next }
        $1 >= 4200 && $1 <= 4400 { for (k = 1; k <= 3; k++) { x = t[$1, k]; y = $(k + 1); n++
            sx += x; sy += y; xx += x * x; yy += y * y; xy += x * y } }
        END { r = (xy - sx * sy / n) / sqrt((xx - sx * sx / n) * (yy - sy * sy / n)); print r, n >"/dev/stderr"
            exit !(n == 603 && r >= 0.835) }' $ml2p/theta_true.csv "$TMP/theta.csv"
)

section "an item without a skill requires every ability; so does one that comes with an update"
# log ITEMS: the answers of 80 students; item q0 has no skill, the others take turns.
log() {
    awk -v n="$1" 'BEGIN { srand(7); print "student,item,correct,skill"
        for (s = 0; s < 80; s++) for (i = 0; i < n; i++) print "s" s ",q" i "," (rand() < 0.6) "," (i % 5 ? "k" i % 2 : "") }'
}
log 5 >"$TMP/old.csv"
log 6 >"$TMP/new.csv"
for name in old new; do
    run "$COHORT" import csv "$TMP/$name.csv" -o "$TMP/$name.h5" || fail "import $name.csv"
done
# shellcheck disable=SC2086
expect_status 0 on 2 "$COHORT" train "data=$TMP/old.h5" $small "run=$TMP/old"
expect_match "^note: items without a skill: 1 of 5, for example 'q0'; they require every ability"
expect_status 0 on 2 "$COHORT" update "$TMP/old" --data "$TMP/new.h5" "run=$TMP/new"
expect_match "^note: items without a skill: 2 of 6, for example 'q0'"
expect_status 0 "$COHORT" predict "$TMP/old" --data "$TMP/new.h5" -o "$TMP/new-p.csv"
expect_status 0 "$COHORT" export "$TMP/new" --tensor q_matrix -o "$TMP/q.csv"
expect_equal "q0,1,1 q1,0,1 q5,1,1" "$(grep '^q[015],' "$TMP/q.csv" | tr '\n' ' ' | sed 's/ $//')" \
    "rows of the Q-matrix"

section "bad input"
printf '1,0,1\n0,1,1\n' >"$TMP/answers.csv"
printf '1,0\n0,1\n' >"$TMP/wrong_q.csv"
expect_status 3 "$COHORT" import matrix "$TMP/answers.csv" --q-matrix "$TMP/wrong_q.csv" -o "$TMP/bad.h5"
expect_match 'the Q-matrix is 2 by 2, but the number of items is 3; expected 3 rows'
printf '1,0.5,0\n0.5,1,0\n0,0,1\n' >"$TMP/three.csv"
printf '1,1.5\n1.5,1\n' >"$TMP/improper.csv"
for case in "three.csv:has 3 rows and 9 numbers; the model has 2 abilities" "improper.csv:not positive definite" \
    "absent.csv:model.prior_correlation: .*absent.csv"; do
    # shellcheck disable=SC2086
    expect_status 1 on 2 "$COHORT" train "data=$TMP/class.h5" $small "run=$TMP/bad" \
        "model.prior_correlation=$TMP/${case%%:*}"
    expect_match "${case#*:}"
done
printf '1,2,3,4,5\n1,2,3,4,5\n1,2,3,4,5\n1,2,3,4,5\n' >"$TMP/odd.csv"
expect_status 3 "$COHORT" import matrix "$TMP/answers.csv" --truth "b=$TMP/three.csv,a=$TMP/odd.csv" -o "$TMP/x.h5"
expect_match 'odd.csv: the table is 4 by 5; expected one row'
expect_status 2 "$COHORT" import matrix "$TMP/answers.csv" --truth "$TMP/odd.csv" -o "$TMP/x.h5"
expect_match 'expected NAME=FILE'
run "$COHORT" import matrix "$TMP/answers.csv" --split none -o "$TMP/answers.h5"
# shellcheck disable=SC2086
train 1 untrue "data=$TMP/answers.h5" train.batch=2 train.block=1
expect_status 1 "$COHORT" inspect "$TMP/untrue" --truth
expect_match 'no truth to compare with'
expect_status 2 "$COHORT" inspect "$TMP/class.h5" --truth
