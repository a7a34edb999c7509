#!/bin/bash
# The man pages: groff and man accept them without warnings, and a page has the words of `cohort help`.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

commands=$("$COHORT" help | sed -n '/^COMMANDS/,/^$/s/^    \([a-z]\+\) .*/\1/p')
kinds=$("$COHORT" help models | sed -n '/^DESCRIPTION/,/^[A-Z]\+$/s/^    \([a-z]\+\)  .*/\1/p')
check "commands ($(wc -w <<<"$commands"))" test "$(wc -w <<<"$commands")" -ge 15
check "kinds of models ($(wc -w <<<"$kinds"))" test "$(wc -w <<<"$kinds")" -ge 8
topics="models settings files exit-codes environment"

section "pages"
for page in cohort $commands; do
    expect_status 0 "$COHORT" help $page
    for heading in NAME SYNOPSIS DESCRIPTION EXAMPLES 'SEE ALSO'; do expect_match "^$heading\$"; done
    expect_equal "" "$(output | awk 'length > 80 && !/^        /')" "lines of more than 80 columns"
done
expect_status 0 "$COHORT" help evaluate
expect_match '^    --confidence N '
expect_match '^ +default: test; choices: train, valid, test, all'
expect_status 0 "$COHORT" help predict
expect_match '^    -o, --output FILE '
expect_status 0 "$COHORT" help models
for kind in $kinds; do expect_match "^    .model\.kind = $kind.:"; done
expect_status 0 "$COHORT" help settings
for section in data optimizer train run model sweep; do expect_match "^  \[$section\]"; done
expect_match '^ +default: 20; range: 0 to 1e9'
expect_status 0 "$COHORT" help rbm
expect_match '^    binomial '
expect_no_match '^DKT'
expect_status 0 "$COHORT" help files
for word in /attempts/mark /parameters/NAME result.json log.jsonl student,target,prediction; do expect_match "$word"; done
expect_status 0 ranks 2 "$COHORT" help --man
expect_equal '.TH COHORT 1' "$(output | head -1 | cut -d' ' -f1-3)" "the page without a word"
expect_match '^\.SH EXIT STATUS'
expect_status 2 "$COHORT" help train evaluate
expect_status 2 "$COHORT" help --markdown

section "examples"
# Options and settings in examples exist: the program accepts its command line and then fails on missing files.
for page in $commands; do
    "$COHORT" help $page | sed -n '/^EXAMPLES/,/^[A-Z ]*[A-Z]$/p' | sed -n 's/^        //p' |
        sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}'
done >examples
check "examples ($(wc -l <examples))" test "$(wc -l <examples)" -ge 25
mkdir work
while read -r text; do
    read -ra line <<<"${text%% < *}" # without a redirection
    while [ "${line[0]}" != cohort ]; do line=("${line[@]:1}"); done
    case " ${line[*]} " in *" | "* | *" doctor "* | *" submit "* | *" sweep "* | *' jobs/'*) continue ;; esac
    # A watcher waits for training that nobody starts here.
    case " ${line[*]} " in *" --watch "*) line+=(--wait 0) ;; esac
    status=0
    (cd work && "$COHORT" "${line[@]:1}") >"$LIB_OUT" 2>"$LIB_ERR" </dev/null || status=$?
    if [ $status = 2 ] || grep -q '^cohort: .*\(unknown\|no output\)' "$LIB_ERR"; then fail "${line[*]}"; else pass "${line[*]}"; fi
done <examples

section "man"
if ! command -v groff >/dev/null || ! command -v man >/dev/null; then
    skip "man and groff are not installed (packages man-db and groff-base)"
fi
export LC_ALL=C.UTF-8 MANROFFOPT='' MANWIDTH=80
# words FILE: its words, without marks of code; a minus and a hyphen are the same.
words() { sed 's/\xe2\x88\x92/-/g; s/\xe2\x80\x90/-/g; s/`//g' "$1" | tr -s ' \n' '\n\n' | sed '/^$/d'; }
for page in cohort $commands $topics $kinds; do
    "$COHORT" help $page >"$page.txt"
    "$COHORT" help $page --man >"$page.man"
    expect_equal "" "$(groff -ww -man -Tutf8 -z "$page.man" 2>&1)" "groff on $page"
    man --warnings --no-hyphenation --no-justification -l "$page.man" 2>"$page.errors" | col -bpx >"$page.shown"
    expect_equal "" "$(cat "$page.errors")" "man on $page"
    sed '1d;$d' "$page.shown" >"$page.body" # the lines at the top and the bottom
    words "$page.txt" >"$page.ours"
    words "$page.body" >"$page.its"
    check "words of $page: $(wc -l <"$page.ours")" test -s "$page.ours"
    check "the same words: $page" cmp "$page.ours" "$page.its"
    if command -v lexgrog >/dev/null; then
        check "whatis of $page" lexgrog "$page.man" >/dev/null
    fi
    if command -v mandoc >/dev/null; then
        # An empty date: pages do not depend on when they were made.
        expect_equal "" "$(mandoc -T lint -W warning "$page.man" | grep -v 'missing date')" "mandoc on $page"
    fi
done
