"""A session of the 1.x SDK's client with the sample server; run by an interpreter that has it.

Prints what it saw as one JSON object. It imports nothing of ours but the server it starts. Its
types are looked up when it runs: where the project is checked, another SDK is installed.
"""

import json
import sys
from typing import Any

import anyio
import mcp
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

Session: Any = mcp.ClientSession
types: Any = mcp.types


async def main(*arguments: str) -> None:
    python, folder = arguments
    server = mcp.StdioServerParameters(
        command=python, args=["-m", "tests.support.stdio_server"], cwd=folder
    )
    updated: list[str] = []
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        if message.root.method == "notifications/resources/updated":
            updated.append(str(message.root.params.uri))
            told.set()

    async with (
        stdio_client(server) as (read, write),
        Session(read, write, message_handler=on_message) as session,
    ):
        saw = await see_tools(session)
        saw |= await see_resources(session)
        saw |= await see_prompts(session)
        board = AnyUrl("sample://board")
        await session.subscribe_resource(board)
        await session.call_tool("turn", {})
        await told.wait()
        await session.unsubscribe_resource(board)
    print(json.dumps({**saw, "updated": updated}))  # noqa: T201 - its answer


async def see_tools(session: Any) -> dict[str, Any]:
    steps: list[object] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])

    initialized = await session.initialize()
    await session.send_ping()
    tools = await session.list_tools()
    noted = await session.call_tool("note", {"text": "from 1.x", "tags": ["a"]})
    refused = await session.call_tool("find", {"note_id": "n"})
    await session.call_tool("step", {"steps": [1, 2]}, progress_callback=on_progress)
    return {
        "version": initialized.protocolVersion,
        "instructions": initialized.instructions,
        "tools": [tool.name for tool in tools.tools],
        "noted": noted.structuredContent,
        "refused": refused.isError,
        "steps": steps,
    }


async def see_resources(session: Any) -> dict[str, Any]:
    resources = await session.list_resources()
    templates = await session.list_resource_templates()
    read = await session.read_resource(AnyUrl("sample://page/second"))
    return {
        "resources": [str(resource.uri) for resource in resources.resources],
        "templates": [template.uriTemplate for template in templates.resourceTemplates],
        "read": read.contents[0].text,
    }


async def see_prompts(session: Any) -> dict[str, Any]:
    prompts = await session.list_prompts()
    written = await session.get_prompt("greet", {"whom": "Ada"})
    ref = types.PromptReference(type="ref/prompt", name="greet")
    completed = await session.complete(ref, {"name": "language", "value": "f"})
    return {
        "prompts": [prompt.name for prompt in prompts.prompts],
        "written": written.messages[0].content.text,
        "completed": completed.completion.values,
    }


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
