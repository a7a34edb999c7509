#!/bin/bash
# Where more ranks stop helping: a model of the time of a step. On P ranks, with L lanes,
#
#     step = blocks ceil(L / P) / L + clearing + optimizer / P + sum(P, B) + share(P, 4 n) + adding
#
# where blocks, clearing and optimizer are measured here on one rank, adding (the copies and additions of a sum,
# which do not become fewer) is what two local ranks spend beyond that, n is the number of parameters and B = 4 n or
# 8 n the bytes of their statistics. The sum (a reduce-scatter) and the sharing (an allgather) cost
# (P - 1) / P bytes / bandwidth and a number of latencies: log2 P + 1, or P where Open MPI goes round a ring
# (OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allgatherv_algorithm=2 keeps it from that).
#
# The model is held to runs on 2 and 4 local ranks that send each other messages, and its communication to
# SimGrid at 16 to 1024 ranks, one on each machine: 1.5 microseconds, 100 Gb/s. Then the table.
latency=1.5 bandwidth=12500 # microseconds; bytes a microsecond
work=$(mktemp -d) || exit 74
trap 'rm -rf "$work"' EXIT
class=$work/class.h5
many=8000 few=5000
if [ -n "${BENCH_SHORT:-}" ]; then many=80 few=100 SIMULATED_RANKS=16; fi
"$COHORT" simulate bkt --students $many --skills 110 --items 110 --attempts 80 --seed 1 -o "$class" 2>/dev/null >&2
# shellcheck disable=SC2034
rbm=("$BENCH_CLASS" model.kind=rbm model.preset=binomial train.batch=1000 train.block=10)
# shellcheck disable=SC2034
dkt=("$class" model.kind=dkt model.hidden=200 optimizer.method=adam train.batch=64 train.block=8)
# shellcheck disable=SC2034
rtrbm=("$class" model.kind=rtrbm model.hidden=200 optimizer.method=adam train.batch=16 train.block=4)
# shellcheck disable=SC2034
vae=("$work/irt.h5" model.kind=vae model.posterior=full model.samples=16 optimizer.method=adam train.batch=400 train.block=10)
"$COHORT" simulate irt --students $few --items 30 --skills 3 --seed 1 -o "$work/irt.h5" 2>/dev/null >&2
names='rbm rtrbm dkt vae'
declare -A batches=([rbm]=1000 [rtrbm]=16 [dkt]=64 [vae]=400)
declare -A shapes=([rbm]='1000:10 1000:50 8000:10 8000:50 64000:50' [rtrbm]='16:4 128:4 1024:4'
    [dkt]='64:8 64:2 512:8 4096:8 4096:4' [vae]='400:10 4000:10 32000:10')

# The model, for awk.
# shellcheck disable=SC2016
model='
    function lg(p,   n) { for (n = 0; 2 ^ n < p; n++); return n }
    # What Open MPI 4.1 chooses, as SimGrid has it.
    function sum_us(p, bytes, latency, bandwidth) {
        if (p == 1) return 0
        return (p - 1) / p * bytes / bandwidth + latency * (p >= 8 && p <= 32 && bytes >= 262144 ? p : lg(p) + 1)
    }
    function share_us(p, bytes, latency, bandwidth) {
        if (p == 1) return 0
        ring = p >= 32 && p < 512 && bytes >= (p < 128 ? 262144 : 131072)
        steps = ring ? (p == 128 ? p / 2 : p) : lg(p) + 1 # 128: neighbours in pairs
        return (p - 1) / p * bytes / bandwidth + latency * steps
    }
    function lanes_us(p, blocks, lanes) { return blocks * (lanes % p ? int(lanes / p) + 1 : lanes / p) / lanes }
'

echo 'Local ranks that send messages, microseconds a step (best of several rounds of a few steps):'
cores=$(nproc)
for name in $names; do
    declare -n words=$name
    for ranks in 1 2 4; do
        # More ranks than cores must not spin.
        COHORT_SHARED=no OMPI_MCA_mpi_yield_when_idle=$((ranks > cores)) \
            mpirun -n $ranks "$BUILD/bench/bench_scale" "${words[@]}" 2>/dev/null || exit
    done >"$work/$name"
    awk -v name="$name" -v cores="$cores" -v adding_file="$work/$name.adding" "$model"'
        $1 == 1 { lanes = $2; n = $3; size = $4; blocks = $7; clear = $8; rest = $9 }
        $1 == 2 { latency = $10; bandwidth = 1048576 / ($11 - $10); together = $9 }
        { line[$1] = $0; measured[$1] = $6 }
        END {
            for (p = 1; p <= 4; p *= 2) {
                share = p > cores ? p / cores : 1 # a core has so many ranks
                own = (lanes_us(p, blocks, lanes) + clear + rest / p) * share
                comm = sum_us(p, n * size, latency, bandwidth) + share_us(p, 4 * n, latency, bandwidth)
                if (p == 2) adding = together - rest / 2 - comm
                if (adding < 0) adding = 0
                comm = (comm + (p > 1 ? adding : 0)) * share
                printf "  %s, %d ranks on %d cores: measured %8.0f, model %8.0f (messages %.0f)\n", name, p, cores,
                    measured[p], own + comm, comm
            }
            print adding >adding_file
        }' "$work/$name"
done

echo
echo 'Messages of a step, microseconds, by SimGrid and by the model; and if sharing never went round a ring:'
sizes=$(awk '$1 == 1 { printf "%s:%s ", $3, $4 }' "$work/rbm" "$work/rtrbm" "$work/dkt" "$work/vae")
if command -v smpirun >/dev/null && smpicc -O2 -o "$work/sums" tests/bench/simgrid/sums.c 2>"$work/log"; then
    cat >"$work/machines.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="m" suffix="" radical="0-1023" speed="10Gf" bw="100Gbps" lat="0.75us"/>
</platform>
END
    seq -f m%g 0 1023 >"$work/hosts"
    simulate() { # RANKS WIDE N OPTION...
        (cd "$work" && smpirun -np "$1" -platform machines.xml -hostfile hosts --log=root.thresh:error \
            --cfg=smpi/coll-selector:ompi --cfg=network/model:CM02 --cfg=network/latency-factor:1 \
            --cfg=network/bandwidth-factor:1 --cfg=network/weight-S:0 --cfg=smpi/simulate-computation:no \
            "${@:4}" ./sums "$2" "$3")
    }
    for size in $sizes; do
        for ranks in ${SIMULATED_RANKS:-16 64 256 1024}; do
            other=$(simulate "$ranks" "${size#*:}" "${size%:*}" --cfg=smpi/allgatherv:ompi_bruck)
            simulate "$ranks" "${size#*:}" "${size%:*}" | awk -v latency=$latency -v bandwidth=$bandwidth -v other="$other" "$model"'{
                split(other, o)
                s = sum_us($1, $2 * $3, latency, bandwidth); a = share_us($1, 4 * $2, latency, bandwidth)
                printf "  %d parameters, %4d ranks: sum %5.0f, model %5.0f; share %5.0f, model %5.0f; no ring %5.0f\n",
                    $2, $1, 1e6 * $4, s, 1e6 * $5, a, 1e6 * o[5] }'
        done
    done
else
    echo '  skipped: there is no smpirun (Debian: libsimgrid-dev)'
fi

echo
echo 'Times as fast as one rank, by the model; ranks are bound by lanes = batch / block:'
printf '  %-5s %6s %6s %6s %10s' model batch block lanes 'step, ms'
printf ' %8s' 4 16 64 256 1024 'best at' speedup 'no ring' speedup
echo
for name in $names; do
    for shape in ${shapes[$name]}; do
        awk -v name="$name" -v base="${batches[$name]}" -v batch="${shape%:*}" -v block="${shape#*:}" -v latency=$latency -v bandwidth=$bandwidth -v adding="$(cat "$work/$name.adding")" "$model"'
            function step(p, few,   share) {
                share = share_us(p, 4 * n, latency, bandwidth)
                if (few && p > 1) share = (p - 1) / p * 4 * n / bandwidth + latency * (lg(p) + 1)
                if (p > 1) share += adding
                return lanes_us(p, blocks, lanes) + clear + rest / p + sum_us(p, n * size, latency, bandwidth) + share
            }
            $1 == 1 {
                n = $3; size = $4; clear = $8; rest = $9; lanes = int((batch + block - 1) / block)
                blocks = $7 * batch / base
                printf "  %-5s %6d %6d %6d %10.2f", name, batch, block, lanes, step(1) / 1000
                for (p = 4; p <= 1024; p *= 4)
                    if (p <= lanes) printf " %8.1f", step(1) / step(p); else printf " %8s", "-"
                for (few = 0; few < 2; few++) {
                    best = 1
                    for (p = 2; p <= 1024 && p <= lanes; p *= 2)
                        if (step(p, few) < step(best, few)) best = p
                    printf " %8d %8.1f", best, step(1) / step(best, few)
                }
                print ""
            }' "$work/$name"
    done
done
