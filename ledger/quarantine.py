"""The quarantine: torn bytes that are cut from a file are kept there, for people."""

from __future__ import annotations

from msgspec import Struct

from ledger.instants import stamp
from ledger.layout import Layout
from ledger.osfile import OsFiles


class TornTail(Struct, frozen=True, kw_only=True):
    """Report: bytes at the end that no append had finished were cut and kept.

    Attributes:
        segment: file of the segment, relative to the ledger directory.
        offset: where they began.
        size: how many they were.
        kept: file that holds them now, relative to the ledger directory.
        t_us: when, in microseconds since 1970-01-01 UTC.
    """

    segment: str
    offset: int
    size: int
    kept: str
    t_us: int


def keep_aside(
    layout: Layout, files: OsFiles, data: bytes, *, of: str, label: str, offset: int, now_us: int
) -> TornTail:
    """Keep torn bytes, synced, before they are cut.

    Args:
        layout: the ledger's paths.
        files: the system's file calls.
        data: the bytes.
        of: the file they are cut from, relative to the ledger directory.
        label: stands for it in the name.
        offset: where in it they begin.
        now_us: the time.

    Raises:
        OSError: they could not be kept.
    """
    name = f"{stamp(now_us)}-{label}-{offset}.torn"
    files.ensure_directory(layout.quarantine)
    files.replace_file(layout.quarantine / name, data)
    return TornTail(
        segment=of, offset=offset, size=len(data), kept=f"quarantine/{name}", t_us=now_us
    )
