#!/bin/bash
# Makes the golden files of a version of the formats, with the program of that version:
#
#     tests/golden/make.sh build/cohort tests/golden/v2
#
# A class of 24 students as CSV, the data sets imported from it, a run of every kind of model with its
# checkpoints, and the predictions of each run. They are committed and never made again: what this program
# writes today is what tests/cli/cli_golden.sh opens with every later one. When a format changes, the files of
# the new version go into a directory beside the old ones.
#
# v1: format version 1 of data sets and checkpoints, without items' skills in checkpoints.
# v2: digests of pieces in data sets; items' skills and groups in checkpoints.
set -eu
# shellcheck source=tests/lib/mpi.sh
. "$(dirname "$0")/../lib/mpi.sh"
COHORT=$(readlink -f "$1")
mkdir -p "$2"
# the changes of arithmetic that these files have behind them (v1: none)
grep '^    {"' "$(dirname "$0")/../../src/learn/numerics.c" >"$2/numerics"
cd "$2"

# Students who know more answer better, items 1 to 7 get harder, and everybody learns; item 3 needs both
# skills. Numbers come from awk's own arithmetic on small integers, so they are the same everywhere.
awk 'BEGIN {
    seed = 7
    print "student,item,correct,time,skills,unit,teacher,hints,passed"
    for (s = 1; s <= 24; s++) {
        ability = (s * 5) % 9
        n = 6 + s % 5
        for (t = 1; t <= n; t++) {
            seed = (seed * 1103 + 12345) % 65536
            item = 1 + int(seed / 16) % 7
            seed = (seed * 1103 + 12345) % 65536
            right = int(seed / 64) % 20 < 6 + ability + t - item
            skills = item == 3 ? "adding;taking" : item < 4 ? "adding" : "taking"
            printf "s%02d,q%d,%d,%d,%s,u%d,t%d,%d,%d\n", s, item, right, 1000 * t + 10 * s, skills, 1 + item % 2,
                s % 3, int(seed / 8) % 4, (ability > 4)
        }
    }
}' >answers.csv

columns=(--student student --item item --outcome correct --time time --skills skills --group unit --target passed
    --factors teacher --covariates hints --seed 1)
"$COHORT" import csv answers.csv "${columns[@]}" --split by-student=60/20/20 -o student.h5
"$COHORT" import csv answers.csv "${columns[@]}" --split by-attempt=60/20/20 --withheld -o attempt.h5
"$COHORT" simulate irt --students 12 --items 5 --skills 2 --seed 1 -o truth.h5

# make NAME DATA EPOCHS SETTINGS...: a run that did not converge yet, with its predictions.
make() {
    local name=$1 data=$2 epochs=$3
    shift 3
    "$COHORT" train data="$data.h5" run="$name" train.epochs="$epochs" train.batch=6 train.block=2 "$@" >/dev/null
    "$COHORT" predict "$name" -o "$name.csv"
}
adam=(optimizer.method=adam optimizer.rate=0.1)
make rbm student 6 model.kind=rbm model.hidden=3 optimizer.momentum=0.9 optimizer.rate=0.05
make rbm_chains student 6 model.kind=rbm model.hidden=3 model.persistent=yes model.scale=0.3 optimizer.rate=0.1
make rtrbm student 6 model.kind=rtrbm model.hidden=3 "${adam[@]}"
make rtrbm_skills attempt 6 model.kind=rtrbm model.hidden=2 model.structure=skills "${adam[@]}"
make dkt student 6 model.kind=dkt model.hidden=3 "${adam[@]}"
make dkt_skill attempt 6 model.kind=dkt model.hidden=3 model.input=skill model.cell=gru "${adam[@]}"
make dkt_final student 6 model.kind=dkt model.hidden=3 model.task=final "${adam[@]}"
make vae student 6 model.kind=vae model.hidden=3 model.layers=1 "${adam[@]}"
make lme attempt 6 model.kind=lme "model.factors=item group skill teacher" model.fixed=hints
make bkt student 6 model.kind=bkt model.items=yes
make ktm_rasch attempt 2 model.kind=ktm model.preset=rasch
make ktm_pfa student 2 model.kind=ktm model.preset=pfa
make ktm_bestlr attempt 2 model.kind=ktm model.preset=bestlr
make ktm_das3h attempt 2 model.kind=ktm model.preset=das3h
make ktm_fm attempt 2 model.kind=ktm model.preset=fm model.factors=2
make ktm_columns student 2 model.kind=ktm "model.features=item skill wins_skill:log teacher hints"
"$COHORT" blend lme dkt_skill rtrbm_skills ktm_bestlr --method logistic -o blend >/dev/null
"$COHORT" predict blend -o blend.csv
rm -f ./*/lock ./*/log.jsonl ./*/result.json ./*/previous.h5 ./*/previous_best.h5
gzip -n9 ./*.h5 ./*/*.h5
