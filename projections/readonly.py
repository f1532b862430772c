"""The generations of a store that cannot be written to: its own as it stands, or a copy aside.

The generation in use is frozen and served if it holds all that the ledger holds and nobody writes
to it. Otherwise the ledger is replayed into a temporary folder of this process, which is removed
when the store is closed or the process exits, and from then on that copy is served. Nothing is
written beside the ledger, and no lock of the store is needed.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ledger import Ledger, LedgerBehindError, LedgerError, OsFiles, Position
from projections.checkpoint import read_checkpoint
from projections.errors import ProjectionMissingError, ProjectionUnusableError
from projections.generation import Generation, Generations, Stamp


def generations_at(root: Path, ledger: Ledger) -> Generations:
    """Return a ledger's generations in a folder, to write to if the ledger can be written to."""
    if ledger.is_read_only:
        return ReadOnlyGenerations(root, ledger.files, ledger)
    return Generations(root, ledger.files)


class ReadOnlyGenerations(Generations):
    """A folder of generations that is looked at, and a temporary one once that is not enough."""

    def __init__(self, root: Path, files: OsFiles, ledger: Ledger) -> None:
        """Bind to the store's own folder and the ledger that decides whether it will do."""
        super().__init__(root, files)
        self._ledger = ledger
        self._remove_copy: Callable[[], object] | None = None

    def stamp(self) -> Stamp:
        """Identify what `CURRENT` says and how far the ledger goes, for some `stat` calls."""
        stamp = super().stamp()
        if stamp is not None:
            # Without its ledger a store is still read; what is wrong with it others will say.
            with suppress(LedgerError, OSError):
                return (*stamp, *self._ledger.live_end())
        return stamp

    def open_current(self, *, frozen: bool = False) -> Generation:
        """Open the copy aside, brought up to the ledger's end, or the store's own generation.

        Raises:
            ProjectionUnusableError: the store's own will not do; a rebuild makes a copy.
            ProjectionError: as `Generations.open_current`.

        """
        del frozen
        is_own = self._remove_copy is None
        try:
            generation = super().open_current(frozen=is_own)
        except OSError as error:
            raise ProjectionMissingError("the projection may not be read") from error
        with ExitStack() as undo:
            undo.callback(generation.close)
            try:
                if is_own:
                    self._check(generation)
                else:
                    generation.follow(self._ledger)
            except LedgerBehindError as error:
                raise ProjectionUnusableError(generation.name, "the ledger is another") from error
            except LedgerError:
                pass  # what cannot be read of the ledger now may be later; the rest is served
            undo.pop_all()
        return generation

    @contextmanager
    def new(self) -> Iterator[Path]:
        """Make a generation aside for the block to fill; see `Generations.new`."""
        if self._remove_copy is None:
            import tempfile  # noqa: PLC0415 - most stores never need it

            folder = tempfile.mkdtemp(prefix="mnemolog-")
            self._remove_copy = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._move_to(Path(folder).resolve())
        with super().new() as database:
            yield database

    @contextmanager
    def rebuild_lock(self) -> Iterator[None]:
        """Exclude nobody: nobody else knows of the copy."""
        yield

    def close(self) -> None:
        """Remove the copy."""
        if self._remove_copy is not None:
            self._remove_copy()

    def _check(self, own: Generation) -> None:
        """Raise unless a frozen generation says what the ledger says."""
        if own.wal_bytes():
            raise ProjectionUnusableError(
                own.name, "it is being written to, or was left by a crash"
            )
        known = read_checkpoint(own.writer) or Position.start
        if any(True for _ in self._ledger.read(known)):
            raise ProjectionUnusableError(own.name, "the ledger goes further")
