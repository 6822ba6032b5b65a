
# Ids of the runs of this directory.
_ralph_with_ids() {
    _ralph "$@"
    case "${COMP_WORDS[1]}" in
        @COMMANDS@)
            if [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[COMP_CWORD]} != -* ]]; then
                COMPREPLY+=($(compgen -W "$("${COMP_WORDS[0]}" runs --ids 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
            fi
            ;;
    esac
}
complete -F _ralph_with_ids -o nosort -o bashdefault -o default ralph 2>/dev/null || complete -F _ralph_with_ids -o bashdefault -o default ralph
