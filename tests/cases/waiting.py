"""Clauses of the cases that wait for a part that is not built yet.

A case is a fault that has broken other memory stores, with the input that shows it. The tests of
this folder are named after the cases they hold; what follows is what they do not hold yet, and why.
"""

from typing import Final, NamedTuple


class Waiting(NamedTuple):
    """A clause that has no test yet."""

    case: str
    """Group letter and number."""
    clause: str
    """What must hold."""
    part: str
    """What it waits for."""


EMBEDDINGS: Final = "vectors and embedders"
BATCH: Final = "writing many memories in one call"
BULK: Final = "deleting by filter"
PHRASES: Final = "dates in words, in queries and filters"
IMPORT: Final = "importing documents"
EXPORT: Final = "export, backup and restore"
REDACTION: Final = "redaction"
HTTP: Final = "HTTP"
HEALTH: Final = "a health report"
CONTRADICTIONS: Final = "candidates for contradiction"
LINKS: Final = "edges between memories"

WAITING: Final = (
    Waiting("Q-6", "a short strong match is first in hybrid search too", EMBEDDINGS),
    Waiting("Q-7", "a query without words is answered alike over HTTP and the command line", HTTP),
    Waiting("U-4", "duplicates are recognised across composed and decomposed text", CONTRADICTIONS),
    Waiting("U-5", "half an emoji in one item of a batch leaves the other items stored", BATCH),
    Waiting("U-6", "a note with a NUL does not stop the import of its folder", IMPORT),
    Waiting(
        "C-1", "a blank item of a batch is refused and the reply says what became of it", BATCH
    ),
    Waiting("C-2", "the end of a long text is found by meaning", EMBEDDINGS),
    Waiting("C-3", "an oversized item of a batch is stored or refused on its own", BATCH),
    Waiting("C-3", "a very long word is embedded or skipped without harm to others", EMBEDDINGS),
    Waiting("D-1", "`last 3 days` and the like give the range they say", PHRASES),
    Waiting("D-1", "a time phrase that is not understood is named in the reply", PHRASES),
    Waiting("D-2", "`yesterday` means the same on every host for one stated zone", PHRASES),
    Waiting("D-4", "a year or a month alone keeps its precision as a span", PHRASES),
    Waiting("D-4", "a day without a year is not moved into another year in silence", PHRASES),
    Waiting("D-6", "an older fact that is imported later does not replace the current one", IMPORT),
    Waiting("S-1", "a loop of superseding in the ledger is reported by a rebuild", HEALTH),
    Waiting("S-2", "redacting nothing says that nothing was changed", REDACTION),
    Waiting("S-3", "what has expired is hidden from vector and hybrid search", EMBEDDINGS),
    Waiting("S-3", "an export marks what has expired", EXPORT),
    Waiting("S-4", "no vector of a deleted memory is left in the current view", EMBEDDINGS),
    Waiting("S-4", "no edge of a deleted memory is left in the current view", LINKS),
    Waiting("S-4", "deleting in bulk and by filter leaves nothing either", BULK),
    Waiting("S-5", "deleting one scope leaves the others; an empty filter is refused", BULK),
    Waiting("S-6", "an old text's vector is never used while the new one is pending", EMBEDDINGS),
    Waiting("L-3", "damage is reported by the health tool as well", HEALTH),
)
