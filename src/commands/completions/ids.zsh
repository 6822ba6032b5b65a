
# Ids of the runs of this directory.
_ralph_with_ids() {
    case "${words[2]}" in
        @COMMANDS@)
            if [[ "${words[CURRENT]}" != -* ]]; then
                local -a ids
                ids=(${(f)"$("${words[1]}" runs --ids 2>/dev/null)"})
                (( $#ids )) && compadd -V runs -a ids
            fi
            ;;
    esac
    _ralph "$@"
}
(( $+functions[compdef] )) && compdef _ralph_with_ids ralph
