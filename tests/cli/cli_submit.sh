#!/bin/bash
# not under: debug double
# The scripts of `cohort submit`, and its messages where there is no Slurm or Slurm refuses. Running jobs are tested
# in cli_slurm.sh.
. "$(dirname "$0")/../lib/lib.sh"
run "$COHORT" simulate irt --students 100 --items 5 --seed 1 -o "$TMP/class.h5"
settings=(model.kind=rbm data="$TMP/class.h5" train.batch=40 train.block=10)

section 'templates'
tail_of() { sed -n '/^# From here on/,$p' "jobs/$1.sbatch"; }
check 'a part in common' test "$(tail_of train | wc -l)" -gt 20
expect_equal "$(tail_of train)" "$(tail_of sweep)" 'the same after the settings'
for template in train sweep; do
    expect_equal 5 "$(grep -cE ' # [1-5] (account|partition|nodes|time|modules)' jobs/$template.sbatch)" 'lines to edit'
    check "$template.sbatch is bash" bash -n "jobs/$template.sbatch"
done

section 'the script'
cat >"$TMP/a file.ini" <<'END'
[model]
kind = rbm
hidden = 3
[train]
batch = 40
block = 10
END
awkward="$TMP/no run/it's \"5%\" \$HOME"
expect_status 0 "$COHORT" submit "$TMP/a file.ini" data="$TMP/class.h5" run="$awkward" model.hidden=7 --account=lab \
    --partition long --nodes 2 --ranks 4 --time 2-12 --modules 'gcc openmpi/4.1' --sbatch '--qos=high --mem=1G' --restarts 7 --dry-run
check 'nothing is made' test ! -e "$TMP/no run"
output >"$TMP/script"
expect_match '^#SBATCH --account=lab$' "$TMP/script"
expect_match '^#SBATCH --partition=long$' "$TMP/script"
expect_match '^#SBATCH --nodes=2 --ntasks=4$' "$TMP/script"
expect_match '^#SBATCH --time=2-12$' "$TMP/script"
expect_match '^#SBATCH --qos=high --mem=1G$' "$TMP/script"
expect_match '^modules=\(gcc openmpi/4.1\)$' "$TMP/script"
expect_match '^most_restarts=7$' "$TMP/script"
check 'bash reads it' bash -n "$TMP/script"
if command -v shellcheck >/dev/null; then expect_status 0 shellcheck -S warning "$TMP/script"; fi
# #SBATCH lines after the first command would be ignored.
expect_equal '' "$(sed '1,/^[^#]/d' "$TMP/script" | grep '^#SBATCH')" 'lines for sbatch come first'
# The settings as the shell passes them.
words() { sed -n '/^settings=/,/^command=/p' "$TMP/script" | bash -c '. /dev/stdin; printf "%s\n" "${command[@]}"' bash x; }
expect_equal "train model.kind=rbm model.hidden=7 train.batch=40 train.block=10 data.file=$TMP/class.h5 run.directory=$awkward" \
    "$(words | paste -sd ' ')" 'settings'
expect_status 0 "$COHORT" submit "${settings[@]}" run="$TMP/run" --dry-run
expect_no_match '^#SBATCH --(account|partition)'
expect_match "^#SBATCH --output=$TMP/run/slurm.log"
# The defaults of the options are what the templates have for people who submit them by hand.
defaults_of() { grep -hE '^(#SBATCH --(nodes|time|signal)=|launch=|most_restarts=)' "$@" | sed 's/  *# .*//'; }
expect_equal 5 "$(output | defaults_of | wc -l)" 'values with defaults'
for template in train sweep; do
    expect_equal "$(output | defaults_of)" "$(defaults_of "jobs/$template.sbatch")" "the defaults in $template.sbatch"
done
# The job files of the project name their data and run.
expect_status 0 "$COHORT" submit jobs/rbm.ini --dry-run
expect_match '^#SBATCH --output=.*runs/rbm/slurm.log'

section 'bad input'
expect_status 2 "$COHORT" submit
expect_status 1 "$COHORT" submit run="$TMP/nowhere" --dry-run
expect_match 'nowhere: no such directory, so there is no run to continue'
expect_status 2 "$COHORT" submit "${settings[@]}" run="$TMP/run" --rank 2
expect_match 'did you mean --ranks'
expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/run" model.hiden=3
expect_match "the nearest is model.hidden"
expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/run" --ranks 5
expect_match 'more than the 4 blocks of students per mini-batch'
expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/run" --ranks 2 --nodes 3
expect_match 'at least one rank on every node'
expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/run" --account $'a\nb'
expect_match 'contains a newline'
expect_status 0 "$COHORT" submit "${settings[@]}" data=none.h5 run="$TMP/run" --dry-run
expect_match '^warning: none.h5 does not exist yet'

section 'no sbatch'
mkdir "$TMP/bin"
expect_status 1 env PATH="$TMP/bin" "$COHORT" submit "${settings[@]}" run="$TMP/deep/er/run"
expect_match 'sbatch cannot be started .*Slurm'
check 'nothing is made' test ! -e "$TMP/deep"

section 'sbatch refuses'
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "sbatch: error: first" >&2\necho "sbatch: error: invalid account" >&2\nexit 1\n' >"$TMP/bin/sbatch"
chmod +x "$TMP/bin/sbatch"
mkdir "$TMP/there"
PATH=$TMP/bin:$PATH expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/there/deep/run"
expect_match '^sbatch: error: first$'
expect_match 'sbatch refused with exit code 1: sbatch: error: invalid account'
expect_equal '' "$(find "$TMP/there" -mindepth 1)" 'nothing is made'
check 'what was there stays' test -d "$TMP/there"

for answer in -5 0 99999999999999999999999 9223372036854775807 '12x' '4711 was not accepted' ''; do
    printf '#!/bin/bash\necho "%s"\n' "$answer" >"$TMP/bin/sbatch"
    PATH=$TMP/bin:$PATH expect_status 1 "$COHORT" submit "${settings[@]}" run="$TMP/there/deep/run"
    expect_match "^cohort: sbatch printed '$answer'; expected a job number; see .squeue --me. for what it submitted"
    expect_equal '' "$(find "$TMP/there" -mindepth 1)" 'nothing is made'
done

section 'sbatch accepts'
# shellcheck disable=SC2016
printf '#!/bin/bash\ncat >"$TMP/given"\nenv >"$TMP/environment"\nprintf "%%s\\n" "$@" >"$TMP/options"\necho "4711;cluster"\n' >"$TMP/bin/sbatch"
PATH=$TMP/bin:$PATH SLURM_NTASKS=9 SLURM_CONF=here expect_status 0 "$COHORT" submit "${settings[@]}" run="$TMP/there/deep/run"
expect_equal 4711 "$(output)" 'the number of the job'
expect_match '4711.*there/deep/run/slurm.log'
check 'a place for the log' test -d "$TMP/there/deep/run"
expect_match '^settings=\($' "$TMP/given"
expect_equal '--parsable' "$(cat "$TMP/options")" 'options'
expect_match '^SLURM_CONF=here$' "$TMP/environment"
expect_no_match '^(SLURM_NTASKS|PMIX_|OMPI_COMM|OMPI_UNIVERSE)' "$TMP/environment"

section 'a signal before the ranks start'
# Stand-ins: an srun that examines the nodes until the signal has come, ranks that ignore signals while they start,
# and a squeue that is too busy at first.
mkdir "$TMP/slurm"
cat >"$TMP/slurm/srun" <<'END'
#!/bin/bash
case $* in
--mpi=list) echo pmix ;;
--mpi=none*) touch "$TMP/looking" && until [ -e "$TMP/told" ]; do sleep 0.05; done ;;
*)
    trap '' USR1
    sleep 1
    trap 'exit 85' USR1
    for _ in $(seq 300); do sleep 0.1; done
    ;;
esac
END
printf '#!/bin/bash\n[ -e "$TMP/asked" ] || { touch "$TMP/asked" && exit 1; }\necho RUNNING\n' >"$TMP/slurm/squeue"
printf '#!/bin/bash\necho "scontrol $*"\n' >"$TMP/slurm/scontrol"
chmod +x "$TMP/slurm/"*
PATH=$TMP/slurm:$PATH SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=2 SLURM_JOB_NODELIST=a,b \
    bash jobs/train.sbatch run=there >"$LIB_OUT" 2>"$LIB_ERR" &
job=$!
until [ -e "$TMP/looking" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
kill -USR1 $job
touch "$TMP/told"
wait $job
expect_equal 85 $? 'exit code'
expect_match 'job 7: requeueing the job'
expect_match '^scontrol requeue 7$'
