# shellcheck shell=bash
# Completion of cohort for bash: commands, options, settings and their values, which `cohort help --complete` lists.
# Installed as share/bash-completion/completions/cohort; or read it with `. completions/cohort.bash`.
_cohort() {
    local line=${COMP_LINE:0:COMP_POINT} words before part candidate
    read -ra words <<<"$line"
    case $line in *[[:space:]]) words+=("") ;; esac
    local program=${words[0]/#\~/$HOME} last=${words[-1]}
    # Bash replaces only what follows the last = of a word.
    case $COMP_WORDBREAKS in *=*) before=${last%"${last##*=}"} ;; *) before= ;; esac
    part=${last##*=}
    COMPREPLY=()
    while IFS= read -r candidate; do
        if [ "$candidate" = @files ]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "$part")
        else
            COMPREPLY+=("${candidate#"$before"}")
        fi
    done < <("$program" help --complete "${words[@]:1}" 2>/dev/null)
    case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _cohort cohort
