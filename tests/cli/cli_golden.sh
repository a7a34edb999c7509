#!/bin/bash
# Old files: data sets and checkpoints written by earlier versions (tests/golden/v*, made by tests/golden/make.sh) can
# be opened, verified, used for predictions and continued.
. "$(dirname "$0")/../lib/lib.sh"
project=$PWD

# tolerance VERSION/RUN: how far predictions may be from those of the program that trained the run. `changed` is for
# kinds that predict differently since then: only the presence of predictions is checked.
tolerance() {
    case $1 in
    # since v1 products have a summation order of their own, not that of the BLAS
    v1/dkt* | v1/rtrbm* | v1/vae* | v1/blend) echo 1e-5 ;;
    # and ktm computes a student's weights from the attempts shown before, instead of using the trained ones
    v1/ktm_rasch | v1/ktm_das3h | v1/ktm_fm) echo changed ;;
    *) echo 1e-6 ;;
    esac
}

# close_to A B TOLERANCE: two prediction files have the same rows, and the same numbers within the tolerance.
close_to() {
    paste -d, "$1" "$2" | awk -F, -v most="$3" '
        NR == 1 { for (n = NF / 2; n > 0 && $n !~ /^(probability|prediction)$/; n--) { } }
        NR > 1 {
            for (i = 1; i <= NF / 2; i++)
                if (i != n && $i != $(i + NF / 2)) { print "row " NR " is of another attempt"; exit bad = 1 }
            d = $n - $(n + NF / 2)
            if (!($n > 0 && $n < 1) || (most != "changed" && (d > most + 0 || -d > most + 0))) {
                print "row " NR ": " $n " instead of " $(n + NF / 2)
                exit bad = 1
            }
        }
        END { exit bad || NR < 2 }'
}

for version in tests/golden/v*/; do
    version=$(basename "$version")
    mkdir "$TMP/$version" && cp -r "$project/tests/golden/$version/." "$TMP/$version"
    cd "$TMP/$version" || exit 70
    gunzip ./*.h5.gz ./*/*.h5.gz
    touch numerics
    grep '^    {"' "$project/src/learn/numerics.c" | grep -vxFf numerics >since

    section "$version: data sets"
    expect_status 0 "$COHORT" verify student.h5 attempt.h5 truth.h5
    for data in student attempt truth; do
        expect_status 0 "$COHORT" inspect "$data.h5"
    done
    expect_status 0 "$COHORT" inspect attempt.h5 --json
    expect_equal "24 7 2 2 194" "$(json students) $(json items) $(json skills) $(json groups) $(json attempts)"

    for run in */; do
        run=${run%/}
        section "$version: $run"
        expect_status 0 "$COHORT" verify "$run"
        expect_status 0 "$COHORT" predict "$run" -o again.csv
        check "predicts what it predicted" close_to <(cut -d, -f1-5 again.csv) "$run.csv" "$(tolerance "$version/$run")"
        [ "$run" != blend ] || continue # which is not trained
        epochs=$(sed -n 's/^epochs = //p' "$run/config.ini")
        expect_status 0 "$COHORT" train run="$run" train.epochs=$((epochs + 1))
        expect_match "^continuing $run/last.h5 after epoch $epochs,"
        expect_match "^done: $((epochs + 1)) epochs"
        kind=${run%%_*}
        note="note: $run was started by a version of cohort whose arithmetic for $kind differed \(.*\); the result may differ in bits"
        if grep -q "^    {\"$kind\", \"\"," since; then # whatever the settings
            expect_match "$note"
            run "$COHORT" train run="$run" train.epochs=$((epochs + 2)) || fail "a second time"
            expect_match "$note"
        else
            expect_no_match "differed"
        fi
        expect_status 0 "$COHORT" verify "$run"
    done

    section "$version: skills that were not stored"
    expect_status 0 "$COHORT" import csv answers.csv --student student --item item --outcome correct --time time --skills none -o bare.h5
    expect_status 0 "$COHORT" predict rbm --data bare.h5 -o again.csv
    if [ "$version" = v1 ]; then # the skills of items
        gunzip -c "$project/tests/golden/v1/ktm_pfa/last.h5.gz" >pfa.h5
        expect_status 1 "$COHORT" predict pfa.h5 --data bare.h5 -o never.csv
        expect_match "bare.h5: its items have no skills, and an earlier version of cohort stored the model without them; import"
        check "nothing is written" test ! -e never.csv
        expect_status 0 "$COHORT" predict pfa.h5 --data student.h5 -o again.csv
        # ktm_pfa was continued above and has them by now
        expect_status 0 "$COHORT" predict ktm_pfa --data bare.h5 -o again.csv
    fi
    cd "$project" || exit 70
done

section 'trials that another version began'
cd "$TMP/v2" || exit 70
sweep=("$COHORT" sweep model.kind=ktm model.preset=pfa data=student.h5 'train.seed={1, 2}' train.epochs=4 train.batch=6
    train.block=2 optimizer.gradient=sum run=sweep)
run "${sweep[@]}" || fail "a sweep"
expect_no_match 'other arithmetic'
trial=$(grep -l '^seed = 1$' sweep/trials/*/config.ini)
trial=${trial%/config.ini}
rm -f "$trial"/{rung-1,result}.json "$trial"/{best,previous}.h5 "$trial/log.jsonl"
gunzip -c "$project/tests/golden/v2/ktm_pfa/last.h5.gz" >"$trial/last.h5"
expect_status 0 "${sweep[@]}"
expect_match '^1 trial trained'
expect_match '^note: 1 of them was started by a version of cohort with other arithmetic; the results may differ in bits'

run /usr/bin/python3 -c 'import numpy, h5py' || skip "there is no python3-h5py to change files with"
change() { run /usr/bin/python3 "$project/tests/lib/change_h5.py" "$@" || fail "change $*"; }

section 'a run of a newer version'
cp -r "$project/tests/golden/v2/dkt" later && gunzip later/*.gz
change later/last.h5 numerics=99
newer='^warning: later/last.h5: the run was started by a newer version of cohort, whose arithmetic for dkt differs'
expect_status 0 "$COHORT" predict later/last.h5 --data student.h5 -o again.csv
expect_match "$newer"
expect_status 0 "$COHORT" train run=later train.epochs=20
expect_match "$newer"
expect_equal 1 "$(grep -c 'newer version of cohort' "$LIB_ERR")" 'said once'

section 'a run with huge parameters'
cp -r vae huge
change huge/last.h5 parameters/encoder_output=1e30
expect_status 0 "$COHORT" report huge/last.h5 --data student.h5 --figures figures -o huge.html
map=(figures/*wright-map*.csv)
expect_equal "$(awk -F, '$1 == "students" && $2 < $3 && $5 >= 0' "${map[0]}" | wc -l)" "$(grep -c '^students,' "${map[0]}")" rows
check 'students are in them' awk -F, '$1 == "students" { n += $5 } END { exit n == 0 }' "${map[0]}"

section 'a changed data set'
cp "$TMP/v1/student.h5" changed.h5 && change changed.h5 withheld=1
expect_status 3 "$COHORT" verify changed.h5
expect_match 'changed.h5: the attribute withheld contradicts the marks' "$LIB_OUT"
cp "$TMP/v1/attempt.h5" changed.h5 && change changed.h5 withheld=0
expect_status 3 "$COHORT" train model.kind=bkt data=changed.h5 run=never
cp student.h5 changed.h5 && change changed.h5 withheld=1
expect_status 3 "$COHORT" verify changed.h5
expect_status 0 "$COHORT" verify truth.h5
expect_match 'truth.h5: ok, a data set, without a digest of /truth' "$LIB_OUT"
expect_status 0 "$COHORT" import csv answers.csv --student student --item item --outcome correct --time time -o rows.h5
change rows.h5 origin_digest=none
expect_status 3 "$COHORT" verify rows.h5
expect_match 'rows.h5: the attribute origin_digest is missing: the file is damaged or was changed' "$LIB_OUT"
expect_status 0 "$COHORT" simulate irt --students 30 --items 6 --seed 1 -o class.h5
expect_status 0 "$COHORT" train model.kind=ktm model.preset=rasch data=class.h5 run=rasch train.epochs=2
expect_status 0 "$COHORT" inspect rasch --truth
expect_no_match 'digest in this data set'
change class.h5 truth/b=negative
expect_status 3 "$COHORT" verify class.h5
expect_match 'class.h5: /truth does not match its stored digest' "$LIB_OUT"
expect_status 3 "$COHORT" inspect rasch --truth
change class.h5 truth/b=negative truth_digest=none
expect_status 0 "$COHORT" inspect rasch --truth
expect_match '^note: the truth has no digest in this data set of an earlier version'
