#!/bin/bash
# Finds and installs what cohort needs from the machine; the table below lists it.
#
#     tests/setup.sh install PURPOSE...    install what is missing (on Debian, with apt)
#     tests/setup.sh check PURPOSE...      print what is missing; install nothing
#     tests/setup.sh cflags|libs PURPOSE   check, then print the compiler flags for the libraries
#     tests/setup.sh known FLAG...         print the flags that the compiler knows
#     tests/setup.sh launcher DIRECTORY    create mpirun there if the one on the PATH belongs to another MPI
#     tests/setup.sh one-mpi PROGRAM       fail if the program is linked with two MPIs
#
# Purposes: build, test, check, demo. A library counts as found if a program that calls the functions cohort needs can
# be linked: with the flags that pkg-config has for one of its names, with the plain flags of the table, or with
# NAME_CFLAGS and NAME_LIBS if they are set (HDF5_LIBS=...). So modules, Spack and hand-built trees work as well as
# packages. CC is the compiler (default: mpicc). It determines the MPI; a library for another MPI counts as missing.
set -u
CC=${CC:-mpicc}

has() { command -v "$1" >/dev/null; }

# Without the MPI compiler, the other libraries can still be checked.
if has "${CC%% *}"; then compiler=$CC; else compiler=gcc; fi

# compiles CFLAGS TEXT: whether the preprocessor accepts the text.
compiles() {
    # shellcheck disable=SC2086
    printf '%s\n' "$2" | $compiler ${CPPFLAGS:-} $1 -x c -E - >/dev/null 2>&1
}

# The MPI of the compiler, by its Debian name. All MPIs other than Open MPI are of the MPICH family.
mpi=openmpi
if compiles '' '#include <mpi.h>'; then
    compiles '' $'#include <mpi.h>\n#ifndef OPEN_MPI\n#error\n#endif' || mpi=mpich
elif [[ $CC == *mpich* ]]; then
    mpi=mpich
fi
if [ $mpi = openmpi ]; then runs_mpi=openmpi-bin; else runs_mpi=mpich; fi

# package | purpose | must or may ("may": optional, never linked) | NAME | how to find it | what it is for
#   how:  command NAME...   one of these programs is on the PATH
#         header FILE       the compiler finds the header
#         module NAME...    Debian's Python has all of these modules
#         library PKG-CONFIG-NAME... FLAG...   tried one after the other
table="
gcc                      |build|must|GCC      |header stddef.h|C compiler
libc6-dev                |build|must|LIBC     |header stdio.h|headers of the C library
pkg-config               |build|may |PKGCONFIG|command pkg-config|finds the libraries
lib$mpi-dev              |build|must|MPI      |compiler|MPI: compiler wrapper $CC and headers
$runs_mpi                |build|may |MPIRUN   |command mpirun mpiexec srun|mpirun: starts programs on several ranks
libhdf5-$mpi-dev         |build|must|HDF5     |library hdf5-$mpi hdf5-mpi hdf5 -lhdf5|HDF5 with MPI: data sets and checkpoints
libopenblas-dev          |build|must|BLAS     |library openblas cblas blas -lopenblas|OpenBLAS: matrix products
libsleef-dev             |build|must|SLEEF    |library sleef -lsleef|SLEEF: exp, log and tanh with the same bits on every CPU
libxxhash-dev            |build|must|XXHASH   |library libxxhash -lxxhash|xxHash: digests of files
libjansson-dev           |build|must|JANSSON  |library jansson -ljansson|jansson: JSON
zlib1g-dev               |build|must|ZLIB     |library zlib -lz|zlib: gzipped data
librandom123-dev         |build|must|RANDOM123|header Random123/philox.h|Random123: the Philox random numbers (headers only)
libscalapack-$mpi-dev    |build|must|SCALAPACK|library -lscalapack-$mpi scalapack-$mpi scalapack -lscalapack|ScaLAPACK: the solver of the mixed model
libcmocka-dev            |test |must|CMOCKA   |library cmocka -lcmocka|cmocka: unit tests
slurmctld                |test |may |SLURMCTLD|command slurmctld|Slurm: tests submit jobs to a real Slurm with emulated nodes
slurmd                   |test |may |SLURMD   |command slurmd|the same
slurm-client             |test |may |SLURM    |command sbatch|the same
munge                    |test |may |MUNGE    |command munged|the same
iproute2                 |test |may |IP       |command ip|a network for the emulated nodes
man-db                   |test |may |MAN      |command man|man pages are compared with the help
groff-base               |test |may |GROFF    |command groff|the same
strace                   |test |may |STRACE   |command strace|strace: tests kills and full disks at every system call
chromium                 |test |may |CHROMIUM |command chromium chromium-browser google-chrome|chromium: opens report pages
librsvg2-bin             |test |may |RSVG     |command rsvg-convert|rsvg-convert: figures of reports as PDF
python3-h5py             |test |may |H5PY     |module h5py numpy|h5py and numpy: read what cohort writes, and compute it again
clang                    |check|may |CLANG    |command clang|the second compiler
clang-format             |check|may |FORMAT   |command clang-format|checks the layout of the source
shellcheck               |check|may |SHELL    |command shellcheck|checks the scripts
gnuplot-nox              |demo |may |GNUPLOT  |command gnuplot|draws the learning curve
"

# calls NAME: prints a program that calls the functions cohort needs from a library.
calls() {
    case $1 in
    MPI) echo '#include <mpi.h>
        int main(void) { return MPI_Init(0, 0); }' ;;
    HDF5) echo '#include <hdf5.h>
        int main(void) { return H5Pset_fapl_mpio(H5Pcreate(H5P_FILE_ACCESS), MPI_COMM_WORLD, MPI_INFO_NULL) < 0; }' ;;
    BLAS) echo '#include <cblas.h>
        int main(void) {
            double x[1] = {1}, y[1] = {0};
            openblas_set_num_threads(1);
            cblas_dsymv(CblasColMajor, CblasLower, 1, 1, x, 1, x, 1, 0, y, 1);
            return openblas_get_corename()[0];
        }' ;;
    SLEEF) echo '#include <sleef.h>
        int main(void) { return Sleef_cinz_expd1_u10purec(Sleef_cinz_logd1_u10purec(1)) != 1; }' ;;
    XXHASH) echo '#include <xxhash.h>
        int main(void) { return XXH3_128bits("", 0).low64 == XXH3_64bits("", 0); }' ;;
    JANSSON) echo '#include <jansson.h>
        int main(void) { return json_dumps(json_object(), 0) == 0; }' ;;
    ZLIB) echo '#include <zlib.h>
        int main(void) { return gzopen("", "r") != 0; }' ;;
    SCALAPACK) echo 'void pdpotrf_(void), dpotrf_(void), Cblacs_gridexit(int);
        int main(void) { pdpotrf_(); dpotrf_(); Cblacs_gridexit(0); }' ;;
    CMOCKA) echo '#include <stdarg.h>
        #include <stddef.h>
        #include <setjmp.h>
        #include <stdint.h>
        #include <cmocka.h>
        int main(void) { return cmocka_run_group_tests_name("", (const struct CMUnitTest *)0, 0, 0); }' ;;
    esac
}

# links NAME CFLAGS LIBS: whether that program can be linked; leaves it in $program.
program=$(mktemp) log=$program.log || exit 74
trap 'rm -f "$program" "$log"' EXIT
links() {
    # Undefined symbols of shared libraries are allowed: other libraries may define them.
    # shellcheck disable=SC2086
    calls "$1" | $compiler ${CPPFLAGS:-} $2 ${LDFLAGS:-} -x c - -x none -Wl,--allow-shlib-undefined -o "$program" \
        $3 >/dev/null 2>&1
}

# mpis PROGRAM...: prints the file names of the MPI libraries that the programs need.
mpis() { ldd "$@" 2>/dev/null | sed -nE 's/^\s*(libmpi(ch|_gnu|_cray|_intel|_nvidia|_amd|_aocc)?[0-9_]*\.so\.[0-9]+) .*/\1/p' | sort -u; }

own_mpi=
if [ "$compiler" = "$CC" ] && links MPI '' ''; then own_mpi=$(mpis "$program"); fi

# flags NAME CANDIDATE...: sets `cflags` and `libs` to the flags of the first candidate that works; fails if none does,
# and sets `why` to the reason if it is known.
flags() {
    local name=$1 candidate other
    shift
    local own_cflags=${name}_CFLAGS own_libs=${name}_LIBS beside=
    if [ "$name" = SCALAPACK ]; then beside=${libs_of[BLAS]-}; fi
    for candidate; do
        case $candidate in
        -*) cflags='' libs=$candidate ;;
        *)
            pkg-config --exists "$candidate" 2>/dev/null || continue
            cflags=$(pkg-config --cflags "$candidate") libs=$(pkg-config --libs "$candidate")
            ;;
        esac
        cflags=${!own_cflags-$cflags} libs=${!own_libs-$libs}
        links "$name" "$cflags" "$libs $beside" || continue
        other=$(mpis "$program" | grep -vxF "$own_mpi")
        if [ -z "$own_mpi" ] || [ -z "$other" ]; then return; fi
        why=" ($libs is for another MPI: ${other//$'\n'/, }, where $CC has $own_mpi)"
    done
    return 1
}

declare -A cflags_of libs_of
found() {
    local name=$1 how=$2 word
    shift 2
    case $how in
    command)
        for word; do
            has "$word" && return
        done
        return 1
        ;;
    compiler) [ "$compiler" = "$CC" ] && links MPI '' '' ;;
    module) has python3 && /usr/bin/python3 -c "$(printf 'import %s\n' "$@")" 2>/dev/null ;;
    header)
        local own_cflags=${name}_CFLAGS
        compiles "${!own_cflags-}" "#include <$1>" && cflags_of[$name]=${!own_cflags-}
        ;;
    library)
        local cflags libs
        flags "$name" "$@" && cflags_of[$name]=$cflags libs_of[$name]=$libs
        ;;
    esac
}

# rows COMMAND PURPOSE...: calls COMMAND package need NAME text how... for each row with one of the purposes.
rows() {
    local call=$1 package purpose need name how text
    shift
    while IFS='|' read -r package purpose need name how text; do
        [[ " $* " == *" ${purpose% } "* ]] || continue
        # shellcheck disable=SC2086
        "$call" ${package% *} ${need% } ${name% *} "$text" $how
    done < <(sed '/^$/d; s/ *| */|/g' <<<"$table")
}

missing=() must=0 list=
look() {
    local package=$1 need=$2 name=$3 text=$4 why=
    shift 4
    if found "$name" "$@"; then return; fi
    missing+=("$package")
    list+=$(printf '    %-25s %s' "$package" "$text$why")
    if [ "$need" = must ]; then must=1; else list+=' (optional)'; fi
    list+=$'\n'
}

show_missing() {
    printf 'Not found on this machine (Debian package names):\n%s' "$list"
    if [ $must = 1 ]; then
        cat <<'END'
On Debian or Ubuntu, run `make setup` as root or with sudo to install them. On other systems, load or build them so
that mpicc is on the PATH and pkg-config finds the libraries (PKG_CONFIG_PATH; modules and Spack set it), or set their
flags: make HDF5_CFLAGS=-I/opt/hdf5/include HDF5_LIBS="-L/opt/hdf5/lib -lhdf5". The other names are BLAS, SLEEF,
XXHASH, JANSSON, ZLIB, RANDOM123, SCALAPACK and CMOCKA; CC is the MPI compiler.
END
    fi
}

all_installed() {
    local packages
    note() { packages+=("$1"); }
    packages=()
    rows note "$@"
    [ "$(dpkg-query -W -f '${Status}\n' "${packages[@]}" 2>/dev/null | grep -c ' ok installed$')" = \
        ${#packages[@]} ]
}

apt() {
    if $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1; then
        return
    fi
    sed 's/^/    /' "$log" | tail -n 20
    return 1
}

install() {
    as_root=
    if ! has apt-get; then
        return 1
    elif [ "$(id -u)" != 0 ]; then
        if [ -t 0 ]; then as_root=sudo; else as_root='sudo -n'; fi
        $as_root true 2>/dev/null || return 1
    fi
    echo "Installing missing packages (this takes some minutes): ${missing[*]}"
    apt update || echo 'apt-get update failed; continuing with the existing package lists'
    apt install -y --no-install-recommends "${missing[@]}"
}

# fits PROGRAM: whether it is a launcher of the compiler's MPI.
fits() {
    case $("$1" --version 2>&1) in
    *'Open MPI'* | *OpenRTE*) [ $mpi = openmpi ] ;;
    *) [ $mpi = mpich ] ;;
    esac
}

# launcher DIRECTORY: prefers launchers in the directory of the compiler.
launcher() {
    local wrapper=${CC%% *} place suffix word
    rm -f "$1/mpirun"
    if has mpirun && fits mpirun; then return; fi
    wrapper=$(command -v "$wrapper")
    place=${wrapper%/*} suffix=${wrapper##*/mpicc}
    for word in "$place"/mp{irun,iexec}{"$suffix",} mp{irun,iexec}".$mpi" mpiexec.hydra; do
        has "$word" && fits "$word" || continue
        mkdir -p "$1"
        printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "$word")" >"$1/mpirun"
        chmod +x "$1/mpirun"
        return
    done
}

action=${1:-}
[ $# -gt 0 ] && shift
case $action in
install | check)
    # If all packages are installed, there is nothing to do; the build reports what still does not work.
    all_installed "$@" && exit
    rows look "$@"
    [ ${#missing[@]} -gt 0 ] || exit 0
    # A new package may change the search for others, such as the MPI that mpicc belongs to: search again.
    if [ "$action" = install ] && [ "${SETUP_TRIED:-}" != "${missing[*]}" ] && install; then
        rm -f "$program" "$log"
        SETUP_TRIED=${missing[*]} exec "$0" install "$@"
    fi
    show_missing >&2
    exit $must
    ;;
cflags | libs)
    rows look "$1"
    if [ $must = 1 ]; then
        show_missing >&2
        exit 1
    fi
    print_flags() {
        local name=$3
        if [ "$action" = cflags ]; then echo "${cflags_of[$name]-}"; else echo "${libs_of[$name]-}"; fi
    }
    rows print_flags "$1" | xargs
    ;;
known)
    for flag; do
        $compiler -Werror "$flag" -x c -c -o "$program" - </dev/null >/dev/null 2>&1 && echo "$flag"
    done | xargs
    ;;
launcher) launcher "$1" ;;
one-mpi)
    used=$(mpis "$1")
    if [ "$(wc -w <<<"$used")" -gt 1 ]; then
        echo "$1 is linked with two MPIs, ${used//$'\n'/ and }, but only one can start: set HDF5_LIBS= and" \
            "SCALAPACK_LIBS= to libraries for $CC's MPI, or set another CC=" >&2
        exit 1
    fi
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
