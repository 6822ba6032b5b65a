"""Asks one thing through Anthropic's own client and prints each message that it yields as a JSON line.

Used by `cargo run -p live -- sdk`: the first argument is the program that plays Claude Code, the second the prompt.
"""

import asyncio
import dataclasses
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, query


def told(value):
    """A message or a block with its class, since the class is what a consumer looks at."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: told(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, (list, tuple)):
        return [told(one) for one in value]
    return value


async def main():
    options = ClaudeAgentOptions(cli_path=sys.argv[1], permission_mode="bypassPermissions")
    async for message in query(prompt=sys.argv[2], options=options):
        print(json.dumps(told(message), default=str), flush=True)


asyncio.run(main())
