# shellcheck shell=bash
# Trains a small model of every kind, for tests that compare bits across ranks, instruction sets, compilers and
# machines. Sourced, not run.
#
#     bits_data DIRECTORY COMMAND...           simulate the classes there with the program COMMAND...
#     bits_run DIRECTORY NAME RUN COMMAND...   train NAME, one of $bits_names, into DIRECTORY/RUN, and predict; the
#                                              members of a blend must have been trained into runs whose names differ
#                                              from its own only by that word
#     bits_sums DIRECTORY RUN                  print checksums of its last and best checkpoint and of its predictions
export bits_names="rbm dkt-lstm dkt-gru dkt-waves rtrbm rtrbm-dense rtrbm-skills vae vae-full bkt ktm ktm-student ktm-waits average blend lme"

bits_data() {
    local directory=$1
    shift
    (cd "$directory" && "$@" simulate grockit --students 90 --items 40 --seed 2 -o tails.h5 &&
        "$@" simulate bkt --students 60 --skills 4 --seed 2 -o bkt.h5 &&
        "$@" simulate irt --students 80 --items 24 --skills 2 --seed 2 -o irt.h5)
}

# bits_words NAME: its data set, then its settings.
bits_words() {
    local short="train.epochs=2 train.batch=24 train.block=5"
    case $1 in
    rbm) echo tails model.kind=rbm model.hidden=7 model.factors=3 model.conditional=yes "$short" ;;
    dkt-lstm) echo tails model.kind=dkt model.hidden=21 model.layers=2 optimizer.method=adam optimizer.clip=1 "$short" ;;
    dkt-gru) echo bkt model.kind=dkt model.cell=gru model.hidden=17 model.dropout=0.2 "$short" ;;
    dkt-waves) echo bkt model.kind=dkt model.hidden=9 model.reconstruction=0.1 model.waviness=0.1 model.waviness2=1 "$short" ;;
    rtrbm) echo tails model.kind=rtrbm model.hidden=19 optimizer.method=adam "$short" ;;
    rtrbm-dense) echo bkt model.kind=rtrbm model.hidden=6 model.visible=bernoulli model.dense=yes model.gradient=cd "$short" ;;
    rtrbm-skills) echo bkt model.kind=rtrbm model.hidden=4 model.structure=skills model.skill_units=2 "$short" ;;
    vae) echo irt model.kind=vae model.hidden=18 "$short" ;;
    vae-full) echo irt model.kind=vae model.hidden=9 model.posterior=full model.dimensions=2 model.samples=3 model.layers=3 "$short" ;;
    bkt) echo bkt model.kind=bkt model.forget=yes model.restarts=2 train.epochs=5 ;;
    ktm) echo bkt model.kind=ktm model.preset=pfa train.epochs=4 ;;
    ktm-student) echo tails model.kind=ktm model.preset=fm model.factors=3 train.epochs=4 ;;
    ktm-waits) echo bkt model.kind=ktm model.preset=fm model.factors=3 model.weights_first=yes model.tolerance=0.01 train.epochs=6 ;;
    average) echo tails model.kind=average "$short" ;;
    lme) echo bkt model.kind=lme train.epochs=12 ;;
    esac
}

bits_run() (
    name=$2 run=$3
    cd "$1" || exit
    shift 3
    if [ "$name" = blend ]; then
        "$@" blend "${run/blend/dkt-gru}" "${run/blend/rtrbm-skills}" -o "$run" || exit
    else
        read -ra words <<<"$(bits_words "$name")"
        "$@" train "data=${words[0]}.h5" "run=$run" "${words[@]:1}" || exit
    fi
    "$@" predict "$run" -o "$run-predicted.h5"
)

bits_sums() (
    cd "$1" || exit
    for file in "$2/last.h5" "$2/best.h5" "$2-predicted.h5"; do
        [ ! -f "$file" ] || sha256sum <"$file" | cut -c 1-64
    done | tr '\n' ' '
)

# bits_near DIRECTORY RUN OTHER_DIRECTORY OTHER_RUN: whether the tensors of two lme runs, which depend on the BLAS, agree
# to the last bit of a float, or to 1e-9. The state of the search, stored as two floats per number, is skipped.
bits_near() (
    scratch=$(mktemp -d) || exit
    trap 'rm -rf "$scratch"' EXIT
    "$COHORT" export "$1/$2" -o "$scratch/a" >/dev/null 2>&1 && "$COHORT" export "$3/$4" -o "$scratch/b" >/dev/null 2>&1 || exit
    rm -f "$scratch"/?/search.csv
    for file in "$scratch"/a/*.csv; do
        paste -d '\n' "$file" "$scratch/b/$(basename "$file")"
    done | awk -F , 'NR % 2 { n = split($0, a); next }
        { for (i = 1; i <= n; i++) if (a[i] != $i) { d = a[i] - $i; if (!(d * d <= (1.2e-7 * a[i]) ^ 2 + 1e-18)) bad++ } }
        END { exit NR < 10 || bad > 0 }'
)
