#!/bin/bash
# limit: 20000
# The same bits on ARM: cross-builds for arm64, runs its unit tests and a small training of every kind under emulation,
# compares them with this machine and prints the checksums. lme, which depends on the BLAS, agrees to 1e-9 or the
# last bit of a float. The libraries are downloaded from this machine's package sources into a directory; nothing is installed.
. "$(dirname "$0")/../lib/lib.sh"
. tests/lib/bits.sh
for need in aarch64-linux-gnu-gcc qemu-aarch64-static apt-get dpkg; do
    command -v $need >/dev/null || skip "$need is not installed (Debian: gcc-aarch64-linux-gnu, qemu-user-static)"
done
packages="libopenmpi-dev libhdf5-openmpi-dev libopenblas-dev libsleef-dev libxxhash-dev libjansson-dev zlib1g-dev
    librandom123-dev libscalapack-openmpi-dev libcmocka-dev libc6-dev libgcc-12-dev"
root=$TMP/root place=/usr/lib/aarch64-linux-gnu

# apt-get for arm64 with a state of its own, in which no package is installed.
foreign() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$TMP/apt/state" \
        -o "Dir::State::status=$TMP/apt/status" -o "Dir::Cache=$TMP/apt/cache" -o "Dir::Log=$TMP/apt" \
        -o Debug::NoLocking=1 -o "APT::Sandbox::User=$(id -un)" "$@"
}

section "libraries of arm64"
mkdir -p "$TMP/apt/state/lists/partial" "$TMP/apt/cache/archives/partial" "$root"
touch "$TMP/apt/status"
# shellcheck disable=SC2086
if ! run foreign update || ! run foreign install -y --no-install-recommends --download-only $packages; then
    skip "this machine's package sources have no arm64 packages"
fi
for package in "$TMP"/apt/cache/archives/*.deb; do
    dpkg -x "$package" "$root" || fail "$package"
done
# Merge /lib into /usr/lib, and make links stay inside the root.
cp -a "$root/lib/." "$root/usr/lib/" && rm -rf "${root:?}/lib" && ln -s usr/lib "$root/lib"
find "$root" -type l -lname '/*' | while read -r link; do ln -snf "$root$(readlink "$link")" "$link"; done

section "build"
# If the compiler fails, compile again without vectorization: Debian 12's has an internal error on a test.
cat >"$TMP/cc" <<EOF
#!/bin/sh
compile() {
    aarch64-linux-gnu-gcc --sysroot=$root -I$root$place/openmpi/include -L$root$place/openmpi/lib \\
        -L$root$place/openblas-pthread \\
        -Wl,-rpath-link,$root$place:$root$place/openmpi/lib:$root$place/openblas-pthread "\$@" -lmpi
}
compile "\$@" || compile "\$@" -fno-tree-vectorize
EOF
cat >"$TMP/emulate" <<EOF
#!/bin/sh
exec qemu-aarch64-static -L $root -E LD_LIBRARY_PATH=$place/openblas-pthread:$place/openmpi/lib "\$@"
EOF
chmod +x "$TMP/cc" "$TMP/emulate"
plain=(SLEEF XXHASH JANSSON ZLIB RANDOM123 SCALAPACK CMOCKA)
words=("CC=$TMP/cc" "BUILD=$TMP/arm" ISAS=plain "HDF5_CFLAGS=-I$root/usr/include/hdf5/openmpi" HDF5_LIBS=-lhdf5_openmpi
    "BLAS_CFLAGS=-I$root/usr/include/aarch64-linux-gnu/openblas-pthread" BLAS_LIBS=-lopenblas SLEEF_LIBS=-lsleef
    XXHASH_LIBS=-lxxhash JANSSON_LIBS=-ljansson ZLIB_LIBS=-lz SCALAPACK_LIBS=-lscalapack-openmpi CMOCKA_LIBS=-lcmocka
    "${plain[@]/%/_CFLAGS= }")
unset MAKEFLAGS MFLAGS MAKELEVEL
expect_status 0 make "${words[@]}" all tests
[ -x "$TMP/arm/cohort" ] || exit

section "every kind"
mkdir "$TMP/here" "$TMP/there"
run bits_data "$TMP/here" "$COHORT" || fail "the classes"
run bits_data "$TMP/there" "$TMP/emulate" "$TMP/arm/cohort" || fail "the classes on arm64"
for class in "$TMP"/here/*.h5; do expect_same "$class" "$TMP/there/$(basename "$class")"; done
for name in $bits_names; do
    run bits_run "$TMP/here" "$name" "$name" "$COHORT" || fail "$name"
    run bits_run "$TMP/there" "$name" "$name" "$TMP/emulate" "$TMP/arm/cohort" || fail "$name on arm64"
    sums=$(bits_sums "$TMP/here" "$name") arm=$(bits_sums "$TMP/there" "$name")
    printf '%-13s %-7s %s\n' "$name" "$(uname -m)" "${sums:0:64}" '' arm64 "${arm:0:64}"
    if [ "$name" = lme ]; then
        check "lme agrees to the last bit of its floats" bits_near "$TMP/here" lme "$TMP/there" lme
    else
        expect_equal "$sums" "$arm" "$name"
    fi
done

# Without mpirun, which cannot start emulated programs, and without tests that start programs themselves.
section "unit tests"
for source in tests/unit/test_*.c; do
    ! grep -q 'forked.h' "$source" || continue
    expect_status 0 timeout 3000 "$TMP/emulate" "$TMP/arm/tests/$(basename "$source" .c)"
done
