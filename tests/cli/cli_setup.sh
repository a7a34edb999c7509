#!/bin/bash
# not under: debug double sanitize
# The set-up on machines that have everything, something or nothing, simulated with stand-ins for dpkg-query, apt-get,
# sudo and id; libraries that lack required functions, or belong to another MPI; the test runner and the layer check
# on small trees that are wrong on purpose; help and install. soak_fresh.sh does this on real machines.
. "$(dirname "$0")/../lib/lib.sh"

# machine NAME: a PATH with stand-ins: $TMP/installed lists the installed packages, $TMP/calls the calls.
machine() {
    bin=$TMP/$1
    mkdir -p "$bin"
    : >"$TMP/calls"
    for tool in bash sh env sed grep cat mktemp rm true tail printf xargs head dirname sort wc; do
        ln -sf "$(type -P $tool)" "$bin/$tool"
    done
}
stand_in() {
    printf '#!/bin/bash\n%s\n' "$2" >"$bin/$1"
    chmod +x "$bin/$1"
}
debian() {
    # shellcheck disable=SC2016
    stand_in dpkg-query '
        for package in "${@:4}"; do
            if grep -qx "$package" "$TMP/installed"; then echo "install ok installed"; fi
        done'
    # shellcheck disable=SC2016
    stand_in apt-get 'echo "apt-get $*" >>"$TMP/calls"
        [ -z "${APT_STATUS:-}" ] || exit "$APT_STATUS"
        printf "%s\n" "$@" >>"$TMP/installed"'
    stand_in id "echo $1"
}
setup() { PATH=$bin env -u OMPI_CC -u MPICH_CC tests/setup.sh "$@"; }
all_packages='gcc libc6-dev pkg-config libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libopenblas-dev
    libsleef-dev libxxhash-dev libjansson-dev zlib1g-dev librandom123-dev libscalapack-openmpi-dev
    libcmocka-dev slurmctld slurmd slurm-client munge iproute2 man-db groff-base strace chromium
    librsvg2-bin python3-h5py gnuplot-nox'

section "all packages installed: apt is not called"
machine full
debian 0
# shellcheck disable=SC2086
printf '%s\n' $all_packages >"$TMP/installed"
expect_status 0 setup install build test demo
expect_equal "" "$(cat "$TMP/calls")" "calls of apt-get"
expect_equal "" "$(output)$(errors)" "words"

section "nothing installed, as root: apt gets the whole list"
machine bare
debian 0
: >"$TMP/installed"
expect_status 0 setup install build test
expect_match 'apt-get .*install .*--no-install-recommends gcc libc6-dev pkg-config libopenmpi-dev' "$TMP/calls"
expect_match 'libcmocka-dev slurmctld slurmd slurm-client munge iproute2 man-db groff-base strace chromium librsvg2-bin python3-h5py$' "$TMP/calls"
expect_equal 2 "$(wc -l <"$TMP/calls")" "calls: update and install"

section "one package missing: apt gets that one"
machine one
debian 0
for tool in gcc as ld mpicc pkg-config mpirun; do ln -sf "$(type -P $tool)" "$bin/$tool"; done
# shellcheck disable=SC2086
printf '%s\n' $all_packages | grep -v gnuplot >"$TMP/installed"
expect_status 0 setup install build demo
expect_match 'install -y --no-install-recommends gnuplot-nox$' "$TMP/calls"

section "not root, with sudo"
machine sudo
debian 1000
: >"$TMP/installed"
# shellcheck disable=SC2016
stand_in sudo '[ "$1" != -n ] || shift; echo "sudo $*" >>"$TMP/calls"; exec "$@"'
expect_status 0 setup install test
expect_match '^sudo env DEBIAN_FRONTEND=noninteractive apt-get .*install .* libcmocka-dev .*iproute2 man-db groff-base strace chromium librsvg2-bin python3-h5py$' "$TMP/calls"

section "not root, no sudo: prints a list"
machine user
debian 1000
: >"$TMP/installed"
expect_status 1 setup install build test
expect_match '^ +libhdf5-openmpi-dev +HDF5 with MPI'
expect_match '^ +libcmocka-dev '
expect_match 'PKG_CONFIG_PATH'
expect_equal "" "$(cat "$TMP/calls")" "calls of apt-get"

section "no apt: prints a list"
machine other
expect_status 1 setup install build
expect_match '^ +libsleef-dev '

section "apt fails: prints its output and the list"
machine broken
debian 0
: >"$TMP/installed"
APT_STATUS=100 expect_status 1 setup install build
expect_match '^ +gcc '

section "check never installs"
machine check
debian 0
: >"$TMP/installed"
expect_status 1 setup check build
expect_equal "" "$(cat "$TMP/calls")" "calls of apt-get"

section "only optional packages missing: continues"
machine wishes
for tool in gcc as ld mpicc pkg-config mpirun; do ln -sf "$(type -P $tool)" "$bin/$tool"; done
expect_status 0 setup install build demo
expect_match 'gnuplot-nox .*\(optional\)'

section "a package that apt reports as installed but that does not work: tried once, then a list"
machine useless
debian 0
: >"$TMP/installed"
stand_in apt-get 'echo "apt-get $*" >>"$TMP/calls"'
expect_status 1 setup install build
expect_equal 2 "$(wc -l <"$TMP/calls")" "calls: update and install"
expect_match '^ +libsleef-dev '

section "a library is detected by its functions, not by its header"
printf 'void cblas_dsymv(void);\n' >"$TMP/cblas.h"
echo 'void cblas_dsymv(void) {}' | "${CC:-mpicc}" -x c -shared -o "$TMP/libreference.so" -
BLAS_CFLAGS=-I$TMP BLAS_LIBS="-L$TMP -lreference" expect_status 1 tests/setup.sh libs build
expect_match '^ +libopenblas-dev '
expect_no_match 'libhdf5'
ZLIB_LIBS=-lm expect_status 1 tests/setup.sh libs build
expect_match '^ +zlib1g-dev '
# The first name that pkg-config knows does not link; the next does.
mkdir "$TMP/pc"
printf 'Name: a\nDescription: a\nVersion: 1\nLibs: -lno-such-library\n' >"$TMP/pc/sleef.pc"
PKG_CONFIG_PATH=$TMP/pc expect_status 0 tests/setup.sh libs build
expect_match '(^| )-lsleef( |$)'

section "only one MPI"
own=$(CC=${CC:-mpicc} tests/setup.sh libs build)
for other in mpicc.openmpi mpicc.mpich; do
    type -P $other >/dev/null || continue
    # shellcheck disable=SC2086
    theirs=$(CC=$other tests/setup.sh libs build 2>/dev/null) || continue
    [ "$theirs" != "$own" ] || continue
    # shellcheck disable=SC2086
    echo 'int main(void) { return 0; }' | "${CC:-mpicc}" -x c - -x none -Wl,--no-as-needed -o "$TMP/both" $own $theirs
    expect_status 1 tests/setup.sh one-mpi "$TMP/both"
    expect_match 'is linked with two MPIs, libmpi[^ ]* and libmpi[^ ]*'
    HDF5_CFLAGS=$(CC=$other tests/setup.sh cflags build) HDF5_LIBS=$theirs expect_status 1 tests/setup.sh libs build
    expect_match 'libhdf5-.* is for another MPI: libmpi.*where .* has libmpi'
    expect_status 0 env CC=$other tests/setup.sh launcher "$TMP/launcher"
    expect_status 0 "$TMP/launcher/mpirun" -n 2 bash -c 'echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
    expect_match '^rank 1$'
done
expect_status 0 tests/setup.sh one-mpi "$COHORT"
expect_status 0 tests/setup.sh launcher "$TMP/launcher"

section "flags supported by the compiler"
expect_status 0 tests/setup.sh known -Wno-unused -fno-such-flag -O2
expect_equal "-Wno-unused -O2" "$(output)" "the known ones"

section "MPI only under a launcher"
# An MPI that cannot start: it is told to use components that do not exist.
expect_status 0 env OMPI_MCA_pml=none MPIR_CVAR_CH4_NETMOD=none MPIR_CVAR_OFI_USE_PROVIDER=none "$COHORT" --version
expect_status 0 ranks 2 "$COHORT" --version
expect_equal 1 "$(output | wc -l)" "lines of two ranks"
for said in OMPI_COMM_WORLD_SIZE=2 'SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2'; do
    # shellcheck disable=SC2086
    expect_status 1 env $said "$COHORT" --version
    expect_match '^cohort: 2 processes were started \(.*\), but MPI sees only one: use the mpirun of '
    # shellcheck disable=SC2086
    expect_status 0 env $said COHORT_MPI=no "$COHORT" --version
done
expect_status 0 env SLURM_JOB_ID=1 SLURM_NTASKS=8 SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=8 "$COHORT" --version

section "hardening"
expect_status 0 readelf -dW "$COHORT"
expect_match 'BIND_NOW'
expect_status 0 readelf -sW --dyn-syms "$COHORT"
expect_match '__stack_chk_fail'
expect_match '__(mem|str|[a-z]*printf)[a-z]*_chk'

section "flags"
XXHASH_LIBS='-lxxhash -ldl' expect_status 0 tests/setup.sh libs build
expect_match '(^| )-lxxhash -ldl( |$)'
expect_match '(^| )-lsleef( |$)'
SLEEF_CFLAGS=-I/where expect_status 0 tests/setup.sh cflags build
expect_match '(^| )-I/where( |$)'
JANSSON_CFLAGS='-nostdinc' expect_status 1 tests/setup.sh cflags build
expect_match 'libjansson-dev'
expect_status 2 tests/setup.sh

section "make help"
expect_status 0 make help
for target in all test check bench soak demo install uninstall clean help; do
    expect_match "^$target "
done
expect_status 2 make VARIANT=fast
expect_match "no variant 'fast'"

section "make in paths with spaces and special characters"
here="$TMP/a checkout/tree"
mkdir -p "$here/build" "$TMP/a/build" "$TMP/b keep/build"
cp Makefile "$here"
expect_status 2 make -C "$here" clean
expect_match "make cannot work in '$here', whose path has a space or %; move the checkout"
check "nothing is removed" test -d "$TMP/a/build" -a -d "$here/build"
expect_status 2 make -C "$here" all
expect_equal "Makefile build" "$(cd "$here" && echo *)" "nothing is created"
# shellcheck disable=SC2088 # a name that begins with ~
for path in "$TMP/b keep/build" "a'b" 'a"b' 'a$$b' 'a#b' 'a%b' 'a:b' 'a;b' 'a(b' 'a)b' 'a*' 'a=b' 'a\b' '~/b' -b; do
    expect_status 2 make -n clean BUILD="$path"
    expect_match 'make cannot build in BUILD=.*, which has a space or a special character'
done
for path in '' / . .. "$PWD" "$PWD/" "$PWD/build/.."; do
    expect_status 2 make -n clean BUILD="$path"
    expect_match 'holds more than what is built; choose another'
done
for path in src tests/x ./build/../include; do
    expect_status 2 make -n clean BUILD="$path"
    expect_match 'holds the source; choose another'
done
expect_status 0 make -n clean BUILD="$PWD/build/x"
expect_equal "rm -rf build/x" "$(output)"
# A checkout's own path may have quotes, as no rule has it.
cp Makefile "$TMP/b keep"
mv "$TMP/b keep" "$TMP/it's_9\$"
expect_status 0 make -C "$TMP/it's_9\$" clean
check "the build directory is removed" test ! -e "$TMP/it's_9\$/build"

section "the test runner"
tree=$TMP/tree
mkdir -p "$tree/tests/lib" "$tree/tests/cli" "$tree/tests/unit" "$tree/build/tests"
cp tests/run.sh "$tree/tests"
cp tests/lib/lib.sh tests/lib/mpi.sh "$tree/tests/lib"
begin='. "$(dirname "$0")/../lib/lib.sh"'
runner() { env -u TMP -u LIB_RECORD -u BUILD -u LIMIT "$tree/tests/run.sh" "$@"; }
expect_status 1 runner
expect_equal "0 passed, 0 failed" "$(output | tail -1)" "nothing to run is a failure"
printf '%s\nexpect_equal 1 1\n(skip "no data")\nexpect_status 1 false\n' "$begin" >"$tree/tests/cli/cli_good.sh"
expect_status 0 runner
expect_equal "2 passed, 0 failed" "$(output | tail -1)" "counts"
expect_match 'skipped cli_good: no data'
printf '%s\nexpect_equal 1 2 "one and two"\nexpect_equal 1 1\n' "$begin" >"$tree/tests/cli/cli_bad.sh"
printf '%s\nexpect_equal 1 1\nexit 3\n' "$begin" >"$tree/tests/cli/cli_exit.sh"
printf '# limit: 2\n%s\nexpect_equal 1 1\nsleep 60\n' "$begin" >"$tree/tests/cli/cli_hang.sh"
printf '%s\n' "$begin" >"$tree/tests/cli/cli_void.sh"
expect_status 1 runner
expect_equal "5 passed, 4 failed" "$(output | tail -1)" "counts of failures"
expect_match "one and two: '2' instead of '1'"
expect_match 'exit code 3'
expect_match 'timed out after 2 s'
expect_match 'it ran no checks'
expect_status 0 runner good
sed -i 1d "$tree/tests/cli/cli_hang.sh"
expect_status 1 env -u BUILD LIMIT=1 "$tree/tests/run.sh" hang
expect_match 'timed out after 1 s'
echo '/* ranks: 1 3 */' >"$tree/tests/unit/test_tap.c"
# shellcheck disable=SC2016
printf '#!/bin/bash\necho 1..3\necho "ok 1 - a"\necho "not ok 2 # SKIP b"
[ "$OMPI_COMM_WORLD_RANK" = 2 ] && sleep 1 && exit 1\necho "ok 3 - c"\n' >"$tree/build/tests/test_tap"
chmod +x "$tree/build/tests/test_tap"
expect_status 1 runner test_tap
expect_match '^ok +test_tap, ranks: 1 +2 passed, 1 skipped'
expect_match '^FAILED test_tap, ranks: 3 +1 passed, 1 failed, 1 skipped'
echo >"$tree/tests/unit/test_unbuilt.c"
expect_status 1 runner unbuilt
expect_match 'has not been built'

section "the layer check"
tree=$TMP/layers
mkdir -p "$tree/src/base" "$tree/src/data" "$tree/src/models/a" "$tree/src/models/b" "$tree/build/src/data"
layers() { BUILD=$tree/build tests/check_layers.sh "$tree"; }
# header PATH: a header that follows the rules.
header() {
    local guard
    guard=$(basename "${1^^}")
    guard=COHORT_${guard/./_}
    printf '/* Something. */\n#ifndef %s\n#define %s\n#endif\n' "$guard" "$guard" >"$tree/$1"
}
low() { printf '#include "base/low.h"\n#include <stdio.h>\n' >"$tree/src/base/low.c"; }
header src/base/low.h
header src/data/high.h
printf '#include "base/low.h"\nint high_f(void);\nint high_f(void) { return 0; }\n' >"$tree/src/data/high.c"
low
expect_status 0 layers
printf '#include "data/high.h"\n' >>"$tree/src/base/low.c"
expect_status 1 layers
expect_match '^src/base/low.c:3: src/base includes "data/high.h" of a higher layer'
printf '#include "high.h"\n' >"$tree/src/base/low.c"
expect_status 1 layers
expect_match '^src/base/low.c:1: includes "high.h", which is not the folder and name of a header of this project'
low
header src/models/a/a.h
printf '#include "models/a/a.h"\n' | tee "$tree/src/models/a/a.c" >"$tree/src/models/b/b.c"
expect_status 1 layers
expect_match '^src/models/b/b.c:1: a model includes "models/a/a.h" of another model'
expect_no_match '^src/models/a/a.c'
rm -r "$tree/src/models"
printf 'int other(void) { return 0; }\n' | "${CC:-mpicc}" -x c -c -o "$tree/build/src/data/high.o" -
expect_status 1 layers
expect_match "^src/data/high.c: external symbol 'other'"
rm "$tree/build/src/data/high.o"
header src/base/wrong.h
sed -i 's/WRONG/RIGHT/; 1s/.*/#pragma once/' "$tree/src/base/wrong.h"
expect_status 1 layers
expect_match '^src/base/wrong.h:1: the first line'
expect_match '^src/base/wrong.h: its guard must be COHORT_WRONG_H'
rm "$tree/src/base/wrong.h"
cp "$tree/src/base/low.c" "$tree/src/data/low.c"
expect_status 1 layers
expect_match '^low.c: more than one file has this name'
rm "$tree/src/data/low.c"
printf '/* TO%s */\n' DO >>"$tree/src/base/low.c"
expect_status 1 layers
expect_match '^src/base/low.c: unfinished'
low
seq 601 | sed 's/.*/;/' >>"$tree/src/base/low.c"
expect_status 1 layers
expect_match '^src/base/low.c: has 603 lines'
low
mkdir "$tree/src/elsewhere"
cp "$tree/src/base/low.c" "$tree/src/elsewhere/orphan.c"
expect_status 1 layers
expect_match '^src/elsewhere/orphan.c: is not in a folder that is a layer'

section "install and uninstall"
build=${COHORT%/cohort}
root="$TMP/the root's"
build=${build#"$PWD"/}
# -o: make does not rebuild the program, whatever its settings: other tests are running it.
expect_status 0 make -o "$build/cohort" BUILD="$build" install DESTDIR="$root" PREFIX='/us r'
expect_status 0 "$root/us r/bin/cohort" --version
expect_match '^cohort [0-9]'
pages=$(cd "$root/us r/share/man" && echo man*/*)
expect_equal "$(for page in cohort $("$COHORT" help | sed -n '/^COMMANDS/,/^$/s/^    \([a-z]\+\) .*/cohort-\1/p'); do
    echo "man1/$page.1"
done | sort | xargs) man5/cohort-files.5 man7/cohort-models.7 man7/cohort-settings.7" "$pages" "man pages"
for page in $pages; do
    name=$(basename "$page")
    "$COHORT" help "$(sed 's/^cohort-//; s/\.[157]$//' <<<"$name")" --man >"$TMP/$name"
    expect_same "$TMP/$name" "$root/us r/share/man/$page"
done
check "job templates" test -s "$root/us r/share/cohort/jobs/rbm.ini"
expect_status 0 make BUILD="$build" uninstall DESTDIR="$root" PREFIX='/us r'
expect_equal "" "$(find "$root" -type f)" "what is left"
