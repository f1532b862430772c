"""The write side's use cases and every way in: MCP over stdio, the command line, programs.

Programs begin with `open_store`; everything they need is a name of this package, loaded when it is
first used, because the stdio server begins with this package too.
"""

from typing import TYPE_CHECKING

from server.version import VERSION

if TYPE_CHECKING:
    from server.audit_args import AuditArgs, AuditExportArgs, AuditShowArgs
    from server.commands import (
        AddArgs,
        AddManyArgs,
        AliasArgs,
        AppendArgs,
        DeleteArgs,
        DeleteManyArgs,
        ExportArgs,
        GetArgs,
        HealthArgs,
        InspectArgs,
        ListArgs,
        Patch,
        PatchArgs,
        SearchArgs,
        SessionEndArgs,
        SessionListArgs,
        SessionStartArgs,
        UndoArgs,
        UpdateArgs,
    )
    from server.diff import DiffArgs
    from server.errors import ConfigError, StoreError, UseCaseError
    from server.library import MemoryStore, open_store
    from server.redaction_args import RedactArgs

__version__ = VERSION

__all__ = [
    "AddArgs",
    "AddManyArgs",
    "AliasArgs",
    "AppendArgs",
    "AuditArgs",
    "AuditExportArgs",
    "AuditShowArgs",
    "ConfigError",
    "DeleteArgs",
    "DeleteManyArgs",
    "DiffArgs",
    "ExportArgs",
    "GetArgs",
    "HealthArgs",
    "InspectArgs",
    "ListArgs",
    "MemoryStore",
    "Patch",
    "PatchArgs",
    "RedactArgs",
    "SearchArgs",
    "SessionEndArgs",
    "SessionListArgs",
    "SessionStartArgs",
    "StoreError",
    "UndoArgs",
    "UpdateArgs",
    "UseCaseError",
    "__version__",
    "open_store",
]


def __getattr__(name: str) -> object:
    """Load a name of this package from the module that it is in."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - the stdio server needs none of it

    for module in ("server.commands", "server.audit_args", "server.errors", "server.library"):
        found = getattr(import_module(module), name, None)
        if found is not None:
            return found
    raise AssertionError(name)
