#!/bin/bash
# Sweeps: what is lost to handing out 500 short trials on 2 ranks; and what successive halving costs and
# finds beside the whole grid of its example.
set -eu
COHORT=${COHORT:-build/cohort}
TMP=$(mktemp -d)
epochs=27 rungs=4 students=3000 hidden="{5, 15, 45}" copies="{1, 2, 3}" scale="{0.001, 0.01, 0.1}"
if [ -n "${BENCH_SHORT:-}" ]; then
    epochs=3 rungs=2 students=100 hidden="{3, 5}" copies=1 scale=0.01 SWEEP_EPOCHS=1 SWEEP_TRIALS=6
fi
trap 'rm -rf "$TMP"' EXIT
"$COHORT" simulate irt --students $students --items 60 --skills 3 --seed 1 --split by-student=70/15/15 \
    -o "$TMP/class.h5" 2>"$TMP/log"

# seconds_of DIRECTORY: what the trials say they took, together.
seconds_of() { cat "$1"/trials/*/rung-*.json | sed -n 's/.*"seconds": \([0-9.e+-]*\).*/\1/p' | awk '{ s += $1 } END { print s }'; }

cat >"$TMP/short.ini" <<END
[data]
file = $TMP/class.h5
[model]
kind = rbm
hidden = 20
[optimizer]
rate = log(1e-4, 1e-2)
[train]
epochs = ${SWEEP_EPOCHS:-5}
batch = 100
[sweep]
design = halton
trials = ${SWEEP_TRIALS:-500}
END
start=$EPOCHREALTIME
mpirun -n 2 "$COHORT" sweep "$TMP/short.ini" "run=$TMP/short" >"$TMP/log" 2>&1
awk -v wall="$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')" -v busy="$(seconds_of "$TMP/short")" \
    -v n="${SWEEP_TRIALS:-500}" 'BEGIN {
        printf "%d trials of %.3f s on 2 ranks: %.1f s, of which %.1f %% lost to handing out\n",
               n, busy / n, wall, 100 * (1 - busy / (2 * wall)) }'

# The example: 81 settings of the RBM, by the whole grid (81 trials of 27 epochs) and by halving (81 trials
# of 2 epochs, 32 of 4, 12 of 11, 5 of 27).
cat >"$TMP/example.ini" <<END
[data]
file = $TMP/class.h5
[model]
kind = rbm
hidden = $hidden
copies = $copies
scale = $scale
start = log_odds
[optimizer]
rate = 0.0003
decay = {0.001, 0.01, 0.1}
[train]
epochs = $epochs
batch = 100
monitor = cbd
END
mpirun -n 2 "$COHORT" sweep "$TMP/example.ini" "run=$TMP/grid" >"$TMP/log" 2>&1
mpirun -n 2 "$COHORT" sweep "$TMP/example.ini" "run=$TMP/halving" sweep.rungs=$rungs sweep.factor=2.5 >"$TMP/log" 2>&1
# best DIRECTORY: the winner's validation CBD
best() { awk -F, 'NR == 1 { for (c = 1; c <= NF; c++) if ($c == "valid_cbd") k = c } NR == 2 { print $k }' "$1/leaderboard.csv"; }
# epochs_of DIRECTORY: trained, over all trials
epochs_of() { awk -F, 'NR > 1 { s += $5 } END { print s }' "$1/leaderboard.csv"; }
awk -v a="$(best "$TMP/grid")" -v b="$(best "$TMP/halving")" -v m="$(epochs_of "$TMP/grid")" -v n="$(epochs_of "$TMP/halving")" \
    'BEGIN { printf "halving: valid CBD %.5f beside %.5f of the whole grid (%+.2f %%), at %.0f %% of its epochs\n",
             b, a, 100 * (b / a - 1), 100 * n / m }'
