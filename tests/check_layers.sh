#!/bin/bash
# Checks the rules of the source that a compiler does not check:
#
#   - A folder is a layer, in the order of `layers` below. A file includes only headers of its own folder or of lower
#     ones; a folder of src/models includes no other folder of src/models.
#   - Include lines name the folder: "base/fail.h", "data_tools/csv.h".
#   - The first line of every header is a comment that describes it, and its guard is named after it.
#   - No two files have the same base name.
#   - External symbols begin with the stem of their file (in x_part.c also with x), with the name of a struct that its
#     header defines, or in src/commands with command_ or the command's name. Counts begin with n_ and such a name.
#     This needs the objects of a build (BUILD, default: build).
#   - No file has more than 600 lines or contains marks of unfinished work.
#
#     tests/check_layers.sh [ROOT]
cd "${1:-$(dirname "$0")/..}" || exit 70
build=${BUILD:-build}
shopt -s nullglob
problems=0

# From the lowest to the highest. Headers for other programs are at the bottom.
layers=(include src/base src/kernels src/plot src/data data_tools src/learn src/learn/layers src/models src/runs src/sweep src/report
    src/commands src)

# Symbols that need not begin with the stem of their file, by file.
declare -A allowed=(
    [src/kernels/dispatch.c]='fm_kernels hmm irt lme_kernels logistic_sums matmul rbm_marginal rbm_rows rnn_cells vec'
    [src/base/machine.c]='openblas'
    [src/main.c]='main'
)

problem() {
    echo "$1: $2"
    problems=$((problems + 1))
}

# layer_of FILE: sets `found` to the number of its layer; empty if it has none.
layer_of() {
    local directory=${1%/*} l
    [[ $directory != src/models/* ]] || directory=src/models
    found=
    for l in "${!layers[@]}"; do
        [ "$directory" != "${layers[l]}" ] || found=$l
    done
}

headers=(include/*.h src/*.h src/*/*.h src/*/*/*.h data_tools/*.h)
sources=(src/*.c src/*/*.c src/*/*/*.c data_tools/*.c)
for header in "${headers[@]}"; do
    read -r first <"$header"
    [[ $first == '/* '[A-Z]* ]] || problem "$header:1" "the first line must describe the file: /* Something. */"
    guard=$(basename "${header^^}")
    guard=COHORT_${guard//[^A-Z0-9]/_}
    guard=${guard/#COHORT_COHORT/COHORT}
    grep -q "^#ifndef $guard\$" "$header" || problem "$header" "its guard must be $guard"
done

for file in "${headers[@]}" "${sources[@]}"; do
    layer_of "$file"
    own=$found
    if [ -z "$own" ]; then
        problem "$file" "is not in a folder that is a layer: ${layers[*]}"
        continue
    fi
    while IFS=: read -r line include; do
        other=
        for directory in src . include; do
            [ ! -f "$directory/$include" ] || other=$(realpath -m --relative-to=. "$directory/$include")
        done
        if [ -z "$other" ]; then
            problem "$file:$line" "includes \"$include\", which is not the folder and name of a header of this project"
            continue
        fi
        layer_of "$other"
        if [ -z "$found" ] || ((found > own)); then
            problem "$file:$line" "${layers[own]} includes \"$include\" of a higher layer; include only lower layers"
        elif [[ $other == src/models/*/* && $file == src/models/*/* && ${other%/*} != "${file%/*}" ]]; then
            problem "$file:$line" "a model includes \"$include\" of another model; move shared code to src/learn"
        fi
    done < <(sed -nE '/^[ \t]*#[ \t]*include[ \t]*"/{=;s/[^"]*"([^"]*)".*/\1/p}' "$file" | paste -d: - -)
done

# beginnings_of FILE: sets `beginnings` to the allowed beginnings of its external symbols.
beginnings_of() {
    local directory=${1%/*} stem
    stem=$(basename "$1" .c)
    read -ra beginnings <<<"$stem ${allowed[$1]-}"
    while :; do
        local header=$directory/$stem.h
        [ ! -e "$header" ] || beginnings+=("$stem" $(sed -n 's/^struct \([a-z0-9_]*\) {.*/\1/p' "$header"))
        [ ! -e "$directory/$stem.c" ] || beginnings+=("$stem")
        [[ $stem == *_* ]] || break
        stem=${stem%_*}
    done
    if [ "$directory" = src/commands ]; then
        stem=$(basename "$1" .c)
        stem=${stem#command_}
        beginnings+=(command "${stem%%_*}")
    fi
}

n_objects=0
for file in "${sources[@]}"; do
    beginnings_of "$file"
    for object in "$build/${file%.c}".o "$build/${file%.c}".*.o; do
        [ -e "$object" ] || continue
        n_objects=$((n_objects + 1))
        while read -r symbol; do
            for beginning in "${beginnings[@]}"; do
                [[ ${symbol#n_} != "$beginning" && ${symbol#n_} != "$beginning"_* ]] || continue 2
            done
            [[ $symbol == __* ]] || problem "$file" "external symbol '$symbol' begins with none of: ${beginnings[*]}"
        done < <(nm -g --defined-only "$object" | awk 'NF == 3 { print $3 }')
    done
done

texts=("${headers[@]}" "${sources[@]}" tests/*.sh tests/*/*.c tests/*/*.h tests/*/*.sh Makefile .ci/run)
while IFS= read -r name; do
    problem "$name" "more than one file has this name"
done < <(for file in "${texts[@]}"; do echo "${file##*/}"; done | sort | uniq -d)
for file in "${texts[@]}"; do
    [ -e "$file" ] || continue
    lines=$(wc -l <"$file")
    if ((lines > 600)); then problem "$file" "has $lines lines: split it before it reaches 600"; fi
done
while IFS= read -r hit; do
    problem "${hit%%:*}" "unfinished: ${hit#*:}"
done < <(grep -nwE 'TO[D]O|FIX[M]E|XX[X]|HAC[K]' /dev/null "${texts[@]}" 2>/dev/null)

if [ "$problems" != 0 ]; then
    echo "layers: $problems problems"
    exit 1
fi
echo "layers: ${#headers[@]} headers and ${#sources[@]} sources in ${#layers[@]} layers," \
    "symbols of $n_objects objects: no problems"
