"""The read side: everything that answers a question, derived from the ledger and deletable.

Tables, search indexes and state digests live in generations (`generation.py`); `projector.py` says
what an event does to them, `rebuild.py` makes a generation from the first event on, `search.py` and
`queries.py` read, `integrity.py` doubts.
"""

from projections.checkpoint import read_checkpoint, write_checkpoint
from projections.connection import (
    DAMAGE_ERRORS,
    STORAGE_ERRORS,
    Connection,
    Interrupted,
    create_database,
)
from projections.digest import StateDigest, state_digest
from projections.errors import (
    ProgramOutdatedError,
    ProjectionDamagedError,
    ProjectionError,
    ProjectionMissingError,
    ProjectionOutdatedError,
)
from projections.facts import Current, Facts, Tombstone, Touched
from projections.generation import Generation, Generations
from projections.integrity import find_damage
from projections.projector import STATE_FIELDS
from projections.queries import (
    LayerStatistics,
    Memory,
    Version,
    chain_of,
    deleted_at,
    find_memory,
    layer_statistics,
    versions_of,
    workspace_rid,
)
from projections.rebuild import Progress, RebuildReport, rebuild, replay, salvage
from projections.search import Filters, Hit, Page, search_exact, search_text
from projections.snippet import snippet
from projections.substring import PENDING_MAX, flush_trigrams, pending_trigrams
from projections.text import Term, parse_query

__all__ = [
    "DAMAGE_ERRORS",
    "PENDING_MAX",
    "STATE_FIELDS",
    "STORAGE_ERRORS",
    "Connection",
    "Current",
    "Facts",
    "Filters",
    "Generation",
    "Generations",
    "Hit",
    "Interrupted",
    "LayerStatistics",
    "Memory",
    "Page",
    "ProgramOutdatedError",
    "Progress",
    "ProjectionDamagedError",
    "ProjectionError",
    "ProjectionMissingError",
    "ProjectionOutdatedError",
    "RebuildReport",
    "StateDigest",
    "Term",
    "Tombstone",
    "Touched",
    "Version",
    "chain_of",
    "create_database",
    "deleted_at",
    "find_damage",
    "find_memory",
    "flush_trigrams",
    "layer_statistics",
    "parse_query",
    "pending_trigrams",
    "read_checkpoint",
    "rebuild",
    "replay",
    "salvage",
    "search_exact",
    "search_text",
    "snippet",
    "state_digest",
    "versions_of",
    "workspace_rid",
    "write_checkpoint",
]
