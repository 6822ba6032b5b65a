# The shell that drivers and agent scripts live in. Runs with bash 3.2 and later: no mapfile, no associative arrays, no
# ${x@Q}. Everything crosses in frames that end in NUL, so that any bytes survive. Names begin with __ralph.
#
#   bash -c "$this" ralph-bridge serve PROGRAM MARK              requests on standard input, answers on standard output
#   bash -c "$this" ralph-bridge invoke|display PROGRAM ARG...   a saved state on standard input, then the work
#   bash -c "$this" ralph-bridge extract PROGRAM FILE            the same; the response on standard output

__ralph_mode=$1
__ralph_program=$2
shift 2

# --- jq, without a process for each line ------------------------------------------------------------------------------

__ralph_jq_pid=
__ralph_jq_known=

# Starts the service that evaluates programs. 190: requests, 191: answers, 192: a token, so that one asks at a time.
__ralph_jq_start() {
    local directory
    directory=$(mktemp -d "${TMPDIR:-/tmp}/ralph-jq.XXXXXX") || return 1
    if mkfifo "$directory/questions" "$directory/answers" "$directory/token"; then
        "$__ralph_program" jq-service serve <"$directory/questions" >"$directory/answers" 2>/dev/null 197>&- 198<&- 199>&- &
        __ralph_jq_pid=$!
        # Held for reading too, so that writing to a service that is gone is no signal; its answers then end.
        exec 190<>"$directory/questions" 191<"$directory/answers" 192<>"$directory/token"
        printf x >&192
    fi
    rm -rf "$directory"
}

# The tool itself: the system's, or ours where there is none.
__ralph_jq_tool() {
    if type -P jq >/dev/null; then
        command jq "$@"
    else
        "$__ralph_program" jq-service run -- "$@"
    fi
}

# True when a call reads one program and its standard input, and nothing else.
__ralph_jq_is_plain() {
    local programs=0
    while [ $# -gt 0 ]; do
        case $1 in
            --arg | --argjson) shift 2 || return 1 ;;
            --raw-output | --join-output | --compact-output | --sort-keys | --raw-input | --slurp | --exit-status) ;;
            --monochrome-output | --unbuffered) ;;
            --*) return 1 ;;
            -*[!rjcSRseM]* | -) return 1 ;;
            -?*) ;;
            *) programs=$((programs + 1)) ;;
        esac
        shift
    done
    [ "$programs" -eq 1 ]
}

# jq, given its input as a string: `__ralph_jq_text TEXT ARG...`
__ralph_jq_text() {
    local text=$1 id=$RANDOM.$RANDOM token head out err=
    shift
    # The same call comes for each line: it is looked at once.
    if [ "$*" != "$__ralph_jq_known" ] && __ralph_jq_is_plain "$@"; then __ralph_jq_known=$*; fi
    if [ "$*" = "$__ralph_jq_known" ] && [ -n "$__ralph_jq_pid" ] && kill -0 "$__ralph_jq_pid" 2>/dev/null &&
        IFS= read -r -n 1 -t 30 token <&192; then
        printf '%s\0' "$id" "$#" "$@" "$text" >&190
        # An answer that somebody else did not wait for is passed over. Its head is `id status`, or `id status!` when
        # complaints follow.
        head=
        while [ "${head%% *}" != "$id" ]; do
            IFS= read -r -d '' head <&191 && IFS= read -r -d '' out <&191 || { head="$id gone"; break; }
            case $head in *!) IFS= read -r -d '' err <&191 ;; esac
        done
        printf x >&192
        head=${head##* }
        case $head in
            gone | refused) ;;
            *)
                printf '%s' "$out"
                [ -z "$err" ] || printf '%s' "$err" >&2
                return "${head%!}"
                ;;
        esac
    fi
    printf '%s' "$text" | __ralph_jq_tool "$@"
}

# `echo TEXT | jq ARG...` becomes this: the same, without the two processes of a pipe.
__ralph_jq_line() {
    local text=$1$'\n'
    shift
    __ralph_jq_text "$text" "$@"
}

# A loop that asks the same of each line, and passes over those that are broken, becomes this: one process for all.
__ralph_jq_each() {
    local line
    "$__ralph_program" jq-service each -- "$@" 2>/dev/null && return
    # What it does not know, it leaves unread.
    while IFS= read -r line; do
        __ralph_jq_line "$line" "$@" 2>/dev/null || true
    done
}

jq() {
    # What reads the agent's stream itself, or files, or nothing, is a process of its own and sees it as it comes.
    if [ -z "$__ralph_jq_pid" ] || [ /dev/fd/0 -ef /dev/fd/196 ] || ! __ralph_jq_is_plain "$@"; then
        __ralph_jq_tool "$@"
    else
        local text
        IFS= read -r -d '' text
        __ralph_jq_text "$text" "$@"
    fi
}

# --- work that is done in a shell of its own, with the state of the one that has the hooks -----------------------------

case $__ralph_mode in
invoke | display | extract)
    # The state has variables of the bridge itself; only the arguments stay what they are.
    set -- "$__ralph_mode" "$__ralph_program" "$@"
    IFS= read -r -d '' __ralph_state
    eval "$__ralph_state" 2>/dev/null
    __ralph_mode=$1 __ralph_program=$2 __ralph_jq_pid= __ralph_state=
    log() { printf '%s\n' "$*" >&2; }
    case $__ralph_mode in
    invoke)
        # The last of a pipe that fails decides. A command that leaves its prompt unread is no failure.
        set -o pipefail
        exec </dev/null
        agent_invoke "$3"
        __ralph_status=$?
        [ "$__ralph_status" -ne 141 ] || __ralph_status=0
        exit "$__ralph_status"
        ;;
    display)
        exec 196<&0
        __ralph_jq_start </dev/null
        agent_format_display
        exit
        ;;
    extract)
        exec </dev/null 196<&0
        __ralph_jq_start
        agent_extract_response "$3"
        exit
        ;;
    esac
    ;;
esac

# --- the shell that has the hooks ---------------------------------------------------------------------------------------

__ralph_mark=$1
set --
exec 198<&0 199>&1 197>&2 </dev/null 196</dev/null >&2
__ralph_flags=

# What a file sets with `set` holds for its own code only.
__ralph_theirs() {
    case $__ralph_flags in *e*) set -e ;; esac
    case $__ralph_flags in *u*) set -u ;; esac
}
__ralph_ours() {
    __ralph_flags=$-
    set +eu
}

log() { printf 'log\0%s\0' "$*" >&199; }

# `__ralph_answer STATUS FIELD...`; the mark on standard error says that nothing more of this request will come there.
__ralph_answer() {
    local status=$1
    shift
    printf 'answer\0%s\0%s\0' "$status" "$#" >&199
    [ $# -eq 0 ] || printf '%s\0' "$@" >&199
    printf '\0%s\0' "$__ralph_mark" >&197
}

while IFS= read -r -d '' __ralph_verb <&198; do
    IFS= read -r -d '' __ralph_count <&198
    __ralph_arguments=()
    while [ "${#__ralph_arguments[@]}" -lt "$__ralph_count" ]; do
        IFS= read -r -d '' __ralph_value <&198
        __ralph_arguments[${#__ralph_arguments[@]}]=$__ralph_value
    done
    __ralph_status=0
    case $__ralph_verb in
    set)
        printf -v "${__ralph_arguments[0]}" '%s' "${__ralph_arguments[1]}"
        __ralph_answer 0
        ;;
    export)
        export "${__ralph_arguments[0]}=${__ralph_arguments[1]}"
        __ralph_answer 0
        ;;
    copy)
        eval "${__ralph_arguments[1]}=(\${${__ralph_arguments[0]}[@]+\"\${${__ralph_arguments[0]}[@]}\"})"
        __ralph_answer 0
        ;;
    load)
        source "${__ralph_arguments[0]}" 198<&-
        __ralph_status=$?
        __ralph_ours
        __ralph_answer "$__ralph_status" "$(compgen -A function)"
        ;;
    call)
        __ralph_theirs
        if "${__ralph_arguments[@]}" </dev/null 198<&-; then __ralph_status=0; else __ralph_status=$?; fi
        __ralph_ours
        __ralph_answer "$__ralph_status"
        ;;
    ask)
        __ralph_theirs
        if __ralph_value=$("${__ralph_arguments[@]}" </dev/null 198<&-); then
            __ralph_status=0
        else
            __ralph_status=$?
        fi
        __ralph_ours
        __ralph_answer "$__ralph_status" "$__ralph_value"
        ;;
    array)
        eval "__ralph_answer 0 \${${__ralph_arguments[0]}[@]+\"\${${__ralph_arguments[0]}[@]}\"}"
        ;;
    value)
        if [ -n "${!__ralph_arguments+set}" ]; then __ralph_answer 0 "${!__ralph_arguments}"; else __ralph_answer 1; fi
        ;;
    environment)
        __ralph_pairs=() __ralph_ifs=$IFS IFS=$'\n'
        for __ralph_value in $(compgen -e); do
            __ralph_pairs[${#__ralph_pairs[@]}]=$__ralph_value
            __ralph_pairs[${#__ralph_pairs[@]}]=${!__ralph_value-}
        done
        IFS=$__ralph_ifs
        __ralph_answer 0 ${__ralph_pairs[@]+"${__ralph_pairs[@]}"}
        ;;
    functions)
        __ralph_answer 0 "$(declare -f)"
        ;;
    define)
        eval "${__ralph_arguments[0]}"
        __ralph_status=$?
        __ralph_jq_start
        __ralph_answer "$__ralph_status"
        ;;
    state)
        # What a shell needs to parse the functions comes before them.
        __ralph_answer 0 "$(shopt -p)
$(declare -p 2>/dev/null)
$(declare -f)"
        ;;
    esac
done
