"""The search after a redaction: which file of the store still holds what was erased.

A database that is open must be opened and closed by SQLite alone, so another process reads its
bytes as they stand, free pages and write-ahead log included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ledger import Redactor
from projections.connection import Connection
from projections.states import STATE_FIELDS
from projections.subjects import ids_at
from server.redaction_needles import Needles

TEMPORARY_PREFIX: Final = "mnemolog-"
"""Of the program's folders among the system's temporary files."""

ALSO_MAX: Final = 100

_CHUNK_BYTES: Final = 1 << 20
_READER: Final = (
    "import sys\nf=open(sys.argv[1],'rb',0)\nwhile b:=f.read(1048576):sys.stdout.buffer.write(b)"
)
_DATABASES: Final = (".db", ".db-wal", ".db-shm")

_COLUMNS: Final = {
    "memories": (
        "content",
        "title",
        "entity_name",
        "tags",
        "meta",
        "scope",
        "source_file",
        "source",
    ),
    "memory_versions": ("state",),
    "sessions": ("client", "project", "summary", "meta"),
    "aliases": ("name", "entity"),
    "subject_versions": ("state",),
}
"""Table -> columns that hold what somebody wrote, of subjects with a rid."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the search found."""

    files: int
    holding: tuple[str, ...]
    """Files that hold what nothing of the store says any more, by their path in the home."""
    unread: tuple[str, ...]
    also_in: tuple[str, ...]
    """Ids of what else holds some of the texts."""


def search_store(
    redactor: Redactor, folders: Sequence[Path], needles: Needles, connection: Connection
) -> Found:
    """Search every file of a home, and of the program's temporary folders.

    Args:
        redactor: searches the ledger's files without a segment changing its name meanwhile.
        folders: the home, and where its projections are.
        needles: what for.
        connection: of the generation in use, in a read transaction: says what else holds a text.

    Raises:
        LedgerError: the search cannot be made now.

    """
    stems = _lost_stems(connection, needles) - needles.texts
    home = folders[0]
    beside = [
        path
        for folder in dict.fromkeys(folders)
        for path in _files(folder)
        if not path.is_relative_to(home / "ledger")
    ]
    beside += list(_temporary())
    report = redactor.find(needles.salts | needles.texts | stems, beside, _read_apart)
    holding: dict[str, None] = {}
    also: dict[str, None] = {}
    for needle, findings in report.found.items():
        said = None if needle in needles.salts else needle.decode()
        sayers = [] if said is None else _sayers(connection, said)
        if needle in needles.texts:
            also |= dict.fromkeys(sayers)
        for finding in findings:
            if finding.path.is_relative_to(home / "ledger") and said is not None:
                # What a record says lawfully. Words alone are no reason to name it.
                if needle in needles.texts:
                    also |= dict.fromkeys(_subjects(connection, finding.seqs))
            elif said is None or not (sayers or _is_name(connection, said)):
                holding[_named(finding.path, home)] = None
    return Found(
        files=report.files,
        holding=tuple(holding),
        unread=tuple(_named(path, home) for path in report.unread if path.exists()),
        also_in=tuple(also)[:ALSO_MAX],
    )


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _temporary() -> Iterator[Path]:
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY_PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink():
            yield from _files(folder)


def _read_apart(path: Path) -> Iterable[bytes] | None:
    """Read a database by another process; None: it is none."""
    if not path.name.endswith(_DATABASES):
        return None
    return _chunks_apart(path)


def _chunks_apart(path: Path) -> Iterator[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _READER, str(path)]
    with subprocess.Popen(  # noqa: S603 - our own program, and no shell
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        while chunk := process.stdout.read(_CHUNK_BYTES):
            yield chunk
    if process.returncode:
        raise OSError(f"{path.name} could not be read")


def _lost_stems(connection: Connection, needles: Needles) -> frozenset[bytes]:
    """Return the stems that no memory has any more."""
    lost = {
        stem
        for stem in needles.stems
        if connection.value("SELECT 1 FROM terms WHERE term = ?", (stem,)) is None
    }
    return frozenset(stem.encode() for stem in lost)


def _sayers(connection: Connection, text: str) -> list[str]:
    """Return the ids of what still says a text, in its tables or as part of an indexed word."""
    found: dict[int, None] = {}
    for table, columns in _COLUMNS.items():
        where = " OR ".join(f"instr({column}, ?1)" for column in columns)
        rows = connection.execute(
            f"SELECT DISTINCT rid FROM {table} WHERE {where} LIMIT {ALSO_MAX}", (text,)
        )
        found |= dict.fromkeys(rid for (rid,) in rows)
    reasons = connection.execute("SELECT rid FROM redactions WHERE instr(reason, ?)", (text,))
    found |= dict.fromkeys(rid for (rid,) in reasons)
    return ids_at(connection, found)


def _is_name(connection: Connection, text: str) -> bool:
    """Say whether a text is part of an indexed word, or of a name that the store itself uses."""
    if any(text in name for name in STATE_FIELDS):
        return True
    questions = (
        "SELECT 1 FROM sqlite_schema WHERE instr(sql, ?) LIMIT 1",
        "SELECT 1 FROM events WHERE instr(type, ?) LIMIT 1",
        "SELECT 1 FROM terms WHERE instr(term, ?) LIMIT 1",
        "SELECT 1 FROM workspaces WHERE instr(name, ?) LIMIT 1",
        "SELECT 1 FROM agents WHERE instr(name, ?) LIMIT 1",
    )
    return any(connection.value(question, (text,)) is not None for question in questions)


def _subjects(connection: Connection, seqs: Sequence[int]) -> list[str]:
    rids = [
        connection.integer("SELECT subject FROM events WHERE seq = ?", (seq,))
        for seq in seqs[:ALSO_MAX]
    ]
    return ids_at(connection, (rid for rid in rids if rid is not None))


def _named(path: Path, home: Path) -> str:
    return (
        str(path.relative_to(home))
        if path.is_relative_to(home)
        else f"a temporary file, {path.name}"
    )
