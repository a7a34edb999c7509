#!/bin/bash
# The mixed model on the command line: against lme4, the same bits with a pinned grid and after stops, and its
# messages about factors and designs it cannot fit.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
. tests/lib/truth.sh
. tests/lib/bits.sh
RANDOM=${SEED:-$$}
run "$COHORT" simulate irt --students 300 --items 40 --skills 2 --model 1pl --missing 0.3 --split none --seed 3 \
    -o "$TMP/irt.h5" || fail "simulate irt"
# Long tails, unknown outcomes, groups, items with any number of skills, items without answers.
run "$COHORT" simulate grockit --students 400 --items 90 --seed 3 -o "$TMP/tails.h5" || fail "simulate grockit"

# train RANKS RUN WORD...: a run on the class with long tails, unless a word sets other data.
train() {
    local n=$1 run=$2
    shift 2
    run on "$n" "$COHORT" train "data=$TMP/tails.h5" model.kind=lme train.epochs=40 "run=$TMP/$run" "$@" ||
        fail "training $run on $n ranks"
}
# points_agree RUN OTHER: whether the n numbers that the likelihood is maximised over agree to 1e-9. The state of the
# search has them in double precision, as pairs of floats: 6 other pairs, these n, and n (n + 2) others. 9 digits are
# enough to know a float.
points_agree() {
    local name
    for name; do
        run "$COHORT" export "$TMP/$name" --tensor search -o "$TMP/$name.csv" || return
    done
    paste -d , "$TMP/$1.csv" "$TMP/$2.csv" | awk -F , '
        function float(x,   unit) {
            for (unit = 2 ^ -23; x * x >= 4 * 2 ^ 46 * unit * unit; unit *= 2) { }
            for (; x != 0 && x * x < 2 ^ 46 * unit * unit; unit /= 2) { }
            return unit * int(x / unit + (x < 0 ? -0.5 : 0.5))
        }
        NR > 7 { d[NR - 7] = float($2) - float($5) + ($3 - $6) }
        END {
            n = int((sqrt(9 + 4 * (NR - 7)) - 3) / 2 + 0.5)
            for (i = 1; i <= n; i++) bad += d[i] ^ 2 > 1e-18
            exit n < 3 || bad > 0
        }'
}
sum() { sha256sum "$TMP/$1/last.h5" | cut -d ' ' -f 1; }

section "the same bits"
all="model.factors=item group skill"
for n in 1 2 3 5; do
    train $n "one-$n" model.grid=1x1 "$all" model.fixed=position
    expect_equal "$(sum one-1)" "$(sum "one-$n")" "the checkpoints of 1 and $n ranks, grid 1x1"
    [ $n != 1 ] || continue
    train $n "two-$n" model.grid=1x2 "$all" model.fixed=position
    expect_equal "$(sum two-2)" "$(sum "two-$n")" "the checkpoints of 2 and $n ranks, grid 1x2"
done
COHORT_SHARED=no train 3 sent model.grid=1x1 "$all" model.fixed=position
expect_equal "$(sum one-1)" "$(sum sent)" "the checkpoints of 1 rank and of 3 that send"

# The last bits depend on the BLAS kernel, which all ranks of a grid must share.
cat >"$TMP/mixed" <<'EOF'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ] && OPENBLAS_CORETYPE=Haswell || OPENBLAS_CORETYPE=Nehalem
export OPENBLAS_CORETYPE
exec "$@"
EOF
chmod +x "$TMP/mixed"
if [ "$(uname -m)" = x86_64 ]; then
    words=("data=$TMP/tails.h5" model.kind=lme "$all" train.epochs=40)
    expect_status 1 on 2 "$TMP/mixed" "$COHORT" train "${words[@]}" model.grid=1x2 "run=$TMP/mixed-two"
    expect_match "rank 0 has OpenBLAS kernels for Haswell, rank 1 for Nehalem"
    expect_status 0 on 2 "$TMP/mixed" "$COHORT" train "${words[@]}" model.grid=1x1 "run=$TMP/mixed-one"
    OPENBLAS_CORETYPE=Haswell run "$COHORT" train "${words[@]}" model.grid=1x1 "run=$TMP/haswell" || fail "training with one kernel"
    expect_equal "$(sum haswell)" "$(sum mixed-one)" "rank 0's kernel decides where the grid is 1x1"
    OPENBLAS_CORETYPE=Haswell run "$COHORT" train "${words[@]}" train.epochs=3 "run=$TMP/kernels" || fail "three epochs"
    OPENBLAS_CORETYPE=Haswell expect_status 0 "$COHORT" train "${words[@]}" train.epochs=4 "run=$TMP/kernels"
    expect_no_match 'continues with those'
    OPENBLAS_CORETYPE=Nehalem expect_status 0 "$COHORT" train "${words[@]}" "run=$TMP/kernels"
    expect_match "trained with OpenBLAS kernels for Haswell and continues with those for Nehalem"
    check "two kernels: tensors agree to 1e-9 or the last bit of a float" bits_near "$TMP" haswell "$TMP" kernels
    check "two kernels: the point of the search agrees to 1e-9" points_agree haswell kernels
fi
train 2 "two-auto" model.grid=2x1 "$all" model.fixed=position
check "two grids: tensors agree to 1e-9 or the last bit of a float" bits_near "$TMP" one-1 "$TMP" two-auto
check "two grids: the point of the search agrees to 1e-9" points_agree one-1 two-auto

section "another grid of ranks"
# grid=auto uses all ranks from order 2000.
run "$COHORT" simulate irt --students 2100 --items 2050 --missing 0.99 --seed 3 -o "$TMP/big.h5" || fail "simulate irt"
words=("data=$TMP/big.h5" model.kind=lme)
for n in 1 2; do
    run on $n "$COHORT" train "${words[@]}" "run=$TMP/big-$n" train.epochs=1 || fail "one epoch on $n ranks"
    expect_match "\"grid\": \"1x$n\"" "$TMP/big-$n/log.jsonl"
    expect_status 0 "$COHORT" report "$TMP/big-$n" -o "$TMP/big.html"
    kernel=$(json_of "$TMP/big-$n/log.jsonl" blas)
    expect_match "reproduces the model bit for bit on the grid of 1x$n ranks and with the OpenBLAS kernels for $kernel that" "$TMP/big.html"
    launch=$([ $n = 1 ] || echo "mpirun -n $n ")
    expect_match "^<pre>OPENBLAS_CORETYPE=$kernel ${launch}cohort train settings.ini data=big.h5 run=runs/again" "$TMP/big.html"
done
expect_no_match 'any number of ranks:' "$TMP/big.html"
expect_status 0 on 2 "$COHORT" train "run=$TMP/big-2" train.epochs=2
expect_no_match 'trained on a grid'
expect_status 0 on 1 "$COHORT" train "run=$TMP/big-2" train.epochs=3
expect_match 'warning: this run was trained on a grid of 1x2 ranks and continues on one of 1x1; .* continue on 2 ranks to keep the bits'
expect_status 0 "$COHORT" report "$TMP/big-2" -o "$TMP/big.html"
expect_match 'reproduces the model to about 1e-9 or the last bit of a float, because it was trained on different grids' "$TMP/big.html"
# Logs of earlier versions name no grid.
sed -i 's/, "grid": "1x1"//' "$TMP/big-1/log.jsonl"
expect_status 0 on 1 "$COHORT" train "run=$TMP/big-1" train.epochs=2
expect_no_match warning
sed -i 's/, "grid": "1x1"//' "$TMP/big-1/log.jsonl"
expect_status 0 "$COHORT" report "$TMP/big-1" -o "$TMP/big.html"
expect_match 'that it was trained with, which its log does not name' "$TMP/big.html"

# Items eliminated, which are redistributed; and a factor of attempts: the classes of some teachers.
awk 'BEGIN { srand(7); print "who,what,right,teacher,room"; for (s = 0; s < 60; s++) { t = int(6 * rand())
    for (i = 0; i < 100; i++) if (rand() < 0.4) { eta = (s % 7) / 4 - 1 + (i % 5) / 2 - 1 + (t - 2.5) / 2
    printf "s%d,i%d,%d,%s,r%d\n", s, i, rand() < 1 / (1 + exp(-eta)), rand() < 0.05 ? "" : "T" t + 7, int(9 * rand()) } } }' \
    >"$TMP/taught.csv"
taught=(--student who --item what --outcome right --factors 'teacher,place=room')
run "$COHORT" import csv "$TMP/taught.csv" "${taught[@]}" --split by-attempt=80/10/10 -o "$TMP/taught.h5" || fail "import"
expect_match 'factor teacher: 6 levels'
expect_no_match 'not used'
expect_status 0 "$COHORT" verify "$TMP/taught.h5"
for n in 1 2 3 5; do
    for unit in student item; do
        train $n "taught-$unit-$n" "data=$TMP/taught.h5" model.grid=1x1 "model.factors=item teacher place" model.eliminate=$unit
        expect_equal "$(sum "taught-$unit-1")" "$(sum "taught-$unit-$n")" "1 and $n ranks, ${unit}s eliminated"
    done
done
expect_match 'items are eliminated; dense matrix of order 75'

section "stopped and continued"
words=("data=$TMP/tails.h5" model.kind=lme model.grid=1x1 "$all" model.fixed=position train.epochs=40)
run "$COHORT" train "${words[@]}" train.epochs=3 "run=$TMP/cut" || fail "three epochs"
expect_match '3 epochs'
run on 2 "$COHORT" train "${words[@]}" "run=$TMP/cut" || fail "the rest"
run "$COHORT" export "$TMP/cut" -o "$TMP/cut.h5" && run "$COHORT" export "$TMP/one-1" -o "$TMP/whole.h5"
check "the tensors of a run that was cut and of one that was not" cmp "$TMP/cut.h5" "$TMP/whole.h5"
words=("data=$TMP/taught.h5" model.kind=lme model.grid=1x1 "model.factors=item teacher place" model.eliminate=item train.epochs=40)
run on 3 "$COHORT" train "${words[@]}" train.epochs=4 "run=$TMP/cut-items" || fail "four epochs"
run on 2 "$COHORT" train "${words[@]}" "run=$TMP/cut-items" || fail "the rest"
run "$COHORT" export "$TMP/cut-items" -o "$TMP/cut.h5" && run "$COHORT" export "$TMP/taught-item-1" -o "$TMP/whole.h5"
check "the same where items are eliminated" cmp "$TMP/cut.h5" "$TMP/whole.h5"
storm 5 "$TMP/storm" "${words[@]}" run.save_minutes=0
expect_equal "$(sum taught-item-1)" "$(sum storm)" "the checkpoints of a run that was killed $N_KILLED times and of one that was not"

section "tables"
run "$COHORT" inspect "$TMP/one-1" || fail "inspect"
expect_match '^student +[0-9.]+ +[0-9.]+$'
expect_match '^group +[0-9.]+ +[0-9.]+$'
expect_match '^position +-?[0-9.e-]+ +[0-9.e-]+'
expect_match '^skill +skill_effect +skill_error'
run "$COHORT" export "$TMP/one-1" -o "$TMP/out" || fail "export"
expect_equal "item,item_effect,item_error,group_effect,group_error,total" "$(head -1 "$TMP/out/table_items.csv")" "columns of items"

section "comparison with the truth"
rasch_class 400 25 5
truth="b=$TMP/rasch_b.csv,theta=$TMP/rasch_theta.csv"
# difficulties NAME, abilities NAME SPLIT: from the exported tables of the run NAME.
difficulties() {
    awk -F, 'FILENAME ~ /fixed/ { if ($1 == "intercept") c = $2; next } FNR > 1 { printf "%s,%.9f\n", $1, -(c + $NF) }' \
        "$TMP/$1/table_fixed.csv" "$TMP/$1/table_items.csv"
}
abilities() {
    run "$COHORT" predict "$TMP/$1" --split "$2" -o "$TMP/split.csv" || fail "predict"
    awk -F, 'NR == FNR { is[$1]; next } FNR > 1 && $1 in is' "$TMP/split.csv" "$TMP/$1/hidden.csv"
}
for split in by-attempt by-student; do
    run "$COHORT" import matrix "$TMP/rasch.csv" --split $split=70/10/20 --truth "$truth" -o "$TMP/$split.h5" || fail "import"
    for n in 1 3; do
        train $n "$split-$n" "data=$TMP/$split.h5" model.grid=1x1
        expect_status 0 on $n "$COHORT" inspect "$TMP/$split-$n" --truth --json
        output | grep -v "$split-$n\|seconds\|elapsed\|attempts_per" >"$TMP/$split-$n.json"
    done
    expect_same "$TMP/$split-1.json" "$TMP/$split-3.json"
    run "$COHORT" export "$TMP/$split-1" -o "$TMP/$split-1" --hidden || fail "export"
    difficulties $split-1 >"$TMP/b.csv"
    abilities $split-1 all >"$TMP/by-attempt.theta"
    abilities $split-1 train >"$TMP/train.theta"
    abilities $split-1 test >"$TMP/test.theta"
    expect_status 0 "$COHORT" inspect "$TMP/$split-1" --truth --json
    expect_equal "b item minus the sum of the intercept and the item's total" "$(json truth 0 name) $(json truth 0 of) $(json truth 0 estimate)"
    expect_beside 0 "$TMP/rasch_b.csv" "$TMP/b.csv"
    expect_number "truth 0 correlation" ">=" 0.98
    expect_number "truth 0 rmse" "<=" 0.25
    expect_equal "theta the student's effect given all shown answers" "$(json truth 1 name) $(json truth 1 estimate)"
    expect_number "truth 1 correlation" ">=" 0.8
    if [ $split = by-attempt ]; then
        expect_equal student "$(json truth 1 of)"
        expect_beside 1 "$TMP/rasch_theta.csv" "$TMP/by-attempt.theta"
    else
        expect_equal 'training students, test students' "$(json truth 1 of), $(json truth 3 of)"
        expect_beside 1 "$TMP/rasch_theta.csv" "$TMP/train.theta"
        expect_beside 3 "$TMP/rasch_theta.csv" "$TMP/test.theta"
    fi
done
expect_status 0 "$COHORT" inspect "$TMP/by-student-1" --truth
expect_match "^b of the truth is compared with minus the sum of the intercept and the item's total$"
expect_equal 1 "$(output | grep -c "^theta of the truth is compared with the student's effect")" "says of theta once"
expect_no_match '^note'
train 1 moved "data=$TMP/by-attempt.h5" model.fixed=position
expect_status 0 "$COHORT" inspect "$TMP/moved" --truth
expect_match "compared with minus the sum of the intercept and the item's total where position = 0$"
train 1 linear "data=$TMP/by-attempt.h5" model.link=identity
expect_status 1 "$COHORT" inspect "$TMP/linear" --truth
expect_match 'this lme has no difficulties and abilities to compare with the truth: its effects are on the outcome itself'
# Two abilities with different discriminations: only difficulties.
run "$COHORT" simulate irt --students 200 --items 20 --skills 2 --seed 4 -o "$TMP/two.h5" || fail "simulate"
train 1 two "data=$TMP/two.h5"
expect_status 0 "$COHORT" inspect "$TMP/two" --truth
expect_match '^b +item +20 +0\.9'
expect_no_match '^theta +'
expect_match '^note: theta is not compared: the truth has 2 abilities per student, this lme has one'
expect_match '^note: a is not compared: its values differ between items'
train 1 skills "data=$TMP/two.h5" model.factors=skill
expect_status 1 "$COHORT" inspect "$TMP/skills" --truth
expect_match 'model.factors does not name item'

section "deviance, AIC and BIC"
# fit RUN WORD: a number of the table of the fit, from JSON.
fit() {
    local c=0
    run "$COHORT" inspect "$TMP/$1" --json || fail "inspect"
    until [ "$(json tables fit columns $c)" = "$2" ]; do
        c=$((c + 1))
        [ $c -lt 10 ] || return 1
    done
    json tables fit rows 0 $((c + 1))
}
# near A B [TOLERANCE]
near() { awk -v a="$1" -v b="$2" -v most="${3:-1e-6}" 'BEGIN { d = a - b; exit !(a != "" && (d < 0 ? -d : d) <= most) }'; }
for case in by-attempt-1:3 by-attempt-3:3 moved:4 linear:4 one-1:6; do
    name=${case%%:*}
    # One parameter per fixed effect and standard deviation, and training attempts with a known outcome.
    run "$COHORT" predict "$TMP/$name" --split train -o "$TMP/split.csv" || fail "predict"
    n=$(awk -F, 'NR > 1 && $4 != ""' "$TMP/split.csv" | wc -l)
    loss=$(tail -1 "$TMP/$name/log.jsonl" | sed 's/.*"loss": \([0-9.]*\).*/\1/')
    deviance=$(fit "$name" deviance)
    expect_equal "${case#*:}.0 $n.0" "$(fit "$name" parameters) $(fit "$name" attempts)" "parameters and attempts of $name"
    check "$name: the deviance $deviance is twice the loss $loss of each of $n attempts" \
        near "$deviance" "$(awk -v loss="$loss" -v n="$n" 'BEGIN { printf "%.9f", 2 * loss * n }')" 1e-4
    check "log-likelihood" near "$(fit "$name" log_likelihood)" "$(awk -v d="$deviance" 'BEGIN { printf "%.9f", -d / 2 }')"
    check "AIC" near "$(fit "$name" aic)" "$(awk -v d="$deviance" -v p="${case#*:}" 'BEGIN { printf "%.9f", d + 2 * p }')"
    check "BIC" near "$(fit "$name" bic)" \
        "$(awk -v d="$deviance" -v p="${case#*:}" -v n="$n" 'BEGIN { printf "%.9f", d + p * log(n) }')"
done
expect_equal "$(fit by-attempt-1 bic)" "$(fit by-attempt-3 bic)" "BIC of 1 and 3 ranks"
run "$COHORT" inspect "$TMP/by-attempt-1" || fail "inspect"
expect_match '^likelihood +deviance +log_likelihood +parameters +aic +bic +attempts$'
expect_match '^Laplace +[0-9]+\.[0-9] +-[0-9]+\.[0-9] +3 +[0-9]+\.[0-9] +[0-9]+\.[0-9] +[0-9]+$'
run "$COHORT" inspect "$TMP/linear" || fail "inspect"
expect_match '^exact +-?[0-9]'
run "$COHORT" report "$TMP/by-attempt-1" -o "$TMP/report.html" || fail "report"
expect_match "<td>$(printf '%.1f' "$(fit by-attempt-1 aic)")</td>" "$TMP/report.html"
expect_match 'minus twice their log-likelihood' "$TMP/report.html"

section "against lme4"
run "$COHORT" train "data=$TMP/irt.h5" model.kind=lme train.epochs=40 "run=$TMP/irt" || fail "training irt"
run "$COHORT" predict "$TMP/irt" --split train -o "$TMP/irt.csv" || fail "predict irt"
run "$COHORT" export "$TMP/irt" -o "$TMP/irt" --hidden || fail "export irt"
(
    Rscript -e 'library(lme4)' >/dev/null 2>&1 || skip "there is no R with lme4 here"
    expect_status 0 Rscript tests/lib/glmer.R "$TMP/irt.csv" "$TMP/irt" "$TMP/irt/hidden.csv"
    check "agrees: $(output)" awk '{ exit !($4 < 0.001 && $6 < 1e-4 && $8 < 0.01 && $10 > 0.99999 && $12 > 0.99999 &&
        $14 < 0.01 && $16 < 0.001 && $18 < 0.001 && $20 < 0.001 && $22 == 0) }' "$LIB_OUT"
    awk -F, '$4 != ""' "$TMP/taught.csv" >"$TMP/whole.csv"
    run "$COHORT" import csv "$TMP/whole.csv" "${taught[@]}" --split none -o "$TMP/whole-all.h5" || fail "import"
    run "$COHORT" train "data=$TMP/whole-all.h5" model.kind=lme "model.factors=item teacher" train.epochs=60 "run=$TMP/lme4" ||
        fail "training with teachers"
    run "$COHORT" predict "$TMP/lme4" --split train -o "$TMP/lme4.csv" || fail "predict"
    run "$COHORT" export "$TMP/lme4" -o "$TMP/lme4" --hidden || fail "export"
    expect_status 0 Rscript tests/lib/glmer.R "$TMP/lme4.csv" "$TMP/lme4" "$TMP/lme4/hidden.csv" "$TMP/whole.csv"
    check "agrees on teachers: $(output)" awk '{ exit !($4 < 0.001 && $6 < 0.001 && $8 < 0.01 && $10 > 0.99999 && $12 > 0.99999 &&
        $14 < 0.01 && $16 < 0.001 && $18 < 0.001 && $20 < 0.001 && $22 == 0 && $24 > 0.99999) }' "$LIB_OUT"
)

section "factors of attempts"
for unit in student item; do
    run "$COHORT" export "$TMP/taught-$unit-1" -o "$TMP/taught-$unit" || fail "export"
    expect_match '^teacher,[0-9.]+,[0-9.]+$' "$TMP/taught-$unit/table_spreads.csv"
    expect_match '^teacher T12,-?[0-9.]+,[0-9.]+$' "$TMP/taught-$unit/table_levels.csv"
    expect_equal 15 "$(grep -c '^\(teacher\|place\) ' "$TMP/taught-$unit/table_levels.csv")" "levels"
done
for table in spreads fixed items levels; do
    check "tables of $table agree, whichever is eliminated" awk -F, 'NR == FNR { for (i = 2; i <= NF; i++) a[FNR, i] = $i; next }
        FNR > 1 { for (i = 2; i <= NF; i++) if (($i - a[FNR, i]) ^ 2 > 1e-8) exit 1 }' \
        "$TMP/taught-student/table_$table.csv" "$TMP/taught-item/table_$table.csv"
done
check "teachers stand in the order of their classes" awk -F '[, ]' '$1 == "teacher" { if ($3 < last - 0.2) exit 1; last = $3 }
    BEGIN { last = -9 }' "$TMP/taught-student/table_levels.csv"
# Other data number the levels differently and have one that the model does not know.
awk -F, 'NR == 1 || $4 != "T9"' "$TMP/taught.csv" | sed 's/,T8,/,Nobody,/' >"$TMP/fewer.csv"
for name in taught fewer; do
    run "$COHORT" import csv "$TMP/$name.csv" "${taught[@]}" --split none -o "$TMP/$name-all.h5" || fail "import"
    run "$COHORT" predict "$TMP/taught-item-1" --data "$TMP/$name-all.h5" --split train -o "$TMP/$name.p.csv" || fail "predict"
done
check "levels are known by their names, and unknown ones have no effect" awk -F, 'FNR == 1 { file++ }
    file == 1 && $4 == "T8" { eighth[$1] } file == 1 && $4 == "T9" { ninth[$1] } file == 2 { p[$1, $2] = $5 }
    file == 3 && !($1 in ninth) { if ($1 in eighth) changed += p[$1, $2] != $5; else { same += p[$1, $2] == $5; other += p[$1, $2] != $5 } }
    END { exit !(changed > 50 && same > 500 && other == 0) }' "$TMP/taught.csv" "$TMP/taught.p.csv" "$TMP/fewer.p.csv"
run "$COHORT" import csv --train "$TMP/taught.csv" --student who --item what --outcome right --split none -o "$TMP/bare.h5"
expect_status 1 "$COHORT" predict "$TMP/taught-item-1" --data "$TMP/bare.h5" -o "$TMP/p.csv"
expect_match "its attempts have no column 'teacher', which the model uses; import the data with --factors teacher=COLUMN"
import_refuses() {
    local status=$1 pattern=$2
    shift 2
    expect_status "$status" "$COHORT" import csv "$TMP/taught.csv" --student who --item what --outcome right "$@" -o "$TMP/x.h5"
    expect_match "$pattern"
    check "nothing is left behind" test ! -e "$TMP/x.h5"
}
import_refuses 1 "no column 'techer' for --factors" --factors techer
import_refuses 1 "the name 'item' is reserved" --factors item=teacher
import_refuses 1 "two covariates or factors are called 'teacher'" --factors teacher,teacher=room
import_refuses 1 "'my class' cannot be a name" --factors 'my class=teacher'
import_refuses 1 'cannot be a name in models' --factors $'my\nclass=teacher'
expect_status 0 "$COHORT" import csv "$TMP/taught.csv" --student who --item what --outcome right \
    --factors a=teacher,a_error=teacher,item_error=teacher -o "$TMP/errors.h5"
for factors in 'a a_error' 'item a_error a'; do
    expect_status 1 "$COHORT" train "data=$TMP/errors.h5" model.kind=lme "model.factors=$factors" "run=$TMP/bad"
    expect_match "the effects of 'a_error' would have the same name as the errors of 'a'; import it under another name"
done
expect_status 0 "$COHORT" train "data=$TMP/errors.h5" model.kind=lme "model.factors=item item_error" train.epochs=2 "run=$TMP/errors"
awk -F, '{ print $1 "," $2 "," $3 "," (NR == 1 ? $4 : "") }' "$TMP/taught.csv" >"$TMP/empty.csv"
expect_status 3 "$COHORT" import csv "$TMP/empty.csv" --student who --item what --outcome right --factors teacher -o "$TMP/x.h5"
expect_match 'all cells of the factor teacher are empty'
expect_status 1 "$COHORT" train "data=$TMP/taught.h5" model.kind=lme model.fixed=teacher "run=$TMP/bad"
expect_match "'teacher' is not a covariate of the data; choices: position, practice"
awk 'BEGIN { print "student,item,outcome"; for (s = 0; s < 12; s++) for (i = 0; i < 6; i++) printf "s%d,i%d,%d\n", s, i, i % 2 }' >"$TMP/alike.csv"
expect_status 0 "$COHORT" import csv "$TMP/alike.csv" --split none -o "$TMP/alike.h5"
expect_status 4 "$COHORT" train "data=$TMP/alike.h5" model.kind=lme model.link=identity "run=$TMP/alike"
expect_match 'the factors explain every outcome'
expect_status 1 "$COHORT" train "data=$TMP/taught.h5" model.kind=lme model.factors=teacher model.eliminate=item "run=$TMP/bad"
expect_match 'items are not among model.factors'

section "designs that cannot be fitted"
refuse() {
    local pattern=$1
    shift
    expect_status 1 on "$1" "$COHORT" train "data=$TMP/irt.h5" model.kind=lme "run=$TMP/bad" "${@:2}"
    expect_match "$pattern"
    rm -rf "$TMP/bad"
}
refuse "'pupil' is not a factor of the data; choices: item, group, skill" 1 model.factors=pupil
refuse "'item' twice" 1 "model.factors=item item"
refuse 'model.factors names student, but students always have random effects' 1 "model.factors=student item"
refuse 'model.factors is empty' 1 model.factors=
refuse 'have no groups; import them with --group' 1 "model.factors=item group"
refuse "'age' is not a covariate of the data; choices: position, practice \\(add cov" 1 model.fixed=age
refuse "model.fixed names 'position' twice" 1 "model.fixed=position position"
refuse "'practice' is a linear combination of the fixed effects before it.* \(a singular design\)" 2 model.fixed=practice
refuse 'model.grid = 2x2 needs 4 ranks, but there are 2' 2 model.grid=2x2
refuse 'model.grid = wide is not a grid of ranks' 1 model.grid=wide

section "an item without answers"
printf 'student,item,outcome\na,x,1\na,y,0\nb,x,0\nb,y,1\nc,x,1\nc,y,1\nd,z,1\n' >"$TMP/few.csv"
run "$COHORT" import csv --train "$TMP/few.csv" --student student --item item --outcome outcome --split none \
    -o "$TMP/few.h5" || fail "import"
sed -i '$d' "$TMP/few.csv"
printf 'student,item,outcome\nd,z,1\n' >"$TMP/other.csv"
run "$COHORT" import csv --train "$TMP/few.csv" --test "$TMP/other.csv" --student student --item item \
    --outcome outcome -o "$TMP/few.h5" || fail "import"
expect_status 0 "$COHORT" train "data=$TMP/few.h5" model.kind=lme train.epochs=40 "run=$TMP/few"
expect_match 'items without a training attempt: 1 of 3'
run "$COHORT" predict "$TMP/few" --split test -o "$TMP/few.p.csv" || fail "predict"
expect_match '^d,z,,1,0\.[0-9]+,test,item,1,.*other.csv$' "$TMP/few.p.csv"

section "covariates"
awk 'BEGIN { srand(5); print "who,what,right,load,twice,when"; for (s = 0; s < 150; s++) for (i = 0; i < 12; i++) {
    x = int(1000 * rand()) / 1000 - 0.5; eta = (s % 7) / 3 - 1 + (i % 5) / 2 - 1 + 2 * x
    printf "s%d,i%d,%d,%.4f,%.4f,%d\n", s, i, rand() < 1 / (1 + exp(-eta)), x, 2 * x + 1, 100 - (i * 7) % 12 } }' \
    >"$TMP/load.csv"
columns=(--student who --item what --outcome right --time when --split by-student=80/10/10)
run "$COHORT" import csv "$TMP/load.csv" "${columns[@]}" --covariates load,double=twice -o "$TMP/load.h5" ||
    fail "import with covariates"
run "$COHORT" import csv "$TMP/load.csv" "${columns[@]}" -o "$TMP/plain.h5" || fail "import without"
expect_status 0 "$COHORT" verify "$TMP/load.h5"
for n in 1 3; do
    run on $n "$COHORT" train "data=$TMP/load.h5" model.kind=lme model.fixed=load model.grid=1x1 train.epochs=40 \
        "run=$TMP/load-$n" || fail "training with a covariate on $n ranks"
done
expect_equal "$(sum load-1)" "$(sum load-3)" "the checkpoints of 1 and 3 ranks, with a covariate"
run "$COHORT" inspect "$TMP/load-1" || fail "inspect"
check "the effect of the covariate is near 2: $(output | grep '^load')" \
    awk '$1 == "load" { exit !($2 > 1.5 && $2 < 2.5) }' "$LIB_OUT"
expect_status 1 "$COHORT" train "data=$TMP/load.h5" model.kind=lme "model.fixed=load double" "run=$TMP/bad"
expect_match "'double' is a linear combination of the fixed effects before it"
expect_status 1 "$COHORT" predict "$TMP/load-1" --data "$TMP/plain.h5" -o "$TMP/p.csv"
expect_match "its attempts have no column 'load', which the model uses; import the data with --covariates load=COLUMN"
expect_status 1 "$COHORT" import csv "$TMP/load.csv" "${columns[@]}" --covariates lod -o "$TMP/x.h5"
expect_match 'lod'
sed 's/^s3,i3,\([01]\),[^,]*/s3,i3,\1,much/' "$TMP/load.csv" >"$TMP/words.csv"
expect_status 3 "$COHORT" import csv "$TMP/words.csv" "${columns[@]}" --covariates load -o "$TMP/x.h5"
expect_match "covariate load is 'much', not a number"

# The same covariate in other units and with another zero: the same model, in that unit.
awk -F, 'NR == 1 { print $0 ",date,tiny" } NR > 1 { printf "%s,%.0f,%.12g\n", $0, 1.5e9 + 1e6 * $4, 1e-7 * $4 }' "$TMP/load.csv" \
    >"$TMP/units.csv"
run "$COHORT" import csv "$TMP/units.csv" "${columns[@]}" --covariates load,date,tiny -o "$TMP/units.h5" || fail "import"
for name in load date tiny; do
    for n in 1 3; do
        run on $n "$COHORT" train "data=$TMP/units.h5" model.kind=lme model.fixed=$name model.grid=1x1 train.epochs=40 \
            "run=$TMP/units-$name-$n" || fail "training with $name on $n ranks"
        expect_match ', converged'
    done
    expect_equal "$(sum "units-$name-1")" "$(sum "units-$name-3")" "the checkpoints of 1 and 3 ranks, with $name"
    run "$COHORT" export "$TMP/units-$name-1" -o "$TMP/units-$name" || fail "export"
    run "$COHORT" predict "$TMP/units-$name-1" --split test -o "$TMP/units-$name.p.csv" || fail "predict"
done
# effect NAME COLUMN: of the covariate, from the table of fixed effects.
effect() { awk -F, -v name="$1" -v c="$2" '$1 == name { print $c }' "$TMP/units-$1/table_fixed.csv"; }
for c in 2 3 4; do
    check "column $c: $(effect load $c), $(effect date $c), $(effect tiny $c)" awk -v a="$(effect load $c)" \
        -v b="$(effect date $c)" -v d="$(effect tiny $c)" -v c=$c 'BEGIN { if (c < 4) { b *= 1e6; d *= 1e-7 }
            exit !((b / a - 1) ^ 2 < 1e-6 && (d / a - 1) ^ 2 < 1e-6) }'
done
for name in date tiny; do
    check "predictions with $name are those with load" awk -F, 'NR == FNR { p[$1, $2] = $5; next }
        FNR > 1 && (p[$1, $2] - $5) ^ 2 > 1e-6 { exit 1 }' "$TMP/units-load.p.csv" "$TMP/units-$name.p.csv"
done

section "a standard deviation of zero"
awk 'BEGIN { print "student,item,outcome"; for (s = 0; s < 60; s++) for (i = 0; i < 6; i++)
    printf "s%d,i%d,%d\n", s, i, (s + i) % 2 }' >"$TMP/flat.csv"
run "$COHORT" import csv --train "$TMP/flat.csv" --student student --item item --outcome outcome --split none \
    -o "$TMP/flat.h5" || fail "import"
expect_status 0 on 2 "$COHORT" train "data=$TMP/flat.h5" model.kind=lme train.epochs=40 "run=$TMP/flat"
expect_match '^note: the standard deviation of student effects is zero: in these data they differ no more than by chance'
expect_match '^note: the standard deviation of item effects is zero'
expect_equal 2 "$(errors | grep -c 'the standard deviation of')" "standard deviations of zero"
run "$COHORT" inspect "$TMP/flat" || fail "inspect"
expect_match '^student +0 +0$'

section "Eedi"
data=../shared/data/eedi
[ -f $data/train_data.csv.gz ] || skip "../shared/data is not here"
run "$COHORT" import csv --train $data/train_data.csv.gz --valid $data/valid_data.csv --test $data/test_data.csv \
    --student user_id --item question_id --outcome is_correct --withheld -o "$TMP/eedi.h5" || fail "import"
run on 2 "$COHORT" train jobs/lme_eedi.ini "data=$TMP/eedi.h5" "run=$TMP/eedi" || fail "training"
run cat "$TMP/eedi/result.json"
expect_number "test auc" ">=" 0.776
