AGENT_CLI="codex"

agent_invoke() { echo "Error: codex is only a stub" >&2; return 1; }
agent_extract_response() { return 1; }
agent_format_display() { cat; }
