#!/bin/bash
# limit: 14400
# alone: yes
# The set-up on fresh machines: debootstrap makes root directories from this machine's mirror, each with some packages
# that could interfere. In each, a clone of the project runs `make demo` and `make test`, which must succeed. Where the
# program, its libraries and mpirun have the checksums of an earlier root that passed all tests, the tests would do the
# same again; only those of the set-up and of MPI run.
#
#     make soak PATTERN=fresh
#     FRESH='nothing mpich' FRESH_TESTS=test_comm make soak PATTERN=fresh     only these roots, only these tests
#     FRESH_DIRECTORY=/var/tmp/fresh    keep the base, the downloaded packages and what has passed there: the next time
#                                       continues where this one was stopped
. "$(dirname "$0")/../lib/lib.sh"
[ "$(id -u)" = 0 ] || skip "only root can make root directories"
type -P debootstrap >/dev/null || skip "debootstrap is not installed"

# The packages that each root has at the start.
declare -A has=(
    [nothing]=''
    [reference]='libblas-dev liblapack-dev'
    [serial]='libopenblas-serial-dev'
    [mpich]='mpich libmpich-dev'
    [hdf5]='libhdf5-dev'
    [hdf5_mpich]='libhdf5-mpich-dev'
    [scalapack_mpich]='libscalapack-mpich-dev'
    [everything]='libblas-dev liblapack-dev libopenblas-serial-dev mpich libmpich-dev libhdf5-dev libhdf5-mpich-dev
        libscalapack-mpich-dev'
)
names=${FRESH:-nothing reference serial mpich hdf5 hdf5_mpich scalapack_mpich everything}

# The first mirror of this release in apt's lists, of either format: "URI SUITE".
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    awk -v suite="$suite" '
        /^deb / { sub(/\[[^]]*\]/, ""); if ($3 == suite) { print $2; exit } }
        /^URIs:/ { uri = $2 }
        /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == suite) { print uri; exit } }')
[ -n "$mirror" ] || skip "apt's sources have no mirror of $suite"

home=${FRESH_DIRECTORY:-$TMP}
mkdir -p "$home/packages"
root=$home/root

mounts=(proc dev dev/shm dev/pts var/cache/apt/archives)
detach() {
    local i
    for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
        ! mountpoint -q "$root/${mounts[i]}" || umount "$root/${mounts[i]}" || umount -l "$root/${mounts[i]}"
    done
    ! mountpoint -q "$root/shared" || umount "$root/shared"
}
leave() {
    detach
    rm -rf --one-file-system "$root"
}
trap 'leave' EXIT
trap 'exit 130' INT TERM
attach() {
    mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/var/cache/apt/archives"
    mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev" && mkdir "$root/dev/shm" "$root/dev/pts" &&
        mount -t tmpfs tmpfs "$root/dev/shm" && mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" &&
        mount --bind "$home/packages" "$root/var/cache/apt/archives" || return
    local node
    for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"; done
    mknod -m 666 "$root/dev/tty" c 5 0
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    local n=0
    for node in stdin stdout stderr; do ln -s /proc/self/fd/$((n++)) "$root/dev/$node"; done
    if [ -d ../shared ]; then
        mkdir -p "$root/shared" && mount --bind -o ro ../shared "$root/shared"
    fi
}
# --foreground: signals to this script reach the processes inside.
inside() {
    timeout --foreground "${FRESH_LIMIT:-7200}" chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@" </dev/null
}

# The checksum of the tests and of what runs in them: the program without the compiler's remarks, its libraries and
# mpirun.
fingerprint() {
    {
        git -C "$home/project" rev-parse HEAD:tests
        checksums
    } | sha256sum | cut -c 1-16
}
checksums() {
    inside sh -c 'cd /tmp && objcopy --strip-debug /project/build/cohort cohort && sha256sum <cohort && rm cohort &&
        ldd /project/build/cohort | sed -n "s/.*=> \([^ ]*\).*/\1/p" | sort | xargs sha256sum &&
        sha256sum "$(readlink -f "$(command -v mpirun)")"'
}
passed=$home/passed # fingerprints of roots that passed all tests, with their names
touch "$passed"

section "the base"
leave
if [ ! -e "$home/base/made" ]; then
    rm -rf "$home/base"
    expect_status 0 debootstrap --variant=minbase --include=ca-certificates,make,git "$suite" "$home/base" "$mirror"
    touch "$home/base/made"
fi
rm -rf "$home/project"
git clone -q --no-hardlinks "$PWD" "$home/project" || skip "the project is not a git repository"

for name in $names; do
    section "a root with $name"
    leave
    cp -a "$home/base" "$root"
    cp -a "$home/project" "$root/project"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # As on an installed machine: MPI looks up the host's name, and without this waits for a name server each time.
    printf '127.0.0.1 localhost %s\n' "$(uname -n)" >"$root/etc/hosts"
    # If this machine's apt needs a proxy, the root's does too.
    cp -r /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null
    check "mounted" attach || continue
    if [ -n "${has[$name]}" ]; then
        # shellcheck disable=SC2086
        expect_status 0 inside sh -c "apt-get -q update && apt-get -q install -y --no-install-recommends ${has[$name]//$'\n'/ }"
    fi
    expect_status 0 inside make -C /project demo
    same=$(fingerprint)
    alike=$(sed -n "s/^$same //p" "$passed" | head -1)
    tests=${FRESH_TESTS:-${alike:+test_comm cli_setup cli_bits}}
    echo "$name ($same): ${tests:-all tests}${alike:+, since all else is that of $alike}"
    expect_status 0 inside make -C /project test PATTERN="$tests"
    expect_match '^[1-9][0-9]* passed, 0 failed$'
    if [ -z "$tests" ] && output | grep -Eq '^[1-9][0-9]* passed, 0 failed$'; then echo "$same $name" >>"$passed"; fi
    output | grep -E -A 12 '^FAILED|passed, [0-9]* failed'
    if [ "$name" = everything ]; then
        section "the same with MPICH"
        expect_status 0 inside make -C /project demo CC=mpicc.mpich BUILD=build/mpich
        expect_status 0 inside sh -c 'ldd /project/build/mpich/cohort'
        expect_match 'libmpich\.so'
        expect_no_match 'libmpi\.so'
    fi
    inside /project/build/cohort doctor 2>/dev/null | sed -n "s/^  library */$name: MPI is /p"
    detach
done
