"""What clients are told of a tool, made ahead of time.

Making the schemas takes longer than everything else before the list of tools is answered. So they
are kept beside this module, in `tool_entries.json`, and a test compares them with the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from server.tool import Tool

ENTRIES = Path(__file__).with_name("tool_entries.json")
"""Tool name -> entry, a line each."""


def describe(tool: Tool) -> dict[str, Any]:
    """Make the entry of a tool in `tools/list`."""
    from server.schema import json_schema  # noqa: PLC0415 - see the module's docstring

    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": json_schema(tool.args),
        "outputSchema": json_schema(tool.result),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }


def encode_entries(tools: Sequence[Tool]) -> bytes:
    """Return what `ENTRIES` must hold for these tools."""
    lines = [
        msgspec.json.encode(tool.name) + b":" + msgspec.json.encode(describe(tool))
        for tool in tools
    ]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def entries_of(tools: Sequence[Tool]) -> msgspec.Raw:
    """Return the entries of tools as a JSON array; only those not kept are made now."""
    kept = msgspec.json.decode(ENTRIES.read_bytes(), type=dict[str, msgspec.Raw])
    return msgspec.Raw(
        msgspec.json.encode([kept.get(tool.name) or describe(tool) for tool in tools])
    )
