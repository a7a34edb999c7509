# shellcheck shell=bash
# Makes mpirun work without warnings for tests and the demo: as root, with more ranks than cores, and in containers.
# Selects the launcher of the MPI that the program was built with. Sourced, not run.
mpi_build=${COHORT:-${BUILD:-build}/cohort}
mpi_build=$(realpath -m "${mpi_build%/*}")
if [ -x "$mpi_build/mpi/mpirun" ] && [[ :$PATH: != *":$mpi_build/mpi:"* ]]; then PATH=$mpi_build/mpi:$PATH; fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
# A container may forbid a process to read another's memory; Open MPI then warns for every message.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_btl_base_warn_component_unused=0
# A program started without mpirun needs no daemon.
export OMPI_MCA_ess_singleton_isolated=1
export OPENBLAS_NUM_THREADS=1

# mpi_files DIRECTORY: makes Open MPI keep its files there. In the default directory, which all jobs share, jobs that
# start or end at the same moment can conflict, and killed jobs leave their files.
mpi_files() {
    mkdir -p "$1"
    export OMPI_MCA_orte_tmpdir_base=$1
}
