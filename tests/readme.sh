#!/bin/bash
# Writes the reference of options and settings into README.md (`tests/readme.sh write`), or checks that it is up to date
# (`tests/readme.sh`, part of `make check`).
set -eu
cd "$(dirname "$0")/.."
COHORT=${COHORT:-build/cohort}
. tests/lib/mpi.sh
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
{
    sed '/^<!-- reference: begin -->$/q' README.md
    "$COHORT" help --markdown | sed 's/^##/###/'
    sed -n '/^<!-- reference: end -->$/,$p' README.md
} >"$fresh"
if [ "${1:-}" = write ]; then
    cat "$fresh" >README.md
elif ! diff README.md "$fresh" >/dev/null; then
    echo 'README.md: the reference differs from the output of cohort help --markdown; run tests/readme.sh write' >&2
    exit 1
fi
