#!/bin/bash
# A training run killed at every call that changes its directory, or whose disk is full at that call, and then
# continued: the same bytes. tests/soak/soak_faults.sh does this to every command that writes.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/faults.sh
run "$COHORT" simulate irt --students 200 --items 10 --seed 1 -o "$TMP/class.h5"
train=("$COHORT" train model.kind=rbm model.preset=binomial model.hidden=4 optimizer.rate=0.001 train.batch=200 data="$TMP/class.h5"
    run.save_minutes=0)
run "${train[@]}" run="$TMP/one" train.epochs=1
at_first() { rm -rf "$1" && cp -r "$TMP/one" "$1"; }

section 'killed at every change'
everywhere signal=KILL 'write|link|rename|unlink' "$TMP/run" "${train[@]}" train.epochs=2 run="$TMP/run"
check "there were some ($N_FAULTS)" test "$N_FAULTS" -ge 12

section 'a full disk'
everywhere error=ENOSPC 'openat|pwrite64|write|link|fsync' "$TMP/run" "${train[@]}" train.epochs=2 run="$TMP/run"
check "there were some ($N_FAULTS)" test "$N_FAULTS" -ge 12

section 'a full disk at the end of a data set'
mkdir "$TMP/data"
simulate=("$COHORT" simulate irt --students 50 --items 5 -o "$TMP/data/class.h5")
places "$TMP/data" "${simulate[@]}"
for place in $(printf '%s\n' "${PLACES[@]}" | grep pwrite64 | tail -4 | tr ' ' =); do
    ended=0
    fault error=ENOSPC "${place/=/ }" "${simulate[@]}" || ended=$?
    expect_equal 74 "$ended" "exit code after $place"
    expect_match '^cohort: .*class.h5: .*is the disk full'
done

section 'input/output errors'
# broken FILE COMMAND...: tests: an input/output error at any call gives an error message and no incomplete file, or
# has no effect; at the calls counted by the last `places`.
broken() {
    local place ended
    for place in "${PLACES[@]}"; do
        rm -f "$1"
        ended=0
        fault error=EIO "$place" "${@:2}" || ended=$?
        case $ended in
        0) ;;
        74) grep -q '^cohort: ' "$LIB_ERR" || fail "$place: no sentence" ;;
        *) fail "$place: exit code $ended" ;;
        esac
        if [ -z "$(find "$(dirname "$1")" -name '*.tmp')" ]; then pass "$place"; else fail "$place: a temporary file"; fi
        rm -f "$1".tmp
    done
}
rm -f "$TMP/data/class.h5"
places "$TMP/data" "${simulate[@]}"
check 'there were some' test ${#PLACES[@]} -ge 20
mapfile -t PLACES < <(printf '%s\n' "${PLACES[@]}" | awk '$1 != "pwrite64" || $2 % 8 == 1')
broken "$TMP/data/class.h5" "${simulate[@]}"
run "${simulate[@]}"
places "$TMP/data" "$COHORT" inspect "$TMP/data/class.h5"
for place in "${PLACES[@]}"; do
    expect_status 0 fault error=EIO "$place" "$COHORT" inspect "$TMP/data/class.h5"
done
check 'there were some' test ${#PLACES[@]} -ge 1

section 'a limit on the file size'
for n in 1 64 300; do
    expect_status 74 bash -c "ulimit -f $n; exec \"\$@\"" bash "$COHORT" simulate irt --students 3000 --items 30 -o "$TMP/data/large.h5"
    expect_match '^cohort: .*large.h5'
    expect_equal '' "$(find "$TMP/data" -name 'large*')" 'nothing is half-written'
done
cp -r "$TMP/one" "$TMP/limited"
expect_status 74 bash -c 'ulimit -f 1; exec "$@"' bash "${train[@]}" train.epochs=2 run="$TMP/limited"
expect_match '^cohort: .*File too large.*raise the limit on file sizes'
check 'the checkpoint is intact' run "$COHORT" verify "$TMP/limited/last.h5"
