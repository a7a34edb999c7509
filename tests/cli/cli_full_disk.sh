#!/bin/bash
# A run on a disk that fills up: an error message and exit code 74, no hang, the old checkpoint intact, and finally
# the same bytes. The disk is a small one in memory, in a mount namespace that ends with the script.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/kills.sh
disk=$TMP/disk
mkdir -p "$disk"
if [ "${1:-}" != inside ]; then
    for how in -m -rm; do
        if unshare $how mount -t tmpfs none "$disk" 2>/dev/null; then
            LIB_RECORD=$LIB_RECORD unshare $how bash tests/cli/cli_full_disk.sh inside
            exit
        fi
    done
    skip 'a small disk cannot be mounted here'
fi
mount -t tmpfs -o size=600k none "$disk" || exit 70

class=$TMP/class.h5
run "$COHORT" simulate irt --students 600 --items 20 --seed 1 -o "$class"
small=(model.kind=rbm model.preset=binomial model.hidden=40 model.cd_steps=10 optimizer.rate=0.0001 train.batch=20 train.block=4
    train.epochs=12 train.seed=3 data="$class" run.save_minutes=0)

# fill KILOBYTES: leave only this much space.
fill() {
    rm -f "$disk/filler"
    head -c 1M /dev/zero >"$disk/filler" 2>/dev/null
    truncate -s "-${1}k" "$disk/filler"
}

section 'the reference run'
expect_status 0 on 2 "$COHORT" train "${small[@]}" run="$TMP/reference"
# Its beginning, before the best epoch, as after a kill.
expect_status 0 on 1 "$COHORT" train "${small[@]}" train.epochs=4 run="$TMP/half"
rm "$TMP/half/result.json"
check 'two checkpoints' test -s "$TMP/half/last.h5" -a -s "$TMP/half/previous.h5"

# expect_full N DIRECTORY: tests: N ranks report the full disk, once.
expect_full() {
    expect_status 74 on "$1" "$COHORT" train "${small[@]}" run="$2"
    expect_match '^cohort: .*(No space left on device|Disk quota exceeded)'
    expect_equal 1 "$(errors | grep -c '^cohort: ')" 'one sentence'
}

size=$(($(wc -c <"$TMP/half/last.h5") / 1024)) # of a checkpoint, in KB
for n in 1 3; do
    for room in 0 4 12 $((size - 4)); do
        section "$room KB left, ranks: $n"
        rm -rf "$disk/run" "$disk/filler"
        cp -r "$TMP/half" "$disk/run"
        fill "$room"
        expect_full $n "$disk/run"
        for file in last.h5 previous.h5 best.h5; do
            check "$file is whole" run "$COHORT" verify "$disk/run/$file"
        done
        expect_equal '' "$(find "$disk" -name '*.tmp')" 'no temporary files'
        rm "$disk/filler"
        expect_status 0 on $((4 - n)) "$COHORT" train "${small[@]}" run="$disk/run"
        expect_same "$TMP/reference/last.h5" "$disk/run/last.h5"
        expect_same "$TMP/reference/best.h5" "$disk/run/best.h5"
        expect_log "$disk/run/log.jsonl" 12
    done

    section "a full disk at the start, ranks: $n"
    rm -rf "$disk/run"
    fill 8
    expect_full $n "$disk/run"
    rm "$disk/filler"
    expect_status 0 on $n "$COHORT" train "${small[@]}" run="$disk/run"
    expect_same "$TMP/reference/last.h5" "$disk/run/last.h5"

    section "a damaged checkpoint and a full disk, ranks: $n"
    rm -rf "$disk/run"
    cp -r "$TMP/half" "$disk/run"
    rm -f "$disk/run/previous_best.h5" # it would leave room when it becomes the best again
    flip "$disk/run/last.h5"
    fill 12
    expect_full $n "$disk/run"
    rm "$disk/filler"
    expect_status 0 on $n "$COHORT" train "${small[@]}" run="$disk/run"
    expect_match '^continuing .*previous.h5'
    expect_same "$TMP/reference/last.h5" "$disk/run/last.h5"
done

section 'a read-only disk'
rm -rf "$disk/run"
cp -r "$TMP/half" "$disk/run"
mount -o remount,ro "$disk"
for n in 1 3; do
    expect_status 74 on $n "$COHORT" train "${small[@]}" run="$disk/run"
    expect_match '^cohort: .*Read-only file system'
    expect_status 74 on $n "$COHORT" train "${small[@]}" run="$disk/new"
    expect_match '^cohort: .*new.*Read-only file system'
done

section 'other commands'
mount -o remount,rw "$disk"
fill 4
for n in 1 2; do
    expect_status 74 on $n "$COHORT" simulate irt --students 2000 --seed 1 -o "$disk/class.h5"
    expect_equal 1 "$(errors | grep -c '^cohort: ')" 'one sentence'
    check 'nothing is half-written' test ! -e "$disk/class.h5"
    expect_equal '' "$(find "$disk" -name '*.tmp')" 'no temporary files'
done
expect_status 74 "$COHORT" predict "$TMP/half" -o "$disk/p.csv"
expect_no_match 'previous file'
echo student,probability >"$disk/p.csv"
expect_status 74 "$COHORT" predict "$TMP/half" -o "$disk/p.csv"
expect_match 'No space left on device; the previous file is intact; free some space'
