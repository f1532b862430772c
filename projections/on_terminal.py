"""Progress for whoever looks on: drawn if standard error is a terminal, else told to nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from projections.rebuild import Progress


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Draw progress on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _phase, _done, _total: None
        return
    from projections.progress_bar import draw  # noqa: PLC0415 - only people pay for the drawing

    with draw() as progress:
        yield progress


@contextmanager
def shown_phase(phase: str) -> Iterator[Callable[[int, int], None]]:
    """Draw the progress of one phase: how many are done, how many there are."""
    with shown_progress() as progress:
        yield lambda done, total: progress(phase, done, total)
