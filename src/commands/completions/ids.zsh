
# Ids of the runs of this directory, for the first word behind the command.
_ralph_with_ids() {
    case "${words[2]}" in
        @COMMANDS@)
            if (( CURRENT == 3 )) && [[ "${words[3]}" != -* ]]; then
                local -a ids
                ids=(${(f)"$("${words[1]}" runs --ids 2>/dev/null)"})
                (( $#ids )) && compadd -V runs -a ids
            fi
            ;;
    esac
    _ralph "$@"
}
(( $+functions[compdef] )) && compdef _ralph_with_ids ralph
