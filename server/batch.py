"""Input of a command: a text from standard input, and batches with one memory a line."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from server.commands import CONTENT_CHARS_MAX
from server.results import Refusal
from server.status import usage_error

STDIN: Final = "-"
"""Stands for standard input where a text or a file is expected."""

TEXT_BYTES_MAX: Final = 4 * CONTENT_CHARS_MAX + 4
"""More than any content takes in UTF-8; what is longer is refused for its length."""

LINE_BYTES_MAX: Final = 4 << 20
"""More than any memory takes in JSON, every character escaped."""


class BatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a batch: a memory, or why it holds none.

    Attributes:
        number: Of the line, from 1.
        memory: Fields of memory_add.
        error: Why there is no memory.
    """

    number: int
    memory: dict[str, Any] | None = None
    error: Refusal | None = None


def read_text() -> str:
    """Read a text from standard input; the newline that ends it is not part of it.

    Raises:
        CommandError: it is not UTF-8.

    """
    data = sys.stdin.buffer.read(TEXT_BYTES_MAX)
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        if len(data) == TEXT_BYTES_MAX and error.end == len(data):
            return data[: error.start].decode()  # cut within a character, and too long anyhow
        raise usage_error(
            f"standard input is not UTF-8 (byte {error.start}); convert it, with iconv say"
        ) from None


def read_batch(source: str, common: Mapping[str, Any]) -> Generator[BatchLine]:
    """Yield the lines of a file or of standard input; blank ones are skipped.

    Args:
        source: path, or - for standard input.
        common: fields that hold for lines that do not have them. An idempotency_key among them
            makes one for each line, of its number.

    Raises:
        CommandError: the file cannot be read.

    """
    key = common.get("idempotency_key")
    fields = {name: value for name, value in common.items() if name != "idempotency_key"}
    with _opened(source) as lines:
        number = 0
        while line := lines.readline(LINE_BYTES_MAX + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if not line.strip():
                continue
            memory = _memory(line)
            if len(line) > LINE_BYTES_MAX:
                memory = "is too long"
                _skip_line(lines, line)
            if isinstance(memory, str):
                refusal = Refusal(
                    code="invalid_arguments",
                    message=f"The line {memory}.",
                    details={"line": number},
                )
                yield BatchLine(number=number, error=refusal)
                continue
            keyed = {} if key is None else {"idempotency_key": f"{key}#{number}"}
            yield BatchLine(number=number, memory={**fields, **keyed, **memory})


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - only opening it is the usage's fault
    except (OSError, ValueError) as error:
        raise usage_error(f"cannot read {source}: {getattr(error, 'strerror', error)}") from None
    with file:
        yield file


def _memory(line: bytes) -> dict[str, Any] | str:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.ValidationError:
        return "is no JSON object"
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"is no JSON: {error}"


def _skip_line(lines: BinaryIO, part: bytes) -> None:
    while part and not part.endswith(b"\n"):
        part = lines.readline(LINE_BYTES_MAX)
