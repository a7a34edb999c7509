#!/bin/bash
# not under: debug double sanitize
# The check of the documents, on small documents that are mostly wrong on purpose; and how it rewrites output.
. "$(dirname "$0")/../lib/lib.sh"
BUILD=$(dirname "$COHORT")
export BUILD
page=$TMP/page.md

# documents LINE...: check a document of these lines.
documents() {
    printf '%s\n' "$@" >"$page"
    tests/check_documents.sh "$page"
}

section 'correct documents'
expect_status 0 documents 'Text, and `tests/run.sh`.' '```console' '$ printf "%s\n" one two "3 of 4 in 0.71 s" long-line' 'one' 'two' \
    '3 of 4 in 99 s' 'long-line' '$ printf "a\nb\nc d e\nf\n"' 'a' '...' 'c d ...' '...' '$ cat <<END' '> here' '> END' 'here' \
    '$ echo no output is shown' '```' '```console exit=3' '$ true' '$ echo gone >&2; exit 3' 'gone' '```'
expect_match '^documents: 6 commands gave the output shown; documents: 1'
expect_status 0 documents '```console' '$ cohort --version' '$ pwd' '/home/you/cohort' '$ cat jobs/rbm.ini >/dev/null' '```'
expect_status 0 documents '```console long' '$ make soak PATTERN=fresh' 'not compared' '```'

section 'wrong documents'
# wrong PATTERN LINE...: a test: the document is refused, with a message.
wrong() {
    expect_status 1 documents "${@:2}"
    expect_match "$1"
}
wrong 'page.md:3: the command of line 2: line is not in the output' '```console' '$ echo 0.7791' '0.7792' '```'
wrong 'page.md:4: the command of line 2: line is not in the output' '```console' '$ printf "a\nb\n"' 'b' 'a' '```'
wrong 'page.md:3: the command of line 2: .*not all of the output' '```console' '$ printf "a\nb\n"' 'a' '```'
wrong 'page.md:2: exit code 7 instead of 0: exit 7' '```console' '$ exit 7' '```'
wrong 'page.md:3: exit code 0 instead of 7' '```console exit=7' '$ true' '$ true' '```'
wrong 'page.md:1: there is no tests/nothing.sh' 'See `tests/nothing.sh`.'
wrong 'page.md:1: there is no nothing.md to link to' 'See [nothing](nothing.md).'
wrong 'page.md:1: a command outside of a console block' '    $ cohort help'
wrong 'page.md:2: a command outside of a console block' '```' '$ cohort help' '```'
wrong 'page.md:1: 121 characters in a line' "$(printf '%0121d' 0)"
wrong 'page.md:2: exit code 2 .*make nothing' '```console long' '$ make nothing' '```'
wrong 'a block without an end' '```console' '$ true'

section 'rewriting output'
printf '%s\n' 'Before.' '```console' '$ printf "%s\n" "read 5 rows" skipped "wrote x" "done in 3 s"' 'read 4 rows' '...' 'done in 1 s' \
    '$ echo new' 'old' '$ echo "stopped after epoch 5"' '...' 'stopped after ...' '```' 'After.' >"$page"
expect_status 0 tests/check_documents.sh write "$page"
expect_equal 'Before. ```console $ printf "%s\n" "read 5 rows" skipped "wrote x" "done in 3 s" read 5 rows ... done in 3 s $ echo new
new $ echo "stopped after epoch 5" ... stopped after ... ``` After.' "$(paste -sd ' ' "$page" | sed 's/ new \$/\nnew $/')" 'the document'
