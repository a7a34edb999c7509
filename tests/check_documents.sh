#!/bin/bash
# Runs every command that the documents (*.md) show and compares the output shown with the real one, so that neither
# goes stale. Part of `make check`.
#
#     tests/check_documents.sh [DOCUMENT...]          checks these documents; all of them unless named
#     tests/check_documents.sh write [DOCUMENT...]    runs the commands again and rewrites the output shown
#
# BUILD (build) holds the program. LONG=yes runs long blocks in full. A command block is fenced, and its first word is
# `console`:
#
#     ```console TAG...
#     $ cohort import csv answers.csv \
#           -o a.h5                           a command may have several lines; `> ` continues a here-document
#     3 students, 9 attempts ...              a line that ends in ` ...` is cut short
#     ...                                     lines that are not shown
#     wrote a.h5
#     ```
#
# The commands of a document run in order in one temporary directory, which looks like the root of the project:
# `jobs`, `tests` and the other folders are links, and `../shared` is there if it is here. Each command must end with
# exit code 0. Lines shown must come in the same order on stdout or on stderr. Without a line `...` all lines must be
# shown; where no output is shown, none is compared. Blanks count once. Seconds, rates, sizes of memory and dates of
# jobs are masked, because they differ from machine to machine. All other numbers must agree: cohort gives the same
# bits everywhere.
#
# Tags:
#     exit=N    the last command of the block must end with this exit code
#     shared    needs ../shared/data; skipped where it is not there
#     slurm     needs Slurm, which is started here with emulated nodes; skipped where that is impossible
#     long      takes minutes: `cohort train` trains no epoch, `make` only looks for its target, and no output is
#               compared
#
# Also checked, in all documents: commands stand in console blocks only, links and paths of the project exist, and lines
# have at most 120 characters (not in src, whose tables are wider). tests/bench/README.md is never run: its commands
# are the benchmarks.
set -u
self=$(realpath "$0")
. "$(dirname "$self")/lib/slurm.sh"
arguments=("$@")
write=''
if [ "${1:-}" = write ]; then
    write=yes
    shift
fi
cd "$(dirname "$self")/.." || exit 70
root=$PWD
if [ $# -gt 0 ]; then
    documents=("$@")
else
    mapfile -t documents < <(find . \( -name '.?*' -o -path './build*' \) -prune -o -name '*.md' -print | sed 's|^\./||' | sort)
fi
if grep -qsE '^```console .*slurm' "${documents[@]}"; then slurm_namespace "$self" "${arguments[@]}"; fi
build=$(realpath "${BUILD:-build}")
export COHORT=$build/cohort LC_ALL=C.UTF-8
. tests/lib/mpi.sh
if [ ! -x "$COHORT" ]; then
    echo "documents: $COHORT has not been built" >&2
    exit 1
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
most_columns=120
work=$(mktemp -d) || exit 74
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Programs that the commands find first: cohort and make, and for long blocks stand-ins that do little.
mkdir "$work/bin" "$work/long"
ln -s "$COHORT" "$work/bin/cohort"
cat >"$work/bin/make" <<END
#!/bin/bash
# The demo without its set-up, in the directory of the document; all else in the project itself.
if [ "\$*" = demo ]; then COHORT=build/cohort exec tests/demo.sh; fi
exec $(type -P make) --no-print-directory -C '$root' BUILD='$build' "\$@"
END
cat >"$work/long/cohort" <<END
#!/bin/bash
if [ "\${1:-}" = train ] && [[ "\$*" != *refit=* ]]; then set -- "\$@" train.epochs=0; fi
exec '$COHORT' "\$@"
END
cat >"$work/long/make" <<END
#!/bin/bash
for target; do
    [[ \$target == *=* ]] || grep -qE "^([a-z]+ )*\$target( [a-z]+)*:" '$root/Makefile' || {
        echo "the Makefile has no target \$target" >&2
        exit 2
    }
done
END
chmod +x "$work/bin/make" "$work/long/"*

# complain LINE TEXT: a failure, at a line of the document.
complain() { echo "$document:$1: $2" | tee -a "$place/failed"; }

# masked FILE...: its lines without what differs from machine to machine.
masked() {
    sed -E -e "s|$place/project|/home/you/cohort|g" -e 's/^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} job/DATE job/' \
        -e 's/[0-9]+(\.[0-9]+)?( |-)?(s|ms|µs|us|minutes?|seconds?|million|thousand|billion|KB|kB|MB|GB|TB)($|[^A-Za-z0-9_])/N \3\4/g' \
        -e 's/(N (million|thousand)|[0-9]+) attempts per second/N attempts per second/g' \
        -e 's/[[:space:]]+/ /g' -e 's/^ //; s/ $//' "$@"
}

# differs SHOWN: the first line of the file that is not where it should be in $place/err or $place/out; fails if
# there is none. All are masked; blank lines do not count.
differs() {
    awk '
        FILENAME == ARGV[1] { shown[++n] = $0; if ($0 == "...") gaps++; else if ($0 != "") lines++; next }
        $0 != "" { if (FILENAME == ARGV[2]) err[++n_err] = $0; else out[++n_out] = $0 }
        function like(want, got,   k) {
            k = length(want)
            return want == got || (substr(want, k - 3) == " ..." && substr(got, 1, k - 3) == substr(want, 1, k - 3))
        }
        END {
            at_err = at_out = 0
            for (i = 1; i <= n; i++) {
                if (shown[i] == "" || shown[i] == "...") continue
                for (e = at_err + 1; e <= n_err && !like(shown[i], err[e]); e++) continue
                for (o = at_out + 1; o <= n_out && !like(shown[i], out[o]); o++) continue
                if (e <= n_err) at_err = e
                else if (o <= n_out) at_out = o
                else { print i " is not in the output, or not in this order"; exit 0 }
            }
            if (!gaps && lines != n_err + n_out) { print 1 " to " n " are not all of the output, and none is `...`"; exit 0 }
            exit 1
        }' "$1" "$place/err.masked" "$place/out.masked"
}

# rewritten SHOWN: the output as it is now. Where lines were left out, those are shown that are most like the lines shown
# before: the order-preserving choice with the most words in common.
rewritten() {
    awk -v most=$most_columns '
        FILENAME == ARGV[1] { shown[++n] = $0; if ($0 == "...") gaps++; next }
        { all[++n_all] = $0; if ($0 != "") real[++n_real] = $0 }
        # The line as it is shown: cut short where it is too long, or where the line that it replaces was cut.
        function cut(text, old,   k, words, parts) {
            sub(/ +$/, "", text)
            if (old ~ / \.\.\.$/) {
                if (substr(text, 1, length(old) - 3) == substr(old, 1, length(old) - 3)) return old
                words = split(old, parts, " ") - 1
                for (k = 0; words > 0 && match(substr(text, k + 1), /[^ ]+/); words--) k += RSTART + RLENGTH - 1
                if (k < most - 3) return substr(text, 1, k) " ..."
            }
            if (length(text) <= most) return text
            for (k = most - 3; k > 1 && substr(text, k, 1) != " "; k--) continue
            return substr(text, 1, k) "..."
        }
        function alike(a, b,   i, k, m, words, others, has, common) {
            sub(/ \.\.\.$/, "", a)
            k = split(a, words, " ")
            m = split(b, others, " ")
            if (!k || !m) return 0
            for (i = 1; i <= m; i++) has[others[i]]++
            for (i = 1; i <= k; i++) if (has[words[i]]-- > 0) common++
            return 2 * common / (k + m) + (words[1] == others[1] ? 0.2 : 0)
        }
        END {
            if (!gaps) { for (i = 1; i <= n_all; i++) print cut(all[i], shown[i]); exit }
            for (i = 1; i <= n; i++)
                for (j = 1; j <= n_real; j++) {
                    best[i, j] = best[i - 1, j]; how[i, j] = "skip"
                    if (best[i, j - 1] > best[i, j]) { best[i, j] = best[i, j - 1]; how[i, j] = "left" }
                    if (shown[i] == "" || shown[i] == "...") continue
                    s = alike(shown[i], real[j])
                    if (s > 0.25 && best[i - 1, j - 1] + s > best[i, j]) { best[i, j] = best[i - 1, j - 1] + s; how[i, j] = "take" }
                }
            for (i = n; i > 0; i--) {
                for (j = i == n ? n_real : j; how[i, j] == "left"; j--) continue
                if (how[i, j] == "take") chosen[i] = j--
            }
            last = 0
            for (i = 1; i <= n; i++) {
                if (shown[i] == "...") gap = 1
                else if (i in chosen && last && chosen[i] != last + 1 && !gap) print "..."
                if (i in chosen) { print cut(real[chosen[i]], shown[i]); last = chosen[i]; gap = 0 } else print shown[i]
            }
        }' "$1" "$place/err" "$place/out"
}

# possible TAGS LINE: whether the block can be run here; says why not.
possible() {
    local why=''
    if [[ " $1 " == *" shared "* && ! -d ../shared/data ]]; then why='there is no ../shared/data'; fi
    if [[ " $1 " == *" slurm "* && -z ${SLURM_CONF:-} ]]; then
        if [ -e "$place/no_slurm" ] || ! slurm_start 2 2 2>"$place/why"; then
            slurm_stop
            unset SLURM_CONF
            touch "$place/no_slurm"
            why=$(cat "$place/why")
        fi
    fi
    [ -n "$why" ] || return 0
    echo "$document:$2: skipped: $why" >>"$place/skipped"
    return 1
}

# perform COMMAND LINE TAGS STATUS: runs it; its words are in $place/out and $place/err.
perform() {
    local path=$work/bin:$PATH status
    if [[ " $3 " == *" long "* && -z ${LONG:-} ]]; then path=$work/long:$work/bin:$PATH; fi
    (cd "$place/project" && PATH=$path timeout -k 10 "${LIMIT:-600}" bash -c "$1" </dev/null >"$place/out" 2>"$place/err")
    status=$?
    masked "$place/out" >"$place/out.masked"
    masked "$place/err" >"$place/err.masked"
    echo >>"$place/commands"
    if [ $status != "$4" ]; then
        complain "$2" "exit code $status instead of $4: $1"
        tail -n 5 "$place/err" | sed 's/^/    | /'
    fi
}

# paths LINE TEXT: the paths of the project in a line of text must exist, and so must links.
paths() {
    local path link
    while read -r path; do
        path=${path%%[.,:]}
        [[ $path == *NAME* ]] || compgen -G "$path" >/dev/null || complain "$1" "there is no $path"
    done < <(grep -oE '(^|[^A-Za-z0-9_./*-])(jobs|tests|src|data_tools|include)/[A-Za-z0-9_./*-]*' <<<"$2" | sed -E 's/^[^a-z]//')
    while read -r link; do
        link=${link%%#*}
        [[ $link == *://* || -z $link || -e $(dirname "$document")/$link ]] || complain "$1" "there is no $link to link to"
    done < <(grep -oE '\]\([^)]+\)' <<<"$2" | sed 's/^](//; s/)$//')
}

# Reads a document, runs its blocks, and leaves the new text in $place/new.
one_document() {
    local lines=() i=0 n fence='' tags='' run='' line command at shown status first difference
    document=$1 place=$work/${1//\//-}
    trap 'slurm_stop' EXIT
    trap 'exit 130' TERM
    mkdir -p "$place/project/build"
    mpi_files "$place/mpi"
    ln -s "$COHORT" "$place/project/build/cohort"
    for line in "$root"/*; do
        [[ ${line##*/} == build* ]] || ln -s "$line" "$place/project/"
    done
    [ ! -d "$root/../shared" ] || ln -s "$(realpath "$root/../shared")" "$place/shared"
    mapfile -t lines <"$document"
    n=${#lines[@]}
    : >"$place/new"
    while [ $i -lt "$n" ]; do
        line=${lines[i]}
        i=$((i + 1))
        if [[ $document != src/* && ${#line} -gt $most_columns ]]; then
            complain $i "${#line} characters in a line, where at most $most_columns are allowed"
        fi
        if [[ $fence == console* && $line == '$ '* ]]; then
            command=${line#'$ '} at=$i
            echo "$line" >>"$place/new"
            while [[ $i -lt $n && (${lines[i - 1]} == *'\' || ${lines[i]} == '> '*) ]]; do
                command+=$'\n'${lines[i]#'> '}
                echo "${lines[i]}" >>"$place/new"
                i=$((i + 1))
            done
            paths $at "$command"
            shown=$place/shown first=$i
            : >"$shown"
            while [[ $i -lt $n && ${lines[i]} != '$ '* && ${lines[i]} != '```'* ]]; do
                echo "${lines[i]}" >>"$shown"
                i=$((i + 1))
            done
            if [ -z "$run" ]; then
                cat "$shown" >>"$place/new"
                continue
            fi
            status=0
            if [[ $tags =~ exit=([0-9]+) && ${lines[i]} == '```'* ]]; then status=${BASH_REMATCH[1]}; fi
            perform "$command" $at "$tags" "$status"
            if [ ! -s "$shown" ] || [[ " $tags " == *" long "* && -z ${LONG:-} ]]; then
                cat "$shown" >>"$place/new"
                continue
            fi
            if [ -n "$write" ]; then
                rewritten "$shown" | sed "s|$place/project|/home/you/cohort|g" >"$shown.new"
                mv "$shown.new" "$shown"
            fi
            cat "$shown" >>"$place/new"
            masked "$shown" >"$shown.masked"
            if difference=$(differs "$shown.masked"); then
                complain $((first + ${difference%% *})) "the command of line $at: line ${difference#* }"
                cat "$place/err" "$place/out" | head -n "${SHOW:-15}" | sed 's/^/    | /'
            fi
            continue
        fi
        echo "$line" >>"$place/new"
        if [[ $line == '```'* ]]; then
            if [ -n "$fence" ]; then
                fence='' run=''
            else
                fence=${line#'```'}
                fence=${fence:-text} tags=${fence#* }
                if [[ $fence == console* && $document != tests/bench/README.md ]] && possible "$tags" $i; then run=yes; fi
            fi
        elif [[ $fence != console* && $line =~ ^\ *'$ ' ]]; then
            complain $i 'a command outside of a console block'
        elif [ -z "$fence" ]; then
            paths $i "$line"
        fi
    done
    [ -z "$fence" ] || complain "$n" 'a block without an end'
    if [ -n "$write" ] && ! cmp -s "$place/new" "$document"; then
        cat "$place/new" >"$document"
        echo "$document: rewritten"
    fi
}

# Two at a time: most commands wait for ranks to start.
for document in "${documents[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do wait -n; done
    if [ ! -f "$document" ]; then
        echo "documents: there is no $document" | tee -a "$work/failed"
        continue
    fi
    mkdir -p "$work/${document//\//-}"
    one_document "$document" >"$work/${document//\//-}/said" 2>&1 &
done
wait
n_commands=$(cat "$work"/*/commands 2>/dev/null | wc -l)
cat "$work"/*/said
sort -u "$work"/*/skipped 2>/dev/null
if cat "$work/failed" "$work"/*/failed 2>/dev/null | grep -q .; then
    echo "documents: FAILED; \`tests/check_documents.sh write\` rewrites output that has changed" >&2
    exit 1
fi
echo "documents: $n_commands commands gave the output shown; documents: ${#documents[@]}"
