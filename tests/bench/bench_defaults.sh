#!/bin/bash
# Without any settings: the scores of every kind with its defaults, and of `cohort auto`, on the public data of
# ../shared/data. In short: on a simulated class alone.
#
#     make bench PATTERN=defaults
#     DEFAULTS_DATA='eedi lsat6' DEFAULTS_KINDS='ktm rbm' make bench PATTERN=defaults     only these
#     DEFAULTS_AUTO='eedi'       which data `cohort auto --minutes 10` gets, on 2 ranks
set -eu
COHORT=${COHORT:-build/cohort}
case $COHORT in /*) ;; *) COHORT=$PWD/$COHORT ;; esac
shared=$PWD/../shared/data
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
cd "$TMP"

# make DATA: imports a data set with its published split.
make() {
    case $1 in
    a09) "$COHORT" import three-line --train "$shared/assist2009/assist2009_updated_train1.csv.gz" \
        --valid "$shared/assist2009/assist2009_updated_valid1.csv.gz" \
        --test "$shared/assist2009/assist2009_updated_test.csv.gz" -o a09.h5 ;;
    statics) "$COHORT" import three-line --train "$shared/statics/STATICS_train1.csv.gz" \
        --valid "$shared/statics/STATICS_valid1.csv" --test "$shared/statics/STATICS_test.csv.gz" \
        --q-matrix "$shared/statics/Qmatrix.csv.gz" -o statics.h5 ;;
    synthetic5) "$COHORT" import three-line --train "$shared/synthetic5/naive_c5_q50_s4000_v0_train1.csv.gz" \
        --valid "$shared/synthetic5/naive_c5_q50_s4000_v0_valid1.csv" \
        --test "$shared/synthetic5/naive_c5_q50_s4000_v0_test.csv.gz" -o synthetic5.h5 ;;
    eedi) "$COHORT" import csv --train "$shared/eedi/train_data.csv.gz" --valid "$shared/eedi/valid_data.csv" \
        --test "$shared/eedi/test_data.csv" --student user_id --item question_id --outcome is_correct --withheld \
        -o eedi.h5 ;;
    ml2p) "$COHORT" import matrix "$shared/ml2p/responses.csv.gz" --q-matrix "$shared/ml2p/q_matrix.csv" \
        --split by-student=70/10/20 -o ml2p.h5 ;;
    lsat6) "$COHORT" import matrix "$shared/irt/LSAT6_1000x5.csv" --split by-student=70/15/15 -o lsat6.h5 ;;
    fraction) "$COHORT" import matrix "$shared/irt/fraction_subtraction_536x20.csv" \
        --q-matrix "$shared/irt/fraction_subtraction_Q_20x8.csv" --split by-student=70/15/15 -o fraction.h5 ;;
    pid) "$COHORT" import four-line "$shared"/assist2009_pid/fold{3,4,5}.csv.gz "$shared/assist2009_pid/leftover.csv.gz" \
        --valid "$shared/assist2009_pid/fold2.csv.gz" --test "$shared/assist2009_pid/fold1.csv.gz" -o pid.h5 ;;
    chorales) "$COHORT" import sequences --train "$shared/chorales/JSB_Chorales_train.txt.gz" \
        --valid "$shared/chorales/JSB_Chorales_valid.txt" --test "$shared/chorales/JSB_Chorales_test.txt" --items 88 \
        -o chorales.h5 ;;
    class) "$COHORT" simulate irt --students 200 --items 20 --skills 2 --seed 1 -o class.h5 ;;
    esac >log 2>&1
}

data=${DEFAULTS_DATA:-a09 statics synthetic5 eedi ml2p lsat6 fraction pid chorales} automatic=${DEFAULTS_AUTO:-a09 statics eedi}
if [ -n "${BENCH_SHORT:-}" ]; then
    data=class automatic=
elif [ ! -d "$shared" ]; then
    echo "skipped: the public data are not in ../shared/data"
    exit 0
fi
kinds=${DEFAULTS_KINDS:-average bkt lme vae rbm ktm rtrbm dkt}

echo "defaults: test log-loss minus that of item means, and AUC"
printf '%-10s' data
# shellcheck disable=SC2086
printf '  %16s' $kinds
echo
for d in $data; do
    make "$d"
    printf '%-10s' "$d"
    for kind in $kinds; do
        "$COHORT" train "data=$d.h5" "run=$d-$kind" "model.kind=$kind" >log 2>&1
        sed -n 's/^test log-loss \([0-9.]*\); item means have \([0-9.]*\),.*/\1 \2/p;s/^test .*  auc \([0-9.]*\) .*/\1/p' log |
            paste -sd ' ' | awk '{ printf "  %+9.4f %6.4f", $1 - $2, $3 }'
    done
    echo
done
for d in $automatic; do
    [ -e "$d.h5" ] || make "$d"
    start=$EPOCHREALTIME
    mpirun -n 2 "$COHORT" auto "$d.h5" "run=$d-auto" --minutes 10 >log 2>&1
    awk -v d="$d" -v s="$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')" -F , \
        '$2 == "blend" { printf "auto on %s: log-loss %.5f, AUC %.4f in %.0f s on 2 ranks\n", d, $4, $5, s }' \
        "$d-auto/leaderboard.csv"
    "$COHORT" evaluate "$d-auto/best" --skip-first 2>/dev/null | sed -n 's/^\(blend, excl[^0-9]*\).*/&/p'
done
