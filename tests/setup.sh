#!/bin/bash
# What cohort needs from the machine, in one table, and three things to do with it:
#
#     tests/setup.sh install PURPOSE...    makes sure it is all there: on Debian by apt, only what is missing
#     tests/setup.sh check PURPOSE...      says what is missing; installs nothing
#     tests/setup.sh cflags|libs PURPOSE   the compiler's flags for the libraries, after such a check
#
# Purposes: build, test, check, demo. A library is there if the compiler finds its header with the flags
# that pkg-config gives under one of its names, or with NAME_CFLAGS and NAME_LIBS where they are set
# (HDF5_LIBS=...), so modules, Spack and trees built by hand do as well as packages. CC is the compiler,
# mpicc unless set.
set -u
CC=${CC:-mpicc}

# package | purpose | must or may (what is only "may" is not linked) | NAME | how to find it | what it is for
#   how:  command NAME...   one of these programs is on the PATH
#         header FILE       the compiler finds it
#         library HEADER PKG-CONFIG-NAME... FLAG   FLAG links it if pkg-config knows none of the names
table='
gcc                      |build|must|GCC      |header stddef.h|C compiler
libc6-dev                |build|must|LIBC     |header stdio.h|headers of the C library
pkg-config               |build|may |PKGCONFIG|command pkg-config|finds the libraries
libopenmpi-dev           |build|must|MPI      |compiler mpi.h|MPI: compiler wrapper mpicc and headers
openmpi-bin              |build|may |MPIRUN   |command mpirun mpiexec srun|starts programs on several ranks
libhdf5-openmpi-dev      |build|must|HDF5     |library hdf5.h hdf5-openmpi hdf5-mpi hdf5 -lhdf5|HDF5 with MPI: data sets and checkpoints
libopenblas-dev          |build|must|BLAS     |library cblas.h openblas cblas -lopenblas|OpenBLAS: matrix products
libsleef-dev             |build|must|SLEEF    |library sleef.h sleef -lsleef|SLEEF: exp, log and tanh with the same bits on every CPU
libxxhash-dev            |build|must|XXHASH   |library xxhash.h libxxhash -lxxhash|xxHash: digests of files
libjansson-dev           |build|must|JANSSON  |library jansson.h jansson -ljansson|jansson: JSON
zlib1g-dev               |build|must|ZLIB     |library zlib.h zlib -lz|zlib: gzipped data
librandom123-dev         |build|must|RANDOM123|header Random123/philox.h|Random123: the Philox random numbers (headers only)
libscalapack-openmpi-dev |build|must|SCALAPACK|library mpi.h scalapack-openmpi scalapack -lscalapack|ScaLAPACK: the solver of the mixed model
libcmocka-dev            |test |must|CMOCKA   |library cmocka.h cmocka -lcmocka|cmocka: unit tests
slurmctld                |test |may |SLURMCTLD|command slurmctld|Slurm: jobs are tested on a real one, with emulated nodes
slurmd                   |test |may |SLURMD   |command slurmd|the same
slurm-client             |test |may |SLURM    |command sbatch|the same
munge                    |test |may |MUNGE    |command munged|the same
iproute2                 |test |may |IP       |command ip|a network for the emulated nodes
strace                   |test |may |STRACE   |command strace|kills and full disks at every system call
clang-format             |check|may |FORMAT   |command clang-format|checks the layout of the source
shellcheck               |check|may |SHELL    |command shellcheck|checks the scripts
gnuplot-nox              |demo |may |GNUPLOT  |command gnuplot|draws the learning curve
'

has() { command -v "$1" >/dev/null; }

# Without MPI's compiler the others can still be looked for.
if has "${CC%% *}"; then compiler=$CC; else compiler=gcc; fi

# compiles CFLAGS TEXT: whether the compiler takes it.
compiles() {
    # shellcheck disable=SC2086
    printf '%s\n' "$2" | $compiler ${CPPFLAGS:-} $1 -x c -E - >/dev/null 2>&1
}

# links LIBS SYMBOL: whether the linker finds it, for a library without a header. What that library itself needs
# is not looked for: it may come from another one.
links() {
    # shellcheck disable=SC2086
    printf 'void %s(void);\nint main(void) { %s(); }\n' "$2" "$2" |
        $compiler ${LDFLAGS:-} -x c - -x none -Wl,--allow-shlib-undefined -o /dev/null $1 >/dev/null 2>&1
}

# flags cflags|libs NAME HEADER PKG-CONFIG-NAME... FALLBACK: prints them; fails if they do not work.
flags() {
    local kind=$1 name=$2 header=$3
    shift 3
    local own_cflags=${name}_CFLAGS own_libs=${name}_LIBS cflags='' libs=${!#} known
    for known in "${@:1:$#-1}"; do
        if pkg-config --exists "$known" 2>/dev/null; then
            cflags=$(pkg-config --cflags "$known") libs=$(pkg-config --libs "$known")
            break
        fi
    done
    cflags=${!own_cflags-$cflags} libs=${!own_libs-$libs}
    local text="#include <$header>"
    if [ "$name" = HDF5 ]; then
        text+=$'\n#ifndef H5_HAVE_PARALLEL\n#error built without MPI\n#endif'
    fi
    compiles "$cflags" "$text" || return
    if [ "$name" = SCALAPACK ]; then links "$libs" pdpotrf_ || return; fi
    if [ "$kind" = cflags ]; then echo "$cflags"; else echo "$libs"; fi
}

found() {
    local name=$1 how=$2 program
    shift 2
    case $how in
    command)
        for program; do
            has "$program" && return
        done
        return 1
        ;;
    compiler) [ "$compiler" = "$CC" ] && compiles '' "#include <$1>" ;;
    header)
        local own_cflags=${name}_CFLAGS
        compiles "${!own_cflags-}" "#include <$1>"
        ;;
    library) flags libs "$name" "$@" >/dev/null ;;
    esac
}

# rows COMMAND PURPOSE...: calls COMMAND package need NAME purpose_text how... for each row that serves.
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
    local package=$1 need=$2 name=$3 text=$4
    shift 4
    if found "$name" "$@"; then return; fi
    missing+=("$package")
    list+=$(printf '    %-25s %s' "$package" "$text")
    if [ "$need" = must ]; then must=1; else list+=' (can do without)'; fi
    list+=$'\n'
}

show_missing() {
    printf 'Not found on this machine (names of Debian packages):\n%s' "$list"
    if [ $must = 1 ]; then
        cat <<'END'
On Debian or Ubuntu, as root or with sudo, `make setup` installs them. Elsewhere load or build them so that
mpicc is on the PATH and pkg-config finds the libraries (PKG_CONFIG_PATH; modules and Spack set it), or say
where they are: make HDF5_CFLAGS=-I/opt/hdf5/include HDF5_LIBS="-L/opt/hdf5/lib -lhdf5"; the other names are
BLAS, SLEEF, XXHASH, JANSSON, ZLIB, RANDOM123, SCALAPACK and CMOCKA, and CC is the MPI compiler.
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
    echo "Installing what is missing, some minutes: ${missing[*]}"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    apt update || echo 'apt-get update failed; going on with the lists of packages that are here'
    apt install -y --no-install-recommends "${missing[@]}"
}

action=${1:-}
[ $# -gt 0 ] && shift
case $action in
install | check)
    all_installed "$@" && exit
    rows look "$@"
    [ ${#missing[@]} -gt 0 ] || exit 0
    if [ "$action" = install ] && install; then exit; fi
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
        local need=$2 name=$3
        shift 4
        if [ "$1" = library ] && [ "$need" = must ]; then
            flags "$action" "$name" "${@:2}"
        elif [ "$1" = header ] && [ "$action" = cflags ]; then
            local own_cflags=${name}_CFLAGS
            echo "${!own_cflags-}"
        fi
    }
    rows print_flags "$1" | xargs
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
