"""Tidying the log folder: what a sealer, a redaction or a writer left that died between two steps.

Only for the holder of the SEAL lock. Nothing goes whose content is not there under the name that
the manifest gives, checked byte by byte.
"""

from __future__ import annotations

import os

from ledger.layout import parse_name
from ledger.osfile import TEMPORARY
from ledger.source import Source, load
from ledger.store import Ledger


def tidy_log(ledger: Ledger, timeout_s: float) -> list[str]:
    """Remove unfinished files, and files of a segment that another one has replaced.

    Args:
        ledger: whose log; the caller holds the SEAL lock.
        timeout_s: how long to wait, in seconds, for the ledger's lock.

    Returns:
        What was removed, relative to the ledger directory.

    Raises:
        LedgerDamagedError: the manifest is damaged, or the file that replaced another one is: then
            the old one is the copy that heals it.
        LockTimeoutError: a writer kept the ledger's lock.
        OSError: the system refuses.
    """
    log = ledger.layout.log
    entries = sorted(os.listdir(log))  # noqa: PTH208 - names are all that is needed
    names = [parsed for name in entries if (parsed := parse_name(name)) is not None]
    raw = {name.first for name in names if not name.codec}
    ledger.reader.forget()
    sealed = {entry.first: entry for entry in ledger.manifest().segments}
    rubbish = [name for name in entries if name.endswith(TEMPORARY)]
    replaced: dict[int, list[str]] = {}
    for name in names:
        entry = sealed.get(name.first)
        if entry is None:
            # A sealed file without entry goes only if its raw twin is there.
            if name.codec and name.first in raw:
                rubbish.append(name.file)
        elif name.file != entry.name and entry.name in entries:
            replaced.setdefault(name.first, []).append(name.file)
    if not rubbish and not replaced:
        return []
    with ledger.lock(timeout_s):
        if replaced:
            # Whoever put that manifest there may have died before its name was durable.
            ledger.files.sync_names(ledger.layout.root)
        for first, files in replaced.items():
            entry = sealed[first]
            # Raises if the file is bad.
            load(Source(first=first, path=log / entry.name, entry=entry, newest=False))
            rubbish += files
        for file in rubbish:
            ledger.files.remove_file(log / file)
    return [f"log/{file}" for file in rubbish]
