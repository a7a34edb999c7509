# shellcheck shell=bash
# A fault at every system call: for tests/cli/cli_faults.sh and tests/soak/soak_faults.sh, after lib.sh. A command is
# traced once; each call by which it changes something below a directory is a place, at which the next time
# it is killed, or the disk is full.

# places DIRECTORY COMMAND...: runs the command and leaves its places in PLACES, as `call number`, and in
# WATCHED what makes strace look at nothing else. Leaves this script where there is no strace.
places() {
    local directory=$1 path
    shift
    command -v strace >"$TMP/strace" || skip 'there is no strace'
    if ! run strace -y -o "$TMP/trace" -e trace=openat,mkdir,write,pwrite64,ftruncate,fsync,link,rename,unlink,close \
        "$@"; then
        [ -s "$TMP/trace" ] || skip 'strace may not trace here'
        fail "without a fault: $*"
    fi
    grep -E "^((openat|mkdir|link|rename|unlink)\\([^\"]*\"|[a-z0-9]+\\([0-9]+<)$directory" "$TMP/trace" >"$TMP/calls"
    mapfile -t PLACES < <(awk -F'(' '{ n[$1]++ } !/^openat/ || /O_CREAT|O_TRUNC/ { print $1, n[$1] }' "$TMP/calls")
    WATCHED=()
    while IFS= read -r path; do WATCHED+=(-P "$path"); done \
        < <(grep -o "${directory}[^>\"]*" "$TMP/calls" | sort -u)
}

# fault HOW PLACE COMMAND...: the command with signal=KILL or error=ENOSPC at a place; its status is passed on.
fault() {
    local call=${2% *} number=${2#* } how=$1
    shift 2
    run timeout -k 5 60 strace -qq -o "$TMP/trace" "${WATCHED[@]}" -e "trace=$call" \
        -e "inject=$call:$how:when=$number" "$@"
}

# at_first DIRECTORY: the directory as it is before the command; a script may say otherwise.
at_first() { rm -rf "$1"; }

# same_state REFERENCE DIRECTORY: whether it has the same files, but for locks, moments and what was before,
# and nothing that was not finished.
same_state() {
    local file
    [ -z "$(find "$2" -name '*.tmp')" ] || return
    while IFS= read -r file; do
        cmp "$1/$file" "$2/$file" || return
    done < <(cd "$1" && find . -type f ! -name lock ! -name claim ! -name log.jsonl ! -name 'rung-*.json' \
        ! -name "previous*.h5")
} >"$LIB_OUT" 2>"$LIB_ERR"

# everywhere HOW CALLS DIRECTORY COMMAND...: a test for each place whose call is one of CALLS (as in
# 'write|rename'): the command ends as it should at that fault, and the same command again gives the bytes of
# one that was left alone. Leaves their number in N_FAULTS.
everywhere() {
    local how=$1 calls=$2 directory=$3 place ended
    shift 3
    N_FAULTS=0
    at_first "$directory"
    places "$directory" "$@"
    rm -rf "$directory.reference"
    mv "$directory" "$directory.reference"
    for place in "${PLACES[@]}"; do
        [[ ${place% *} =~ ^($calls)$ ]] || continue
        N_FAULTS=$((N_FAULTS + 1))
        at_first "$directory"
        ended=0
        fault "$how" "$place" "$@" 2>"$TMP/said" || ended=$?
        # What the disk refuses may be dispensable, such as a second name for the old checkpoint.
        case $how:$ended in
        signal=KILL:137 | error=*:0) ;;
        error=*:74) grep -Eq '^cohort: .*(No space left|is the disk full)' "$LIB_ERR" || fail "$how at $place: no sentence" ;;
        *) fail "$how at $place: exit code $ended" ;;
        esac
        if ! run "$@"; then
            fail "after $how at $place: $*"
        elif ! same_state "$directory.reference" "$directory"; then
            fail "after $how at $place: other bytes than without"
        else
            pass "$how at $place"
        fi
    done
}
