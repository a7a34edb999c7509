#!/bin/bash
# A one-minute tour: simulates a class, trains a model on two ranks, and shows its score, its learning curve and a report.
# `make demo` builds the program and calls this. COHORT is the program, DEMO the directory for the results.
set -eu
cd "$(dirname "$0")/.."
. tests/lib/mpi.sh
COHORT=${COHORT:-build/cohort}
DEMO=${DEMO:-build/demo}
rm -rf "$DEMO"
mkdir -p "$DEMO"

say() { printf '\n%s\n' "$@"; }
show() {
    printf '  $ %s\n' "${*/#$COHORT/cohort}"
    "$@"
}

say 'Simulate a class of 2000 students and 50 items on 3 skills, with known truth:'
show "$COHORT" simulate irt --students 2000 --items 50 --skills 3 --seed 1 -o "$DEMO/class.h5"

say 'Train a restricted Boltzmann machine on two ranks until validation stops improving:'
train=("$COHORT" train jobs/rbm.ini data="$DEMO/class.h5" model.hidden=15 train.epochs=40 train.seed=7)
show mpirun -n 2 "${train[@]}" run="$DEMO/rbm"

say 'Run the same command again: the run is finished. A killed run would continue where it stopped:'
show "${train[@]}" run="$DEMO/rbm"

say 'Train on three ranks: the model has the same bytes on any number of ranks:'
show mpirun -n 3 "${train[@]}" run="$DEMO/rbm3" >"$DEMO/rbm3.txt" 2>&1
head -1 "$DEMO/rbm3.txt"
sha256sum "$DEMO/rbm/best.h5" "$DEMO/rbm3/best.h5" | sed 's/^/  /'
cmp "$DEMO/rbm/best.h5" "$DEMO/rbm3/best.h5"

say 'Score its predictions for students it has never seen:'
show mpirun -n 2 "$COHORT" evaluate "$DEMO/rbm" --split test

say 'Predict every answer of these students; here are the first:'
show "$COHORT" predict "$DEMO/rbm" --split test -o "$DEMO/p.csv"
head -6 "$DEMO/p.csv" | sed 's/^/  /'

awk '/"valid"/ {
    match($0, /"cbd": *[0-9.eE+-]+/)
    value = substr($0, RSTART, RLENGTH)
    sub(/.*: */, "", value)
    print NR, value
}' "$DEMO/rbm/log.jsonl" >"$DEMO/curve.txt"
say "Capped binomial deviance of the validation students by epoch, from $DEMO/rbm/log.jsonl (lower is better):"
if command -v gnuplot >/dev/null; then
    gnuplot <<END
set title "validation CBD"
set xlabel "epoch"
unset key
set terminal dumb 78 20
plot "$DEMO/curve.txt" with linespoints
set terminal pngcairo size 900,500
set output "$DEMO/curve.png"
plot "$DEMO/curve.txt" with linespoints linewidth 2
END
    echo "  The same as an image: $DEMO/curve.png"
else
    awk 'NR == 1 { most = $2 } { low = low == "" || $2 < low ? $2 : low; v[NR] = $2 }
        END { for (i = 1; i <= NR; i++) {
            printf "  %3d  %.5f  ", i, v[i]
            width = most > low ? 50 * (v[i] - low) / (most - low) : 0
            for (j = 0; j < width; j++) printf "#"
            print "" } }' "$DEMO/curve.txt"
fi

say 'Write a report, one HTML page with pictures:'
show mpirun -n 2 "$COHORT" report "$DEMO/rbm" -o "$DEMO/report.html"

say "Open $DEMO/report.html in a browser. All files are in $DEMO. Next: cohort help, cohort inspect $DEMO/rbm, make test."
