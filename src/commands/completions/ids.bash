
# Ids of the runs of this directory, for the first word behind the command.
_ralph_with_ids() {
    _ralph "$@"
    case "${COMP_WORDS[1]}" in
        @COMMANDS@)
            if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[2]} != -* ]]; then
                COMPREPLY+=($(compgen -W "$("${COMP_WORDS[0]}" runs --ids 2>/dev/null)" -- "${COMP_WORDS[2]}"))
            fi
            ;;
    esac
}
complete -F _ralph_with_ids -o nosort -o bashdefault -o default ralph 2>/dev/null || complete -F _ralph_with_ids -o bashdefault -o default ralph
