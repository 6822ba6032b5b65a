
# Ids of the runs of this directory, for the first word after the command. They are compared as text: nothing that is
# printed here is ever expanded by the shell.
_ralph_with_ids() {
    _ralph "$@"
    case "${COMP_WORDS[1]}" in
        @COMMANDS@)
            if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[2]} != -* ]]; then
                local id
                while IFS= read -r id; do
                    [[ $id =~ ^[a-z0-9-]+$ && $id == "${COMP_WORDS[2]}"* ]] && COMPREPLY+=("$id")
                done < <("${COMP_WORDS[0]}" runs --ids 2>/dev/null)
            fi
            ;;
    esac
}
complete -F _ralph_with_ids -o nosort -o bashdefault -o default ralph 2>/dev/null || complete -F _ralph_with_ids -o bashdefault -o default ralph
