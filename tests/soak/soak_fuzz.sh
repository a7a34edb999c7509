#!/bin/bash
# Fuzzers of all that is read, for an hour each or as long as LIMIT= says.
# limit: 86400
# alone: yes
. "$(dirname "$0")/../lib/lib.sh"
section fuzz
command -v clang >/dev/null || skip 'there is no clang'
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    expect_status 0 make --no-print-directory fuzz PATTERN="$name" LIMIT="${FUZZ_LIMIT:-3600}"
    output
done
