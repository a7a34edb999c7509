#!/bin/bash
# Knowledge tracing machines on the command line: the same bits at any number of ranks, with every instruction set,
# and after stops and kills; presets, tables, wrong model.features; nothing learned from random outcomes.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
. tests/lib/truth.sh
RANDOM=${SEED:-$$}
run "$COHORT" simulate grockit --students 300 --items 60 --seed 3 -o "$TMP/tails.h5" || fail "simulate grockit"
run "$COHORT" simulate bkt --students 400 --skills 4 --items 20 --seed 2 -o "$TMP/bkt.h5" || fail "simulate bkt"

# train RANKS RUN WORD...: a run on the class with long tails, unless a word sets other data.
train() {
    local n=$1 run=$2
    shift 2
    run on "$n" "$COHORT" train "data=$TMP/tails.h5" model.kind=ktm "run=$TMP/$run" "$@" || fail "training $run on $n ranks"
}

# sums RUN: the checksums of its two checkpoints.
sums() { (cd "$TMP/$1" && sha256sum last.h5 best.h5) | awk '{ printf "%s ", $1 }'; }

result() { json_of "$TMP/$1/result.json" "${@:2}"; }

section "the same bits"
declare -A words=(
    [lr]='model.preset=bestlr'
    [students]='model.preset=afm model.l2=0.5'
    [many]='model.features=student|item|skill|attempts_item|wins_item:log|fails:by_item|elapsed:bins:by_item train.epochs=4'
    [fm]='model.features=student|item|wins_skill:log model.factors=5 train.epochs=6 train.patience=0'
    [windows]='model.features=student|wins_skill:within=86400:log|wins_skill:within=600:log|attempts:within=3600 model.factors=3 train.epochs=4'
    [wide]='model.features=student|item model.factors=20 model.scale=0.3 train.epochs=3'
)
for case in lr students many fm windows wide; do
    IFS=' ' read -ra list <<<"${words[$case]}"
    list=("${list[@]//|/ }")
    for n in 1 2 3 5; do
        [[ $n -lt 3 || $case == lr || $case == fm || $case == windows ]] || continue
        train $n "$case-$n" "${list[@]}"
        [ $n = 1 ] || expect_equal "$(sums $case-1)" "$(sums $case-$n)" "the checkpoints of 1 and $n ranks, $case"
    done
    for isa in plain avx2 avx512; do
        [ $case = fm ] && COHORT_ISA=$isa run "$COHORT" --version || continue
        COHORT_ISA=$isa train 1 "$case-$isa" "${list[@]}"
        expect_equal "$(sums $case-1)" "$(sums $case-$isa)" "the checkpoints of the best instruction set and of $isa, $case"
    done
done
COHORT_SHARED=no train 3 sent 'model.features=student item wins_skill:log' model.factors=5 train.epochs=6 train.patience=0
expect_equal "$(sums fm-1)" "$(sums sent)" "the checkpoints of 1 rank and of 3 that send"
expect_equal 6 "$(sha256sum "$TMP"/{lr,students,many,fm,windows,wide}-1/last.h5 | cut -d ' ' -f 1 | sort -u | wc -l)" "cases differ"

section "stopped and killed"
long=("data=$TMP/tails.h5" model.kind=ktm 'model.features=student item skill wins:within=3600' model.factors=8 model.tolerance=0
    model.products=6 train.epochs=25 train.patience=0 run.save_minutes=0)
train 1 whole "${long[@]}"
stop 2 USR1 "$TMP/cut" "${long[@]}"
expect_equal 85 "$ENDED" "exit code after USR1"
start 1 "$COHORT" train "${long[@]}" "run=$TMP/cut"
until_says ' ranks?$'
pause 300
kill_job all
finish
train 3 cut "${long[@]}"
expect_match '^continuing'
expect_equal "$(sums whole)" "$(sums cut)" "the checkpoints of a run in one piece and of one in three"

section "presets"
for preset in rasch afm pfa bestlr fm; do
    expect_status 0 "$COHORT" train "data=$TMP/bkt.h5" model.kind=ktm model.preset=$preset "run=$TMP/$preset"
done
# A class in which students learn skills: counts per skill predict better than the skill alone.
train 1 constant "data=$TMP/bkt.h5" model.features=skill
check "pfa is better than the skill ($(result pfa test auc), $(result constant test auc))" \
    awk -v a="$(result pfa test auc)" -v b="$(result constant test auc)" 'BEGIN { exit !(a > b + 0.05) }'
expect_status 0 "$COHORT" evaluate "$TMP/bestlr" --json
expect_number auc '>=' 0.6
for case in fm windows; do
    for n in 1 3; do
        expect_status 0 on $n "$COHORT" predict "$TMP/$case-1" -o "$TMP/p-$n.csv"
    done
    expect_same "$TMP/p-1.csv" "$TMP/p-3.csv"
done

section "time windows"
train 1 das3h model.preset=das3h
expect_status 0 "$COHORT" export "$TMP/das3h" -o "$TMP/das3h.tables"
expect_match '^skill,.*,attempts_skill_log_within3600,wins_skill_log_within3600,.*_within2592000' \
    "$TMP/das3h.tables/table_skills.csv"
# Only items practised less than an hour ago are known: a count over all time cannot tell.
awk 'BEGIN { srand(4); print "student,item,outcome,time"; for (s = 0; s < 150; s++) { time = 1000; last = -9999
    for (t = 0; t < 20; t++) { time += rand() < 0.5 ? 3599 : 3600
        printf "s%d,i,%d,%d\n", s, rand() < (time - last < 3600 ? 0.9 : 0.2), time; last = time } } }' >"$TMP/recent.csv"
run "$COHORT" import csv "$TMP/recent.csv" --student student --item item --outcome outcome --time time --split \
    by-student=60/10/30 -o "$TMP/recent.h5" || fail "import"
train 1 ever "data=$TMP/recent.h5" 'model.features=item attempts_item wins_item:log'
train 1 recent "data=$TMP/recent.h5" 'model.features=item attempts_item:within=3600 wins_item:log'
check "the last hour tells more than all time ($(result recent test auc), $(result ever test auc))" \
    awk -v a="$(result recent test auc)" -v b="$(result ever test auc)" 'BEGIN { exit !(a > 0.8 && b < 0.6) }'

# Columns of attempts: Ada's students are mostly right, Bo's rarely, and load makes answers harder.
section "columns"
awk 'BEGIN { srand(6); split("Ada Bo Cem", names, " "); print "who,what,right,teacher,load"
    for (s = 0; s < 200; s++) for (t = 0; t < 20; t++) {
        k = int(3 * rand()) + 1; load = int(9 * rand()) - 4
        printf "s%d,i%d,%d,%s,%g\n", s, 5 * rand(), rand() < 1 / (1 + exp(load / 4 - 4 + 2 * k)), names[k], load } }' \
    >"$TMP/taught.csv"
# import_taught NAME OPTION...
import_taught() {
    run "$COHORT" import csv "$TMP/$1.csv" --student who --item what --outcome right "${@:2}" -o "$TMP/$1.h5" || fail "import $1"
}
import_taught taught --factors teacher --covariates load --split by-student=60/10/30
taught=("data=$TMP/taught.h5" 'model.features=student item teacher load load:log' model.factors=2 train.patience=0)
for n in 1 2 3 5; do
    train $n "taught-$n" "${taught[@]}" train.epochs=4
    expect_equal "$(sums taught-1)" "$(sums taught-$n)" "the checkpoints of 1 and $n ranks, columns"
done
slow=("${taught[@]}" model.tolerance=0 model.products=4 train.epochs=30 run.save_minutes=0)
train 1 taught "${slow[@]}"
start 2 "$COHORT" train model.kind=ktm "${slow[@]}" "run=$TMP/taught-cut"
until_says ' ranks?$'
pause 300
kill_job all
finish
train 3 taught-cut "${slow[@]}"
expect_equal "$(sums taught)" "$(sums taught-cut)" "the checkpoints of a run in one piece and of one that was killed, columns"
train 1 untaught "data=$TMP/taught.h5" model.features=item
train 1 levels "data=$TMP/taught.h5" 'model.features=item teacher load'
check "teachers tell more than items ($(result levels test auc), $(result untaught test auc))" \
    awk -v a="$(result levels test auc)" -v b="$(result untaught test auc)" 'BEGIN { exit !(a > 0.75 && b < 0.6) }'
expect_status 0 "$COHORT" export "$TMP/levels" -o "$TMP/levels.tables"
check "the table of levels has the teachers in their order" awk -F, '
    $1 == "level" { good = $2 == "weight" } { weight[$1] = $2 }
    END { exit !(good && weight["teacher Ada"] > weight["teacher Cem"] + 2 && weight["teacher Ada"] > weight["teacher Bo"] + 1) }' \
    "$TMP/levels.tables/table_levels.csv"
# Other data number the levels differently: names decide, and unknown levels count as none.
{ head -1 "$TMP/taught.csv"; echo "extra,i1,1,Cem,0"; tail -n +2 "$TMP/taught.csv" | grep '^s1[0-9]*,'; } >"$TMP/other.csv"
sed 's/,Bo,/,Dana,/' "$TMP/other.csv" >"$TMP/unknown.csv"
sed 's/,Bo,/,,/' "$TMP/other.csv" >"$TMP/empty.csv"
{ head -1 "$TMP/taught.csv"; tail -n +2 "$TMP/taught.csv" | grep '^s1[0-9]*,'; } >"$TMP/same.csv"
for name in other unknown empty same; do
    import_taught $name --factors teacher --covariates load
    expect_status 0 "$COHORT" predict "$TMP/levels" --data "$TMP/$name.h5" --split all -o "$TMP/$name.p.csv"
    grep -v '^extra,' "$TMP/$name.p.csv" | cut -d , -f 1-5 >"$TMP/$name.q"
done
expect_same "$TMP/same.q" "$TMP/other.q"
expect_same "$TMP/unknown.q" "$TMP/empty.q"
check "a known level has an effect" test "$(sha256sum <"$TMP/same.q")" != "$(sha256sum <"$TMP/empty.q")"
import_taught same --factors teacher
expect_status 1 "$COHORT" predict "$TMP/levels" --data "$TMP/same.h5" -o "$TMP/x.p.csv"
expect_match "its attempts have no column 'load', which the model uses; import the data with --covariates load=COLUMN"
check "nothing is left behind" test ! -e "$TMP/x.p.csv"
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 += 1600000000 } { print }' "$TMP/taught.csv" >"$TMP/large.csv"
import_taught large --factors a=teacher,a_factors=teacher --covariates load
train 1 large "data=$TMP/large.h5" 'model.features=item load:log'

section "other students"
run "$COHORT" simulate bkt --students 50 --skills 4 --items 20 --seed 3 -o "$TMP/others.h5" || fail "simulate bkt"
expect_status 0 "$COHORT" evaluate "$TMP/afm" --data "$TMP/others.h5" --json
expect_number auc '>' 0.5

# Predictions follow students answer by answer, both new ones and those of the training: to a model with only the
# items all students are the same.
section "students are followed"
run "$COHORT" simulate irt --students 400 --items 40 --skills 1 --model 1pl --seed 9 --split by-student=60/10/30 \
    -o "$TMP/able.h5" || fail "simulate irt"
train 1 items "data=$TMP/able.h5" model.features=item
for preset in rasch fm; do
    train 1 "able-$preset" "data=$TMP/able.h5" model.preset=$preset
    check "$preset knows more than items ($(result able-$preset test auc), $(result items test auc))" \
        awk -v a="$(result able-$preset test auc)" -v b="$(result items test auc)" 'BEGIN { exit !(a > b + 0.05) }'
    expect_status 0 "$COHORT" predict "$TMP/able-$preset" --split all -o "$TMP/able.p.csv"
    for isa in plain avx2 avx512; do
        COHORT_ISA=$isa run "$COHORT" --version || continue
        COHORT_ISA=$isa run "$COHORT" predict "$TMP/able-$preset" --split all -o "$TMP/able-$isa.p.csv" || fail "predict"
        expect_same "$TMP/able.p.csv" "$TMP/able-$isa.p.csv"
    done
done

section "tables"
expect_status 0 "$COHORT" export "$TMP/bestlr" -o "$TMP/tables"
expect_match '^item,weight$' "$TMP/tables/table_items.csv"
expect_match '^skill,weight,wins_skill_log,fails_skill_log$' "$TMP/tables/table_skills.csv"
expect_match '^feature,rows,l2,mean,spread,least,most,factors$' "$TMP/tables/table_features.csv"
expect_equal 21 "$(wc -l <"$TMP/tables/table_items.csv")" "lines of the table of items"
expect_status 0 "$COHORT" help models
expect_match '^ +wins_skill +earlier correct answers at each skill'
expect_match '^ +:decay=X '

section "comparison with the truth"
rasch_class 300 20 6
run "$COHORT" import matrix "$TMP/rasch.csv" --split by-attempt=80/10/10 -o "$TMP/rasch.h5" \
    --truth "b=$TMP/rasch_b.csv,theta=$TMP/rasch_theta.csv" || fail "import"
for n in 1 3; do
    train $n "truth-$n" "data=$TMP/rasch.h5" model.preset=rasch
    expect_status 0 on $n "$COHORT" inspect "$TMP/truth-$n" --truth --json
    output | grep -v "truth-$n\|seconds\|elapsed\|attempts_per" >"$TMP/truth-$n.json"
done
expect_same "$TMP/truth-1.json" "$TMP/truth-3.json"
run "$COHORT" export "$TMP/truth-1" -o "$TMP/truth-tables" || fail "export"
awk -F, 'FILENAME ~ /bias/ { c = $2; next } FNR > 1 { printf "%s,%.9f\n", $1, -(c + $2) }' \
    "$TMP/truth-tables/bias.csv" "$TMP/truth-tables/table_items.csv" >"$TMP/b.csv"
# Predictions list the students in their order.
run "$COHORT" predict "$TMP/truth-1" --split all -o "$TMP/truth.p.csv" || fail "predict"
awk -F, 'NR == FNR { theta[$1] = $2; next } FNR > 1 && !($1 in is) { is[$1]; printf "%s,%s\n", $1, theta[++n] }' \
    "$TMP/truth-tables/student.csv" "$TMP/truth.p.csv" >"$TMP/theta.csv"
expect_status 0 "$COHORT" inspect "$TMP/truth-1" --truth --json
expect_equal "b item minus the sum of the bias and the weight of the item" "$(json truth 0 name) $(json truth 0 of) $(json truth 0 estimate)"
expect_beside 0 "$TMP/rasch_b.csv" "$TMP/b.csv"
expect_number "truth 0 correlation" ">=" 0.98
expect_equal 'theta student the weight of a student with training attempts' \
    "$(json truth 1 name) $(json truth 1 of) $(json truth 1 estimate)"
expect_beside 1 "$TMP/rasch_theta.csv" "$TMP/theta.csv"
expect_number "truth 1 correlation" ">=" 0.8
# The skills of an item are part of its difficulty; students outside the training have no weights.
run "$COHORT" simulate irt --students 200 --items 20 --skills 2 --seed 4 -o "$TMP/two.h5" || fail "simulate"
train 1 two "data=$TMP/two.h5" 'model.features=student item skill attempts'
expect_status 0 "$COHORT" inspect "$TMP/two" --truth
expect_match '^b +item +20 +0\.9'
expect_match '^b of the truth is compared with minus the sum of the bias and the weights of the item and its skills at a first attempt$'
expect_match '^note: theta is not compared: the truth has 2 abilities per student, this ktm has one'
run "$COHORT" simulate irt --students 200 --items 20 --skills 1 --model 1pl --seed 4 -o "$TMP/one.h5" || fail "simulate"
train 1 one "data=$TMP/one.h5" model.preset=rasch
expect_status 0 "$COHORT" inspect "$TMP/one" --truth
expect_match '^theta +training students +160 '
expect_no_match '^theta +test students'
# refuses MESSAGE WORD...: a model that cannot be compared.
refuses() {
    rm -rf "$TMP/apart"
    train 1 apart "data=$TMP/one.h5" train.epochs=2 "${@:2}"
    expect_status 1 "$COHORT" inspect "$TMP/apart" --truth
    expect_match "this ktm has no difficulties and abilities to compare with the truth: .*$1"
}
refuses 'does not name both item and student' model.features=item
refuses 'its features interact' 'model.features=student item' model.factors=2

section "singular designs"
for l2 in 0 1; do
    train 2 "singular-$l2" "data=$TMP/bkt.h5" model.l2=$l2 \
        'model.features=item skill attempts_skill wins_skill fails_skill attempts wins fails wins_skill:shared'
    expect_match '^test +n [0-9]+ +cbd 0\.2'
done

section "data without skills"
awk 'BEGIN { srand(3); print "student,item,outcome"; for (s = 0; s < 40; s++) for (i = 0; i < 9; i++)
    printf "s%d,i%d,%d\n", s, i, rand() < (i + 1) / 11 }' >"$TMP/bare.csv"
run "$COHORT" import csv "$TMP/bare.csv" --student student --item item --outcome outcome -o "$TMP/bare.h5" || fail "import"
for features in 'item wins_item' 'skill wins_skill' 'item skill wins_item wins_skill' 'skill item wins_skill wins_item'; do
    rm -rf "$TMP/bare"
    train 1 bare "data=$TMP/bare.h5" "model.features=$features"
    expect_status 0 "$COHORT" predict "$TMP/bare" --split all -o "$TMP/bare-$((n_bare++)).p.csv"
done
for n in 1 2 3; do
    expect_same "$TMP/bare-0.p.csv" "$TMP/bare-$n.p.csv"
done

section "mistakes"
# mistake FEATURES MESSAGE
mistake() {
    expect_status 1 on 2 "$COHORT" train "data=$TMP/${3:-bkt}.h5" model.kind=ktm "model.features=$1" "run=$TMP/none"
    expect_match "$2"
    expect_equal 1 "$(errors | grep -c '^cohort: ')" "says so once"
    check "nothing is left behind" test ! -e "$TMP/none/last.h5"
}
mistake 'item win_skill' "unknown feature 'win_skill'; did you mean 'wins_skill'"
mistake 'item wins:lag' "unknown modifier 'lag'; did you mean 'log'"
mistake 'item wins:decay=2' "'decay' needs a number from 0 to 1, for example decay=0.8"
mistake 'item wins:l2=much' "'l2' needs a number"
mistake 'item:log' "':log' does not apply to this kind of feature"
mistake 'wins:bins' "':bins' does not apply to this kind of feature"
mistake 'item skill item' "'item' is the same feature as an earlier one"
mistake ' ' 'model.features is empty'
mistake 'item elapsed' 'bkt.h5 has no times; import it with --time, or remove this feature'
mistake 'item wins_skill:within=3600' 'bkt.h5 has no times; import it with --time, or remove within'
for window in 0 -5 0.5 nan inf day '' 1e11 60s; do
    mistake "item wins:within=$window" "'within' needs a whole number of seconds, at least 1, for example within=86400" tails
done
mistake 'item wins:within' "'within' needs a whole number" tails
mistake 'item elapsed:within=60' "':within' does not apply to this kind of feature" tails
mistake 'item wins:witin=60' "unknown modifier 'witin'; did you mean 'within'" tails
mistake 'item wins:within=60:decay=0.5' 'use either decay or within, not both' tails
mistake 'item techer' "unknown feature 'techer'; did you mean 'teacher'" taught
mistake 'item teacher' "unknown feature 'teacher'" bkt
mistake 'item teacher:log' "':log' does not apply to this kind of feature" taught
mistake 'item load:by_item' "':by_item' does not apply to this kind of feature" taught
mistake 'item load' "values of 'load' are as large as 1.6e\+09, but at most 1000 is supported; use load:log" large
mistake 'a a_factors' "'factor_a_factors' and 'factor_a' clash: the weights of one would have the name of the factors of the other" large
mistake 'wins:within=60 wins:within=60' 'is the same feature as an earlier one' tails

# Settings that overfit the training outcomes find nothing in randomly shuffled outcomes.
section "shuffled outcomes"
for split in by-student=60/10/30 by-attempt=60/10/30; do
    run "$COHORT" simulate bkt --students 400 --skills 2 --items 30 --attempts 40 --seed 5 --split $split \
        --shuffle-outcomes -o "$TMP/shuffled.h5" || fail "simulate"
    for features in 'item skill wins:log fails:log wins_skill:log fails_skill:log' 'student item attempts wins_item'; do
        rm -rf "$TMP/chance"
        train 1 chance "data=$TMP/shuffled.h5" "model.features=$features" model.l2=0.1 model.factors=4 \
            model.l2_factors=0.1 model.scale=0.3
        check "AUC $(result chance test auc) of $(result chance test n) attempts is chance" \
            awk -v n="$(result chance test n)" -v auc="$(result chance test auc)" 'BEGIN {
                off = auc - 0.5
                exit !(n > 3000 && off * off < 16 / (12 * n * 0.3 * 0.7)) }'
    done
done
