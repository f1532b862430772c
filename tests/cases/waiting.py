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
IMPORT: Final = "importing documents"
HTTP: Final = "HTTP"
LINKS: Final = "edges between memories"

WAITING: Final = (
    Waiting("Q-6", "a short strong match is first in hybrid search too", EMBEDDINGS),
    Waiting("Q-7", "a query without words is answered alike over HTTP", HTTP),
    Waiting("U-6", "a note with a NUL does not stop the import of its folder", IMPORT),
    Waiting("C-1", "blank content is refused over HTTP as over every other way in", HTTP),
    Waiting("C-2", "the end of a long text is found by meaning", EMBEDDINGS),
    Waiting("C-3", "a very long word is embedded or skipped without harm to others", EMBEDDINGS),
    Waiting("D-6", "an older fact that is imported later does not replace the current one", IMPORT),
    Waiting("S-3", "what has expired is hidden from vector and hybrid search", EMBEDDINGS),
    Waiting("S-4", "no vector of a deleted memory is left in the current view", EMBEDDINGS),
    Waiting("S-4", "no edge of a deleted memory is left in the current view", LINKS),
    Waiting("S-6", "an old text's vector is never used while the new one is pending", EMBEDDINGS),
    Waiting("W-1", "two clients over HTTP store and search beside the others", HTTP),
    Waiting("W-3", "a slow embedder holds up nobody's store or search", EMBEDDINGS),
    Waiting("F-1", "files of tokens are their owner's alone from the start", HTTP),
    Waiting("R-4", "importing an old export does not bring a redacted memory back", IMPORT),
    Waiting("E-4", "an export that is imported into an empty store gives an equal state", IMPORT),
    Waiting("E-4", "an export that is imported into its own store adds nothing", IMPORT),
    Waiting("X-1", "an import creates and changes nothing outside its folder", IMPORT),
    Waiting("X-4", "an archive that expands without end is stopped by its output", IMPORT),
)
