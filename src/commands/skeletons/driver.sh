#!/usr/bin/env bash
# A driver for @NAME@: it says how the command line of an agent is built. ralph sources this file and runs the command itself.
# Chosen by `--agent driver:@NAME@`, or by PLATFORM_DRIVER="@NAME@" in .ralphrc. Test it: ralph agents check @NAME@

# A short name in lower case.
driver_name() { echo "@NAME@"; }

# The name for people.
driver_display_name() { echo "@NAME@"; }

# The command, or the path to it.
driver_cli_binary() { echo "@NAME@"; }

# The tools that the agent knows by name.
driver_valid_tools() {
    VALID_TOOL_PATTERNS=("Read" "Write" "Edit" "Bash")
}

# Puts the whole command line into CLAUDE_CMD_ARGS.
#   $1 the file with the prompt   $2 what the loop has to say, may be empty   $3 the session to go on with, or empty
driver_build_command() {
    local prompt_file="$1" loop_context="$2" session_id="$3"
    if [[ ! -f "$prompt_file" ]]; then
        echo "there is no prompt file $prompt_file" >&2
        return 1
    fi
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "--prompt-file" "$prompt_file")
    if [[ -n "$loop_context" ]]; then
        CLAUDE_CMD_ARGS+=("--context" "$loop_context")
    fi
    if [[ "$CLAUDE_USE_CONTINUE" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--session" "$session_id")
    fi
}

# 0 when the agent can be limited to the tools in CLAUDE_ALLOWED_TOOLS.
driver_supports_tool_allowlist() { return 1; }

# 0 when a session can go on.
driver_supports_sessions() { return 0; }

# 0 when the agent prints JSON lines while it works.
driver_supports_live_output() { return 0; }

# The command line for output that is shown while it comes; this one needs nothing else.
driver_prepare_live_command() { LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[@]}"); }

# A jq program that turns a line of the output into text for people. It is for the screen alone: what the agent claims is read
# from the output itself, which should be plain text or the JSON of an agent that ralph knows (`ralph translate` shows it).
driver_stream_filter() { echo 'select(.type == "text") | .text'; }

# What a person can do when the agent was not permitted something.
driver_permission_denial_help() {
    echo "Permit the tool in the settings of $DRIVER_DISPLAY_NAME, then start ralph again."
}

# The oldest version that works.
driver_min_version() { echo "1.0.0"; }

# 0 when the command is installed.
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }
