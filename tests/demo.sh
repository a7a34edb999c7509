#!/bin/bash
# A tour in a minute: a simulated class, a model trained on two ranks, its score, its learning curve, a page about it.
# `make demo` builds and then calls this. COHORT is the program, DEMO the directory for what it makes.
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

say 'A class of 2000 students and 50 items on 3 skills, with known truth:'
show "$COHORT" simulate irt --students 2000 --items 50 --skills 3 --seed 1 -o "$DEMO/class.h5"

say 'A restricted Boltzmann machine, trained on two ranks until it stops getting better:'
train=("$COHORT" train jobs/rbm.ini data="$DEMO/class.h5" model.hidden=15 train.epochs=40 train.seed=7)
show mpirun -n 2 "${train[@]}" run="$DEMO/rbm"

say 'The same command again finds the run finished; killed half-way, it would have gone on from there:'
show "${train[@]}" run="$DEMO/rbm"

say 'The same on three ranks: the model has the same bytes, whatever the number of ranks:'
show mpirun -n 3 "${train[@]}" run="$DEMO/rbm3" >"$DEMO/rbm3.txt" 2>&1
head -1 "$DEMO/rbm3.txt"
sha256sum "$DEMO/rbm/best.h5" "$DEMO/rbm3/best.h5" | sed 's/^/  /'
cmp "$DEMO/rbm/best.h5" "$DEMO/rbm3/best.h5"

say 'How well it predicts answers of students it has never seen:'
show mpirun -n 2 "$COHORT" evaluate "$DEMO/rbm" --split test

say 'What it thinks of the first of them, answer by answer:'
show "$COHORT" predict "$DEMO/rbm" --split test -o "$DEMO/p.csv"
head -6 "$DEMO/p.csv" | sed 's/^/  /'

awk '/"valid"/ {
    match($0, /"cbd": *[0-9.eE+-]+/)
    value = substr($0, RSTART, RLENGTH)
    sub(/.*: */, "", value)
    print NR, value
}' "$DEMO/rbm/log.jsonl" >"$DEMO/curve.txt"
say "Capped binomial deviance on the validation students, epoch by epoch ($DEMO/rbm/log.jsonl):"
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
    echo "  The same as a picture: $DEMO/curve.png"
else
    awk 'NR == 1 { most = $2 } { low = low == "" || $2 < low ? $2 : low; v[NR] = $2 }
        END { for (i = 1; i <= NR; i++) {
            printf "  %3d  %.5f  ", i, v[i]
            width = most > low ? 50 * (v[i] - low) / (most - low) : 0
            for (j = 0; j < width; j++) printf "#"
            print "" } }' "$DEMO/curve.txt"
fi

say 'All of this and more as one page with pictures, for people without a terminal:'
show mpirun -n 2 "$COHORT" report "$DEMO/rbm" -o "$DEMO/report.html"

say "Open $DEMO/report.html in a browser. Everything is in $DEMO. Next: cohort help, cohort inspect $DEMO/rbm, make test."
