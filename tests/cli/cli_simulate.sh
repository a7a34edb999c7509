#!/bin/bash
# `cohort simulate` on the command line: always the same bytes, the requested shape, errors for wrong input.
. "$(dirname "$0")/../lib/lib.sh"

section irt
expect_status 0 "$COHORT" simulate irt --students 2000 --items 50 --skills 3 --seed 1 -o "$TMP/class.h5"
expect_match '^2000 students, 100000 attempts, 50 items, 3 skills'
expect_match '^attempts: training 80000, validation 10000, test 10000$'
for n in 2 3; do
    expect_status 0 ranks $n "$COHORT" simulate irt --students 2000 --items 50 --skills 3 --seed 1 -o "$TMP/class$n.h5"
done
expect_same "$TMP/class.h5" "$TMP/class2.h5" "$TMP/class3.h5"
expect_status 0 "$COHORT" simulate irt --students 2000 --items 50 --skills 3 --seed 2 -o "$TMP/other.h5"
check 'another seed is another class' test "$(sha256sum <"$TMP/class.h5")" != "$(sha256sum <"$TMP/other.h5")"

section bkt
expect_status 0 "$COHORT" simulate bkt --students 2000 --skills 5 --seed 1 -o "$TMP/bkt.h5"
expect_match '^2000 students, 100000 attempts, 20 items, 5 skills'

section grockit
expect_status 0 "$COHORT" simulate grockit --seed 1 -o "$TMP/grockit.h5"
expect_match '^131072 students, (49|50)[0-9]{5} attempts, 6046 items, 281 skills, 9 groups'
expect_match 'held-out outcomes are hidden'

section 'splits and shuffling'
expect_status 0 "$COHORT" simulate irt --students 100 --split folds=5/2 -o "$TMP/x.h5"
expect_match '^attempts: training 3000, validation 1000, test 1000$'
expect_status 0 "$COHORT" simulate irt --students 100 --shuffle-outcomes -o "$TMP/y.h5"
expect_match 'wrote'

section 'wrong usage'
expect_status 2 "$COHORT" simulate
expect_status 2 "$COHORT" simulate irt
expect_match 'no output; name the '
expect_status 2 "$COHORT" simulate irr -o "$TMP/z.h5"
expect_match "did you mean 'irt'"
expect_status 2 "$COHORT" simulate bkt --model 1pl -o "$TMP/z.h5"
expect_match 'simulate bkt does not accept --model'
expect_status 1 "$COHORT" simulate irt --students -5 -o "$TMP/z.h5"
expect_status 1 "$COHORT" simulate irt --model 3pl -o "$TMP/z.h5"
expect_match '1pl, 2pl'
expect_status 1 "$COHORT" simulate irt --missing 1 -o "$TMP/z.h5"
expect_match 'no attempts'
expect_status 1 ranks 2 "$COHORT" simulate bkt --skills 5 --items 3 -o "$TMP/z.h5"
expect_match '3 items cannot cover 5 skills'
check 'nothing is half-written' test ! -e "$TMP/z.h5"
