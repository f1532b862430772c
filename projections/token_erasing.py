"""Taking the tokens of deleted rows out of the text indexes, a little at a time.

A contentless FTS5 index keeps the tokens of a deleted row, behind a tombstone, until the segment
that holds them is merged (https://sqlite.org/fts5.html); its secure-delete
option does nothing for such tables. `optimize` merges all in one statement, which keeps every
writer waiting for as long as the index is large. Its incremental form is a merge in rounds.

A negative `merge` alone would not do: where a merge of all but one segment is under way, FTS5 goes
on with it, and what it had copied before the row was deleted stays. So what is under way is
finished first, and the merge of all segments begins in the very transaction that saw nothing under
way. It reads every segment from its beginning after the deletion, so none of them hands the tokens
on. What is written meanwhile goes to new segments.

That a merge found nothing to do does not say that none is under way: a positive `merge` leaves one
of few segments where it is, if a lower level has as many. So the index's own record is asked, which
the head of SQLite's ext/fts5/fts5_index.c describes. A negative `merge` moves such a one on, or
begins a merge of all anew, with more segments than a lower level keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from projections.connection import Connection

PAGES_PER_ROUND: Final = 64
"""Pages of 4 KiB that a round writes, some hundredths of a second of work."""

_IDLE_CHANGES: Final = 2
"""A merge that changed fewer rows than this had nothing to do, as FTS5's manual says."""

_RECORD_ID: Final = 10
"""Where an index keeps the list of its levels and segments, in its data table."""

_RECORD_HEAD_BYTES, _SEGMENT_NUMBERS = 8, 8
"""A cookie and the mark of the second format, which contentless-delete tables always have; and
how many numbers that format has for each segment."""


class TokenErasing:
    """One writing of both text indexes anew, in rounds.

    Who stops between two rounds, or fails in one, begins again with a new object: the merge that
    was under way is then finished as any other, and another is made after it.
    """

    def __init__(self) -> None:
        """Begin with nothing done; what is erased must be deleted and committed before."""
        self._left = ["memories_fts", "trigrams"]
        self._is_begun = False

    def advance(self, connection: Connection, pages: int = PAGES_PER_ROUND) -> bool:
        """Do one round, in a write transaction of its own; say whether more are needed.

        Args:
            connection: the same one in each round.
            pages: how much a round writes, about; one term's postings are never split.

        """
        if not self._left:
            return False
        index = self._left[0]
        if _merge(connection, index, pages):
            return True
        if _is_merging(connection, index):
            _merge(connection, index, -pages)
            return True
        if not self._is_begun and _merge(connection, index, -pages):
            self._is_begun = True
            return True
        self._is_begun = False
        del self._left[0]
        return bool(self._left)


def _merge(connection: Connection, index: str, pages: int) -> bool:
    """Merge so many pages, or with a negative number begin to merge all; say if there was work."""
    before = connection.changes_total()
    connection.execute(f"INSERT INTO {index}({index}, rank) VALUES('merge', ?)", (pages,))
    return connection.changes_total() - before >= _IDLE_CHANGES


def _is_merging(connection: Connection, index: str) -> bool:
    """Say whether some level of an index is the input of a merge that is not finished."""
    record: bytes = connection.value(f"SELECT block FROM {index}_data WHERE id = ?", (_RECORD_ID,))
    numbers = _varints(record[_RECORD_HEAD_BYTES:])
    levels, _segments, _written = next(numbers), next(numbers), next(numbers)
    for _ in range(levels):
        merging, segments = next(numbers), next(numbers)
        if merging:
            return True
        for _ in range(segments * _SEGMENT_NUMBERS):
            next(numbers)
    return False


def _varints(data: bytes) -> Iterator[int]:
    """Yield SQLite's variable-length integers; none here needs the ninth byte."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0
