"""Progress of a rebuild, drawn on standard error: bar, count, events a second, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from projections.rebuild import Progress


@contextmanager
def draw() -> Iterator[Progress]:
    """Draw one bar a phase while the block reports."""
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total, rate="")
            speed = bar.tasks[tasks[phase]].speed
            bar.update(
                tasks[phase],
                completed=done,
                total=max(done, total),
                rate="" if speed is None else f"{speed:,.0f}/s",
            )

        yield progress
