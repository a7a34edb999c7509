# shellcheck shell=bash
# Injects a fault at every system call: for tests/cli/cli_faults.sh and tests/soak/soak_faults.sh, after lib.sh. A
# command is traced once. Each call that changes something below a directory is a place: the next run is killed there,
# or finds the disk full.

# places DIRECTORY COMMAND...: runs the command and stores its places in PLACES, as `call number`, and in WATCHED the
# options that limit strace to these files. Skips the rest of the script without strace.
places() {
    local directory=$1 path
    shift
    command -v strace >"$TMP/strace" || skip 'strace is not installed'
    if ! run strace -y -o "$TMP/trace" -e trace=openat,mkdir,write,pwrite64,ftruncate,fsync,link,rename,unlink,close \
        "$@"; then
        [ -s "$TMP/trace" ] || skip 'strace is not allowed to trace here'
        fail "without a fault: $*"
    fi
    grep -E "^((openat|mkdir|link|rename|unlink)\\([^\"]*\"|[a-z0-9]+\\([0-9]+<)$directory" "$TMP/trace" >"$TMP/calls"
    mapfile -t PLACES < <(awk -F'(' '{ n[$1]++ } !/^openat/ || /O_CREAT|O_TRUNC/ { print $1, n[$1] }' "$TMP/calls")
    WATCHED=()
    while IFS= read -r path; do WATCHED+=(-P "$path"); done \
        < <(grep -o "${directory}[^>\"]*" "$TMP/calls" | sort -u)
}

# fault HOW PLACE COMMAND...: runs the command with signal=KILL or error=ENOSPC at a place; returns its status.
fault() {
    local call=${2% *} number=${2#* } how=$1
    shift 2
    run timeout -k 5 60 strace -qq -o "$TMP/trace" "${WATCHED[@]}" -e "trace=$call" \
        -e "inject=$call:$how:when=$number" "$@"
}

# at_first DIRECTORY: restores the directory as it was before the command; a script may redefine this.
at_first() { rm -rf "$1"; }

# same_state REFERENCE DIRECTORY: whether it has the same files, except for locks, files with times and previous
# checkpoints, and no unfinished ones.
same_state() {
    local file
    [ -z "$(find "$2" -name '*.tmp')" ] || return
    while IFS= read -r file; do
        cmp "$1/$file" "$2/$file" || return
    done < <(cd "$1" && find . -type f ! -name lock ! -name claim ! -name log.jsonl ! -name 'rung-*.json' \
        ! -name "previous*.h5")
} >"$LIB_OUT" 2>"$LIB_ERR"

# everywhere HOW CALLS DIRECTORY COMMAND...: one test for each place whose call is one of CALLS (as in 'write|rename'):
# the command exits as expected at that fault, and the same command again gives the bytes of an undisturbed run. Stores
# the number of places in N_FAULTS.
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
        # A failed call may not matter, such as a second name for the old checkpoint.
        case $how:$ended in
        signal=KILL:137 | error=*:0) ;;
        error=*:74) grep -Eq '^cohort: .*(No space left|is the disk full)' "$LIB_ERR" || fail "$how at $place: no error message" ;;
        *) fail "$how at $place: exit code $ended" ;;
        esac
        if ! run "$@"; then
            fail "after $how at $place: $*"
        elif ! same_state "$directory.reference" "$directory"; then
            fail "after $how at $place: the bytes differ from an undisturbed run"
        else
            pass "$how at $place"
        fi
    done
}
