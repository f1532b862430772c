"""Text analysis on another core: a child process that turns texts into terms while SQLite indexes.

The child reads frames from its standard input and answers each on its standard output; it ends when
its input does, so it cannot outlive its parent. A frame is a length (4 bytes, little endian) and a
MessagePack list of texts, null for none; the answer has as many.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from typing import IO

import msgspec

from projections.text import terms

ROWS_PER_FRAME = 500
FRAMES_AHEAD = 8
"""Frames that wait for the child, so that neither process waits for the other."""

ROWS_WORTH_A_PROCESS = 20_000
"""Rows below which starting a process costs more than it saves."""

Row = tuple[int, str | None, str | None, str | None]
"""A rid and three texts, before or after analysis."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str | None]).decode


def analyze_rows(rows: Iterable[Row], count: int) -> Iterator[Row]:
    """Replace the texts of rows by their terms, in order; on another core if it is worth it.

    Args:
        rows: what to analyze.
        count: how many there are.

    """
    if count < ROWS_WORTH_A_PROCESS or (os.cpu_count() or 1) < 2:
        for rid, *texts in rows:
            title, content, entity = map(_terms, texts)
            yield rid, title, content, entity
        return
    with subprocess.Popen(
        [sys.executable, "-c", "from projections.term_worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        yield from _through(child, rows)


def _through(child: subprocess.Popen[bytes], rows: Iterable[Row]) -> Iterator[Row]:
    assert child.stdin is not None
    assert child.stdout is not None
    sink, queue = child.stdin, SimpleQueue[list[str | None] | None]()

    def send() -> None:
        # On a thread: a pipe holds less than a frame, and answers must be taken meanwhile. A child
        # that is gone is noticed where its answers are missed.
        with suppress(BrokenPipeError), sink:
            while (texts := queue.get()) is not None:
                _write(sink, texts)

    sender = threading.Thread(target=send, name="terms", daemon=True)
    sender.start()
    try:
        sent: deque[list[int]] = deque()
        for rids, texts in _frames(rows):
            queue.put(texts)
            sent.append(rids)
            if len(sent) > FRAMES_AHEAD:
                yield from _answered(child.stdout, sent.popleft())
        for rids in sent:
            yield from _answered(child.stdout, rids)
    finally:
        queue.put(None)
        sender.join()


def _answered(stream: IO[bytes], rids: list[int]) -> Iterator[Row]:
    texts = _read(stream)
    if texts is None:
        raise RuntimeError("the text analysis process ended early")
    for index, rid in enumerate(rids):
        yield rid, texts[3 * index], texts[3 * index + 1], texts[3 * index + 2]


def _frames(rows: Iterable[Row]) -> Iterator[tuple[list[int], list[str | None]]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_PER_FRAME)):
        yield [row[0] for row in chunk], [text for row in chunk for text in row[1:]]


def _terms(text: str | None) -> str | None:
    return None if text is None else terms(text)


def _write(stream: IO[bytes], texts: Sequence[str | None]) -> None:
    data = _encode(texts)
    stream.write(len(data).to_bytes(4, "little") + data)
    stream.flush()


def _read(stream: IO[bytes]) -> list[str | None] | None:
    head = stream.read(4)
    return _decode(stream.read(int.from_bytes(head, "little"))) if len(head) == 4 else None


def main() -> None:
    """Answer frames until the input ends."""
    while (texts := _read(sys.stdin.buffer)) is not None:
        _write(sys.stdout.buffer, list(map(_terms, texts)))
