#!/bin/bash
# Runs every fuzzer for an hour, or for FUZZ_LIMIT seconds.
# limit: 86400
# alone: yes
. "$(dirname "$0")/../lib/lib.sh"
section fuzz
command -v clang >/dev/null || skip 'clang is not installed'
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    expect_status 0 make --no-print-directory fuzz PATTERN="$name" LIMIT="${FUZZ_LIMIT:-3600}"
    output
done
