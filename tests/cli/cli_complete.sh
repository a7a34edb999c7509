#!/bin/bash
# Completion in bash, as the shell itself does it, and installed job files.
# not under: debug double sanitize
. "$(dirname "$0")/../lib/lib.sh"
run make install BUILD="${BUILD:-build}" PREFIX="$TMP/prefix"
prefix=$TMP/prefix
check "the program is installed" test -x "$prefix/bin/cohort"
cd "$TMP" || exit 70
run "$prefix/bin/cohort" simulate irt --students 50 --items 5 --seed 1 -o class.h5
touch answers.csv
export PATH=$prefix/bin:$PATH

# completes LINE: what bash offers at its end, on one line.
cat >completes.sh <<'END'
. "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \t\n"><=;|&(:'
_cohort
printf '%s\n' "${COMPREPLY[@]}"
END
completes() {
    bash completes.sh "$prefix/share/bash-completion/completions/cohort" "$1" 2>/dev/null | sort | paste -sd ' '
}

section "completion"
expect_equal "evaluate export" "$(completes 'cohort e')" "commands"
expect_equal "--skip-first --split --strict" "$(completes 'cohort evaluate run --s' | sed 's/ --seed//;s/--seed //')" "options"
expect_equal "test train" "$(completes 'cohort evaluate run --split t')" "choices of an option"
expect_equal "test train" "$(completes 'cohort evaluate run --split=t')" "choices after ="
expect_equal "csv" "$(completes 'cohort import cs')" "formats"
expect_equal "irt" "$(completes 'cohort simulate i')" "kinds of simulation"
expect_equal "model.hidden= model.hidden_kind=" \
    "$(completes 'cohort train model.kind=rbm model.hid' | tr ' ' '\n' | grep -E '^model.hidden(_kind)?=' | paste -sd ' ')" "settings"
expect_equal "" "$(completes 'cohort train model.kind=bkt model.hid')" "settings of another kind"
expect_equal "rbm rtrbm" "$(completes 'cohort train model.kind=r')" "kinds"
expect_equal "binomial" "$(completes 'cohort train model.kind=rbm model.preset=bi')" "presets"
expect_equal "log_loss" "$(completes 'cohort train train.monitor=lo')" "choices of a setting"
expect_equal "class.h5" "$(completes 'cohort train data=cl')" "files after ="
expect_equal "answers.csv" "$(completes 'cohort import csv ans')" "files"
expect_equal "rbm.ini" "$(completes 'cohort train rbm')" "installed job files"
expect_equal "sweep.design=" "$(completes 'cohort sweep sweep.d')" "settings of a sweep"
expect_equal "settings" "$(completes 'cohort help sett')" "topics"
expect_equal "" "$(completes 'cohort nonsense x')" "an unknown command"
check "every command has completion" test "$(completes 'cohort ' | wc -w)" -ge 15
# What bash itself does with it, in an interactive shell.
if script -qec true /dev/null >/dev/null 2>&1; then
    printf '. %q\nPS1=\ncohort train model.kind=rt\t\nexit\n' "$prefix/share/bash-completion/completions/cohort" |
        script -qefc 'bash --norc --noprofile -i' typed.txt >/dev/null 2>&1
    expect_match 'cohort train model.kind=rtrbm' typed.txt
fi
if zsh -c true 2>/dev/null; then check "zsh reads it" zsh -n "$prefix/share/zsh/site-functions/_cohort"; fi

section "installed job files"
expect_status 0 "$prefix/bin/cohort" submit rbm.ini --dry-run
expect_match "^settings: $prefix/share/cohort/jobs/rbm.ini"
expect_status 0 "$prefix/bin/cohort" submit jobs/rbm.ini --dry-run
expect_match "^settings: $prefix/share/cohort/jobs/rbm.ini"
expect_match 'model.kind=rbm'
expect_status 1 "$prefix/bin/cohort" train rbn.ini
expect_match 'did you mean rbm.ini, which comes with cohort'
for command in train submit sweep evaluate; do
    run "$prefix/bin/cohort" help $command
    expect_no_match 'jobs/[a-z_]*.ini'
done
cd - >/dev/null || exit 70
run make uninstall PREFIX="$prefix"
expect_equal "" "$(find "$prefix" -type f)" "files left after make uninstall"
