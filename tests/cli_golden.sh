#!/bin/bash
# Files of yesterday: data sets and checkpoints that earlier versions wrote (tests/golden/v*, made by
# tests/golden/make.sh) are opened, verified, predicted from and continued.
. "$(dirname "$0")/lib.sh"
project=$PWD

# tolerance RUN: how far predictions may be from those of the program that trained the run. `changed` is for
# kinds whose rule of prediction has become another one since: only that there are predictions is checked.
tolerance() {
    case $1 in
    dkt* | rtrbm* | vae* | blend) echo 1e-5 ;; # since v1 products are summed in an order of their own, not BLAS's
    *) echo 1e-6 ;;
    esac
}

# close_to A B TOLERANCE: two files of predictions have the same rows, and the same numbers within the tolerance.
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

for version in v1; do
    mkdir "$TMP/$version" && cp -r "$project/tests/golden/$version/." "$TMP/$version"
    cd "$TMP/$version" || exit 70
    gunzip ./*.h5.gz ./*/*.h5.gz

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
        check "predicts what it predicted" close_to again.csv "$run.csv" "$(tolerance "$run")"
        [ "$run" != blend ] || continue # which is not trained
        epochs=$(sed -n 's/^epochs = //p' "$run/config.ini")
        expect_status 0 "$COHORT" train run="$run" train.epochs=$((epochs + 1))
        expect_match "^continuing $run/last.h5 after epoch $epochs,"
        expect_match "^done: $((epochs + 1)) epochs"
        expect_status 0 "$COHORT" verify "$run"
    done
    cd "$project" || exit 70
done
