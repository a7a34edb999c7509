# shellcheck shell=bash
# A private Slurm on one machine, for tests/cli/cli_slurm.sh: real daemons, emulated nodes.
#
#     slurm_namespace "$0" "$@"    call first: restarts the script in a network of its own
#     slurm_start 4 2              starts 4 nodes of 2 cores, n1 ... n4; sets SLURM_CONF; fails with a line on stderr
#     slurm_stop                   ends jobs, daemons and processes that jobs left behind
#
# Every node is a slurmd with its own host name; otherwise MPI would take all of them for one machine. All addresses
# exist only in the script's network. Needs root, but no system service and no cgroup.

slurm_namespace() {
    [ -z "${SLURM_TEST_NETWORK:-}" ] || return 0
    slurm_possible 2>/dev/null || return 0 # slurm_start prints the reason
    # shellcheck disable=SC2016
    SLURM_TEST_NETWORK=yes exec unshare --net bash -c '
        ip link set lo up && ip link add nodes type veth peer name others &&
        ip address add 10.41.0.1/24 dev nodes && ip link set nodes up && ip link set others up &&
        exec bash "$@"' bash "$@"
}

# slurm_possible: whether Slurm can work here; prints why not.
slurm_possible() {
    local program
    if [ "$(id -u)" != 0 ]; then
        echo 'cannot start Slurm: only root can emulate nodes' >&2
        return 1
    fi
    for program in slurmctld slurmd munged sbatch ip; do
        if ! command -v $program >/dev/null; then
            echo "cannot start Slurm: $program is not installed" >&2
            return 1
        fi
    done
    if ! unshare --net --uts --mount true 2>/dev/null; then
        echo 'cannot start Slurm: namespaces are not allowed here' >&2
        return 1
    fi
}

slurm_configuration() {
    local n_nodes=$1 n_cores=$2 host
    host=$(hostname -s)
    cat <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$SLURM_DIR/munge.socket,cred_expire=5
StateSaveLocation=$SLURM_DIR/state
SlurmdSpoolDir=$SLURM_DIR/%n
TmpFS=$SLURM_DIR/%n
SlurmctldPidFile=$SLURM_DIR/slurmctld.pid
SlurmdPidFile=$SLURM_DIR/%n.pid
SlurmctldLogFile=$SLURM_DIR/slurmctld.log
SlurmdLogFile=$SLURM_DIR/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MailProg=/bin/true
MpiDefault=pmix
MaxArraySize=${SLURM_ARRAY_SIZE:-1001}
KillWait=30
MinJobAge=600
ReturnToService=2
NodeName=n[1-$n_nodes] NodeAddr=127.0.0.1 Port=[$((6818))-$((6817 + n_nodes))] CPUs=$n_cores CoresPerSocket=$n_cores RealMemory=1000000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10
END
}

# slurm_start NODES CORES
slurm_start() {
    local n_nodes=$1 n_cores=$2 node name
    slurm_possible || return
    SLURM_DIR=$(mktemp -d /tmp/slurm.XXXXXX) || return # short, for the names of sockets
    chmod 755 "$SLURM_DIR"
    SLURM_HOSTS=$SLURM_DIR/hosts.${SLURM_DIR##*.}
    export SLURM_CONF=$SLURM_DIR/slurm.conf
    mkdir "$SLURM_DIR/state" || return
    slurm_configuration "$n_nodes" "$n_cores" >"$SLURM_CONF"
    # The default fence of this version makes some jobs on several nodes crash at the start.
    echo 'PMIxCollFence=ring' >"$SLURM_DIR/mpi.conf"
    (umask 077 && head -c 256 /dev/urandom >"$SLURM_DIR/munge.key")
    cp /etc/hosts "$SLURM_HOSTS"
    for name in "$(hostname -s)" $(seq -f n%g "$n_nodes"); do echo "127.0.0.1 $name"; done >>"$SLURM_HOSTS"
    {
        munged --key-file="$SLURM_DIR/munge.key" --socket="$SLURM_DIR/munge.socket" --seed-file="$SLURM_DIR/munge.seed" \
            --pid-file="$SLURM_DIR/munged.pid" --log-file="$SLURM_DIR/munged.log" &&
            slurm_inside slurmctld
    } </dev/null >"$SLURM_DIR/start.log" 2>&1 || { slurm_why; return 1; }
    for node in $(seq -f n%g "$n_nodes"); do slurm_node "$node" || { slurm_why; return 1; }; done
    local deadline=$((SECONDS + 60))
    until [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" = "$n_nodes" ]; do
        if [ $SECONDS -ge $deadline ]; then slurm_why; return 1; fi
        sleep 0.1
    done
}

# slurm_node NAME: starts one node's daemon.
slurm_node() {
    mkdir -p "$SLURM_DIR/$1"
    slurm_inside slurmd "$1" </dev/null >>"$SLURM_DIR/start.log" 2>&1
}

# slurm_inside DAEMON [NODE]: starts it with an /etc/hosts that lists the nodes; a node also gets its own host name.
slurm_inside() {
    # shellcheck disable=SC2016
    unshare --uts --mount bash -c '
        mount --bind "$1" /etc/hosts && { [ -z "$3" ] || hostname "$3"; } &&
        exec "$2" -f "$SLURM_CONF" ${3:+-N "$3"}' bash "$SLURM_HOSTS" "$1" "${2:-}"
}

slurm_why() {
    echo "cannot start Slurm: $(cat "$SLURM_DIR/start.log" "$SLURM_DIR"/*.log 2>/dev/null | grep -m1 -iE 'fatal|error')" >&2
}

# slurm_left: prints the processes whose /etc/hosts is our file: daemons and jobs of this Slurm.
slurm_left() { grep -lsF "${SLURM_HOSTS##*/} /etc/hosts" /proc/[0-9]*/mountinfo | cut -d/ -f3; }

slurm_stop() {
    local pid signal deadline
    [ -n "${SLURM_DIR:-}" ] || return 0
    for pid in $(squeue -h -o %A 2>/dev/null | sort -u); do scancel --quiet "$pid" 2>/dev/null; done
    for signal in TERM KILL; do
        for pid in $(slurm_left) $(cat "$SLURM_DIR/munged.pid" 2>/dev/null); do kill -$signal "$pid" 2>/dev/null; done
        deadline=$((SECONDS + 5))
        while [ -n "$(slurm_left)" ] && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
    done
    rm -rf "$SLURM_DIR"
}
