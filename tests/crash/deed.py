"""Does one thing to a home in a process of its own, for a tracer to fail or to kill.

    python -m tests.crash.deed append | seal | rebuild | redact | backup  HOME

Prints `ack TEXT` after each acknowledged memory. Exit status: 0 done, REFUSED if the store said
no in its own words. Anything else but a signal is a fault.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ledger import LedgerError, MemoryAdded, Position, RandomIds, SystemClock, backup
from projections.connection import STORAGE_ERRORS
from projections.errors import ProjectionError
from server.bootstrap import Store
from server.commands import AddArgs
from server.config import Config
from server.errors import UseCaseError
from server.redaction_args import RedactArgs
from server.tool import Call

REFUSED: Final = 3
SEGMENT_BYTES: Final = 2_000


def open_store(home: Path) -> Store:
    """Open a store whose segments are short."""
    config = Config(home=home, segment_bytes=SEGMENT_BYTES, activity=False)
    return Store(config, clock=SystemClock(), ids=RandomIds(), log=lambda _: None)


def append(store: Store) -> None:
    """Store three memories."""
    for number in range(3):
        text = f"heron number {number}"
        store.app.add(AddArgs(content=text, layer="semantic"), Call(actor_name="deed"))
        _say(f"ack {text}")


def seal(store: Store) -> None:
    """Do the upkeep, which seals what is rolled."""
    store.upkeep.run_once()


def rebuild(store: Store) -> None:
    """Make the tables anew."""
    store.reads._rebuild_strictly(lambda *_: None)


def redact(store: Store) -> None:
    """Erase a memory for good."""
    (event,) = (
        record.seq
        for record in store.ledger.read(Position.start)
        if isinstance(record.payload, MemoryAdded) and "number 0" in record.payload.memory.content
    )
    store.app.redact(RedactArgs(event=event, reason="it was asked for"), Call(actor_name="deed"))


def back_up(store: Store) -> None:
    """Copy the ledger into the home."""
    backup(store.ledger, store.ledger.layout.root.parent / "backup")


DEEDS: Final[dict[str, Callable[[Store], None]]] = {
    "append": append,
    "seal": seal,
    "rebuild": rebuild,
    "redact": redact,
    "backup": back_up,
}
"""What can be done. To add one is to write it here and to name it in `test_syscall_sweep`."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Do it."""
    deed, home = sys.argv[1:]
    try:
        store = open_store(Path(home))
        try:
            DEEDS[deed](store)
        finally:
            store.close()
    except (UseCaseError, LedgerError, ProjectionError, *STORAGE_ERRORS, OSError) as error:
        _say(f"refused {type(error).__name__}: {error}")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
