#!/usr/bin/env bash
# An agent script for @NAME@: it runs the agent and reads its output. Chosen by `--agent script:@NAME@`, or by AGENT="@NAME@" in
# config. Test it: ralph agents check @NAME@

# The agent's command, and its arguments: it works alone and asks nobody.
AGENT_CLI="@NAME@"
AGENT_ARGS="--json"

# Runs the agent on the prompt in $1. What it prints on standard output is kept; standard error is shown as it is.
agent_invoke() {
    local prompt_file="$1"
    cat "$prompt_file" | $AGENT_CLI $AGENT_ARGS
}

# Prints the agent's own words from its output in $1, and nothing else: they decide whether the work is done.
agent_extract_response() {
    local output_file="$1" line
    while IFS= read -r line; do
        echo "$line" | jq -r 'select(.type == "assistant") | .message.content[] | select(.type == "text") | .text' 2>/dev/null || true
    done < "$output_file"
}

# Turns the agent's output into text for people, line by line.
agent_format_display() {
    local line
    while IFS= read -r line; do
        echo "$line" | jq -r 'select(.type == "assistant") | .message.content[] |
            if .type == "text" then .text elif .type == "tool_use" then "[tool] " + .name else empty end' 2>/dev/null || true
    done
}

# Before and after each iteration, in one shell: what the first sets, the second sees.
agent_pre_iteration() { _STARTED=$SECONDS; }
agent_post_iteration() { log "@NAME@ took $((SECONDS - _STARTED)) s"; }
