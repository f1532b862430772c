r"""Output: tables on a terminal, plain lines in a pipe, one line of JSON on request.

Stored text was written by others. Whatever in it would steer a terminal or turn the direction of
writing is shown as `\u001b` and the like, and none of it is markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

import msgspec

_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters but for tab and newline, what turns the direction, halves of characters."""

ID_COLUMN: Final = "id"
"""Head of the column that is never wrapped: its cells are there to be copied."""

WIDTH_MIN: Final = 60
"""Columns a table has at least; a terminal with fewer, or that says it has none, wraps its lines.

Drawn narrower, a table loses its last columns without a word.
"""

STANDARD_OUTPUT: Final = "standard output"
"""What an OSError of it bears in place of a file's name."""

MINUTE_CHARS: Final = len("2026-11-30T20:29")


class Table(msgspec.Struct, frozen=True):
    """Rows of cells; the last column is the widest."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Facts(msgspec.Struct, frozen=True):
    """Names with a value each; a value that says nothing is left out."""

    pairs: Sequence[tuple[str, object]]


class Prose(msgspec.Struct, frozen=True):
    """Text whose lines stay as they are."""

    text: str


Block = Table | Facts | Prose


def harmless(text: str) -> str:
    """Return a text that cannot steer a terminal; in JSON it still means the same."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Return a text that cannot steer a terminal, on one line."""
    return harmless(" ".join(text.split()))


def minute_of(instant: str) -> str:
    """Return an instant in record form as people read it, to the minute."""
    return instant[:MINUTE_CHARS].replace("T", " ")


class Screen:
    """Standard output and standard error, as one command uses them."""

    def __init__(
        self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        """Bind to the process's streams unless others are given.

        Args:
            as_json: print results as JSON.
            out: takes results.
            err: takes what is said besides.

        """
        self.as_json = as_json
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.is_terminal = self._out.isatty()

    @property
    def draws_progress(self) -> bool:
        """Whether somebody is there to see a bar move."""
        return self._err.isatty() and not self.as_json

    def show(
        self, result: msgspec.Struct, blocks: Sequence[Block], notes: Sequence[str] = ()
    ) -> None:
        """Print a result: itself as one line of JSON, or its blocks and then the notes.

        Raises:
            OSError: standard output takes no more.

        """
        with standard_output():
            if self.as_json:
                # Outside of ASCII some characters steer terminals too; escaped they mean the same.
                self._out.write(harmless(msgspec.json.encode(result).decode()) + "\n")
                return
            for block in blocks:
                self._print(block)
            self._out.flush()
        for note in notes:
            self.say(note)

    def write(self, text: str) -> None:
        """Write a piece of a result as it is, or harmless if a terminal shows it.

        Raises:
            OSError: as `show`.

        """
        with standard_output():
            self._out.write(harmless(text) if self.is_terminal else text)

    def finish(self) -> None:
        """Have everything written leave the process.

        Raises:
            OSError: as `show`.

        """
        with standard_output():
            self._out.flush()

    def say(self, text: str) -> None:
        """Tell whoever started the command something that is no result."""
        self._tell(one_line(text))

    def complain(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        """Say on standard error, in one line, why there is no result."""
        if not self.as_json:
            self.say(f"mnemolog: {message}")
            return
        error = {
            "code": code,
            "message": harmless(message),
            **({"details": details} if details else {}),
        }
        self._tell(harmless(msgspec.json.encode({"error": error}).decode()))

    def _tell(self, line: str) -> None:
        # There is nobody left to be told that nobody can be told.
        with suppress(OSError):
            self._err.write(line + "\n")
            self._err.flush()

    def _print(self, block: Block) -> None:
        match block:
            case Table() if self.is_terminal:
                self._draw(block)
            case Table():
                for row in block.rows:
                    self._out.write("\t".join(map(one_line, row)) + "\n")
            case Facts():
                for name, value in block.pairs:
                    if value not in (None, "", (), {}):
                        self._out.write(f"{name}: {one_line(_written(value))}\n")
            case Prose():
                self._out.write(harmless(block.text) + "\n")

    def _draw(self, table: Table) -> None:
        if not table.rows:
            return
        from rich import box  # noqa: PLC0415 - only a terminal pays the 50 ms
        from rich.console import Console  # noqa: PLC0415 - as above
        from rich.table import Table as Drawing  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415 - as above

        drawing = Drawing(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
        for name in table.head:
            drawing.add_column(Text(name), no_wrap=name == ID_COLUMN, overflow="fold")
        for row in table.rows:
            drawing.add_row(*(Text(one_line(cell)) for cell in row))
        console = Console(file=self._out, markup=False, highlight=False, emoji=False)
        console.width = max(console.width, WIDTH_MIN)
        console.print(drawing)


@contextmanager
def standard_output() -> Iterator[None]:
    """Give an error of standard output its name, so that nobody takes it for the store's."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


def _written(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_written, value))
        case float():
            return f"{value:g}"
        case int():
            return str(value)
        case _:
            return msgspec.json.encode(value).decode()
