"""Who holds a lock file, as Linux tells it; asking takes no lock and so disturbs nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

LOCKS: Final = Path("/proc/locks")
"""Linux's list of file locks, in the form of proc_locks(5)."""

PROCESSES: Final = Path("/proc")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a lock."""

    pid: int
    name: str
    """Of its program, empty if that is not known."""
    is_stopped: bool
    """Whether it is suspended, so that it will not let go by itself."""


def holders(path: Path, locks: Path = LOCKS) -> list[Holder] | None:
    """Return the processes that hold a `flock` on a file.

    A file system that tells another device than the list does (overlays, btrfs) and processes
    outside this one's container are not seen.

    Returns:
        None where that cannot be told: the file is not there, or the system has no such list.

    """
    try:
        status = path.stat()
        lines = locks.read_text().splitlines()
    except OSError:
        return None
    device = status.st_dev
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{status.st_ino}"
    pids: dict[int, None] = {}
    for line in lines:
        # `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; `->` follows the number of who waits.
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5:6] == [wanted] and words[4].isdecimal():
            pids[int(words[4])] = None
    return [_holder(pid) for pid in pids]


def _holder(pid: int) -> Holder:
    try:
        text = (PROCESSES / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return Holder(pid=pid, name="", is_stopped=False)
    # `pid (name) state ...`, and a name may hold parentheses.
    name, _, rest = text.partition("(")[2].rpartition(")")
    return Holder(pid=pid, name=name, is_stopped=rest.split()[0] in ("T", "t"))
