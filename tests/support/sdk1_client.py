"""A session of the 1.x SDK's client with the sample server; run by an interpreter that has it.

Prints what it saw as one JSON object. It imports nothing of ours but the server it starts.
"""

import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters  # type: ignore[attr-defined,unused-ignore]
from mcp.client.stdio import stdio_client


async def main(*arguments: str) -> None:
    python, folder = arguments
    server = StdioServerParameters(
        command=python, args=["-m", "tests.support.stdio_server"], cwd=folder
    )
    steps: list[object] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        initialized = await session.initialize()
        await session.send_ping()
        tools = await session.list_tools()
        noted = await session.call_tool("note", {"text": "from 1.x", "tags": ["a"]})
        refused = await session.call_tool("find", {"note_id": "n"})
        await session.call_tool("step", {"steps": [1, 2]}, progress_callback=on_progress)
    print(  # noqa: T201
        json.dumps(
            {
                "version": initialized.protocolVersion,  # type: ignore[attr-defined,unused-ignore]
                "instructions": initialized.instructions,
                "tools": [tool.name for tool in tools.tools],
                "noted": noted.structuredContent,  # type: ignore[attr-defined,unused-ignore]
                "refused": refused.isError,  # type: ignore[attr-defined,unused-ignore]
                "steps": steps,
            }
        )
    )


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
