"""A verb: a command on memories, with its words, its options and what it does."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from projections.wording import counted
from server.app import App
from server.commands import Args
from server.job import Job
from server.options import Place, add_options, given, in_commands
from server.results import KnownAt, Result
from server.schema import convert
from server.status import DONE
from server.terminal import Screen
from server.tool import Call
from server.views import View

A = TypeVar("A", bound=Args)


class Work(msgspec.Struct, frozen=True):
    """What a command is run with.

    Attributes:
        parsed: What was given.
        job: The store.
        screen: Takes the result.
        verb: The command.
    """

    parsed: argparse.Namespace
    job: Job
    screen: Screen
    verb: Verb

    def args(self, struct: type[A], **more: object) -> A:
        """Return what was given as a use case takes it."""
        arguments = {**self.verb.defaults, **given(self.parsed, struct), **more}
        return convert(arguments, struct)

    def show(self, result: Result, view: View) -> None:
        """Print a result, as JSON or as its view."""
        known_at = getattr(result, "known_at", None)
        notes = [*view.notes, *([] if known_at is None else [looked_back(known_at)])]
        notes += [f"note: {in_commands(note)}" for note in result.notes]
        self.screen.show(result, view.blocks, notes)


def looked_back(known_at: KnownAt) -> str:
    """Say at which moment an answer looks."""
    at = f", {known_at.at}" if known_at.at else ""
    gone = known_at.redacted_since
    less = f"; {counted(gone, 'redaction')} since took something away" if gone else ""
    return f"as known at position {known_at.position}{at}{less}"


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """A command on memories.

    Attributes:
        name: What is typed; two words for one of a family.
        help: One line on what it does.
        description: More of it.
        example: Command lines that show it, one a line.
        struct: Its arguments.
        run: Does it; returns the exit status.
        places: Fields that are given by their place.
        defaults: Fields that the command line sets if they are not given.
        without: Fields that have no option.
        fill_more: Adds options that are no fields.
        begins: Whether it makes a store where there is none.
        author_option: Says who is recorded as the author; None where an option of that name chooses
            among what others did, and nothing is recorded.
    """

    name: str
    help: str
    example: str
    struct: type[Args]
    run: Callable[[Work], int]
    description: str = ""
    places: tuple[Place, ...] = ()
    defaults: Mapping[str, object] = {}
    without: tuple[str, ...] = ()
    fill_more: Callable[[argparse.ArgumentParser], None] | None = None
    begins: bool = False
    author_option: str | None = "--actor"

    def fill(self, parser: argparse.ArgumentParser) -> None:
        """Add its arguments and options to its parser."""
        add_options(
            parser,
            self.struct,
            places=self.places,
            defaults=self.defaults,
            without=self.without,
        )
        if self.fill_more is not None:
            self.fill_more(parser)


def plain(
    use: Callable[[App, Any, Call], Any], view: Callable[[Any], View]
) -> Callable[[Work], int]:
    """Return what runs one use case and shows its result."""

    def run(work: Work) -> int:
        args = work.args(work.verb.struct)
        result = work.job.ask(lambda app, call: use(app, args, call))
        work.show(result, view(result))
        return DONE

    return run
