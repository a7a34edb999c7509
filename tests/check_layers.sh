#!/bin/bash
# Whether the source keeps the house rules that a compiler does not see:
#
#   - the first line of every header is `/* layer N (name): ... */`, and in include/ N has one name;
#   - a file includes only headers of its own layer or of lower ones. src/x.c (or src/x_part.c) has the layer
#     of include/x.h; the directories below say theirs;
#   - external symbols begin with the stem of their file (of x.c too in its part x_part.c), with the name of
#     a struct that its header defines, or with command_ in src/commands; counts are n_ and such a name.
#     This needs the objects of a build (BUILD, build unless set);
#   - no file has more than 600 lines, and none holds marks of unfinished work.
#
#     tests/check_layers.sh [ROOT]
cd "${1:-$(dirname "$0")/..}" || exit 70
build=${BUILD:-build}
shopt -s nullglob
problems=0

# Where a file without a header of its own belongs: the layer of this header, "top" for the highest.
declare -A home=(
    [src/kernels]=vec [src/dispatch]=vec [src/models]=model [src/settings]=trainer
    [src/commands]=top [data_tools]=top [src/main]=top
)

# Symbols that tell more without their file's stem: patterns, by file.
declare -A allowed=([src/dispatch.c]='binary cells chains irt mixed product ridge rows sparse vec' [src/main.c]='main')

problem() {
    echo "$1: $2"
    problems=$((problems + 1))
}

declare -A layer name_of
headers=(include/*.h src/*.h src/*/*.h data_tools/*.h)
sources=(src/*.c src/*/*.c data_tools/*.c)
top=0
for header in "${headers[@]}"; do
    read -r first <"$header"
    if [[ ! $first =~ ^'/* layer '([0-9]+)' ('([a-z\ ]+)'): '. ]]; then
        problem "$header:1" "the first line must be '/* layer N (name): what it is. */'"
        continue
    fi
    n=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
    layer[$header]=$n
    if [[ $header == include/* && ${name_of[$n]:=$name} != "$name" ]]; then
        problem "$header:1" "layer $n is called '$name' here and '${name_of[$n]}' elsewhere"
    fi
    if ((n > top)); then top=$n; fi
done

# layer_of FILE: sets `found` to the layer of a source file, or to nothing.
layer_of() {
    local stem directory=${1%/*} home_header
    found=${layer[$1]-}
    [ -z "$found" ] || return
    stem=${1##*/}
    stem=${stem%.c}
    home_header=${home[$directory]-${home[$directory/$stem]-}}
    while [ "$home_header" != top ]; do
        found=${layer[include/$stem.h]-}
        [ -z "$found" ] || return
        [[ $stem == *_* ]] || break
        stem=${stem%_*}
    done
    if [ "$home_header" = top ]; then found=$top; else found=${layer[include/$home_header.h]-}; fi
}

for file in "${headers[@]}" "${sources[@]}"; do
    layer_of "$file"
    own=$found
    if [ -z "$own" ]; then
        [[ $file == *.h ]] || problem "$file" "has no layer: there is no header of its name in include/"
        continue
    fi
    while IFS=: read -r line include; do
        for directory in include "${file%/*}" src data_tools; do
            other=${layer[$(realpath -m --relative-to=. "$directory/$include")]-}
            [ -z "$other" ] || break
        done
        if [ -z "$other" ]; then
            problem "$file:$line" "includes \"$include\", which is no header of this project"
        elif ((other > own)); then
            problem "$file:$line" "layer $own includes \"$include\" of layer $other: includes point downwards"
        fi
    done < <(sed -nE '/^[ \t]*#[ \t]*include[ \t]*"/{=;s/[^"]*"([^"]*)".*/\1/p}' "$file" | paste -d: - -)
done

# beginnings_of FILE: sets `beginnings` to what its external symbols may begin with.
beginnings_of() {
    local directory=${1%/*} stem
    stem=$(basename "$1" .c)
    read -ra beginnings <<<"$stem ${allowed[$1]-}"
    while :; do
        local header
        for header in "include/$stem.h" "$directory/$stem.h"; do
            [ ! -e "$header" ] || beginnings+=("$stem" $(sed -n 's/^struct \([a-z0-9_]*\) {.*/\1/p' "$header"))
        done
        [ ! -e "$directory/$stem.c" ] || beginnings+=("$stem")
        [[ $stem == *_* ]] || break
        stem=${stem%_*}
    done
    [ "$directory" != src/commands ] || beginnings+=(command)
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

texts=("${headers[@]}" "${sources[@]}" tests/*.c tests/*.h tests/*.sh tests/*/*.c tests/*/*.sh Makefile .ci/run)
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
echo "layers: ${#headers[@]} headers and ${#sources[@]} sources in $((top + 1)) layers," \
    "symbols of $n_objects objects: in order"
