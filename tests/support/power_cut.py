"""A disk on which the power may be cut: what is durable, what is pending, every state between.

A log of steps (module `recorder` makes one) is played onto a `Disk`. At any moment the disk can say
in which states a power cut may leave it:

* a file: its durable bytes; what was written since, in order, cut after any byte; or any subset of
  the 512-byte sectors written since, each as it was after any of those writes, with any of the
  sizes that the file had since. A sector that was never written holds zeros.
* a directory: a change of names that is not synced has happened or not, whatever became of the
  others, but for those of the same names, which happen in order. A rename is one change, and so
  is an exchange of two names.
* permission bits: as before or as set.
* a database that SQLite had open, with its write-ahead log: as it was at the first look, at the one
  before the last, or at the last. SQLite itself vouches for the states between.

Where there are more combinations than wanted, all small ones are given and the rest are drawn with
the caller's dice.
"""

import itertools
import math
import os
import random
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeVar

SECTOR = 512
ROOT = 0
"""The node that the recorded folder is."""

OptionT = TypeVar("OptionT")


class Made(NamedTuple):
    """A file or directory came to be."""

    folder: int
    name: str
    node: int
    is_folder: bool


class Written(NamedTuple):
    """Bytes were written to a file."""

    node: int
    offset: int
    data: bytes


class Cut(NamedTuple):
    """A file was given a size."""

    node: int
    size: int


class Moded(NamedTuple):
    """A file was given permission bits."""

    node: int
    mode: int


class Synced(NamedTuple):
    """A file's bytes and size, or a directory's names, became durable."""

    node: int


class Renamed(NamedTuple):
    """A name was given up and another taken, in one."""

    folder: int
    name: str
    to_folder: int
    to_name: str


class Exchanged(NamedTuple):
    """Two names changed places, in one."""

    folder: int
    name: str
    to_folder: int
    to_name: str


class Removed(NamedTuple):
    """A name was given up."""

    folder: int
    name: str


class Saved(NamedTuple):
    """An open database and its write-ahead log hold this now; None: the file is not there."""

    folder: int
    name: str
    content: tuple[bytes | None, bytes | None]


class Told(NamedTuple):
    """From here on, this is what must be found after a cut."""

    what: object


Step = Made | Written | Cut | Moded | Synced | Renamed | Exchanged | Removed | Saved | Told

State = dict[str, tuple[bytes | None, int]]
"""Path below the root -> the file's bytes (None: a directory) and its permission bits."""


class _File:
    """A file's durable bytes and what has changed since."""

    __slots__ = ("mode", "modes", "pending", "synced", "variants_cached")

    def __init__(self, content: bytes = b"", mode: int = 0o600) -> None:
        self.synced = content
        self.pending: list[Written | Cut] = []
        self.modes = [mode]
        self.variants_cached: tuple[int, list[bytes]] | None = None

    def change(self, step: Written | Cut) -> None:
        self.pending.append(step)
        self.variants_cached = None

    def sync(self) -> None:
        for step in self.pending:
            self.synced = _changed(self.synced, step)
        self.pending.clear()
        self.variants_cached = None

    def variants(self, limit: int, dice: random.Random) -> list[bytes]:
        """Return contents that a cut may leave, the durable one first, then the newest."""
        if not self.pending:
            return [self.synced]
        if self.variants_cached is None or self.variants_cached[0] != limit:
            found = dict.fromkeys(_in_order(self.synced, self.pending, limit, dice))
            found.update(dict.fromkeys(_by_sector(self.synced, self.pending, limit, dice)))
            self.variants_cached = limit, list(found)
        return self.variants_cached[1]


class _Change(NamedTuple):
    """A pending change of names: (folder, name) -> node, or None where the name is given up."""

    names: dict[tuple[int, str], int | None]

    def follows(self, other: "_Change") -> bool:
        return not self.names.keys().isdisjoint(other.names)


class Disk:
    """The durable and the pending state of a folder and everything below it."""

    def __init__(self, state: State) -> None:
        """Begin with a state all of which is durable."""
        self._files: dict[int, _File] = {}
        self._folders: dict[int, dict[str, int]] = {ROOT: {}}
        self._now: dict[int, dict[str, int]] = {ROOT: {}}
        self._changes: list[_Change] = []
        self._saved: dict[tuple[int, str], list[tuple[bytes | None, bytes | None]]] = {}
        ids = {"": ROOT}
        for path in sorted(state):
            content, mode = state[path]
            ids[path] = node = len(ids)
            parent, _, name = path.rpartition("/")
            if content is None:
                self._folders[node], self._now[node] = {}, {}
            else:
                self._files[node] = _File(content, mode)
            self._folders[ids[parent]][name] = node
            self._now[ids[parent]][name] = node

    def play(self, step: Step) -> None:
        """Take the next step of a log."""
        match step:
            case Written(node) | Cut(node):
                self._files[node].change(step)
            case Moded(node, mode):
                self._files[node].modes.append(mode)
            case Synced(node) if node in self._files:
                self._files[node].sync()
            case Synced(node):
                self._sync_names(node)
            case Saved(folder, name, content):
                self._saved.setdefault((folder, name), []).append(content)
            case Told():
                pass
            case Made() | Renamed() | Exchanged() | Removed():
                self._play_names(step)

    def _play_names(self, step: Made | Renamed | Exchanged | Removed) -> None:
        match step:
            case Made(folder, name, node, is_folder):
                if is_folder:
                    self._folders[node], self._now[node] = {}, {}
                else:
                    self._files[node] = _File()
                self._change({(folder, name): node})
            case Renamed(folder, name, to_folder, to_name):
                moved = self._now[folder][name]
                self._change({(folder, name): None, (to_folder, to_name): moved})
            case Exchanged(folder, name, to_folder, to_name):
                one, two = self._now[folder][name], self._now[to_folder][to_name]
                self._change({(folder, name): two, (to_folder, to_name): one})
            case Removed(folder, name):
                self._change({(folder, name): None})

    def states(self, limit: int, dice: random.Random) -> Iterator[State]:
        """Yield the states that a power cut may leave now, some perhaps more than once.

        Args:
            limit: how many at most for one combination of names, and contents of one file.
            dice: chooses where there are more.
        """
        for names in self._name_states(limit, dice):
            places = list(_walk(names, ROOT, ""))
            options = [self._options(path, node, limit, dice) for path, node in places]
            for choice in _choices(options, limit, dice):
                state: State = {}
                for chosen in choice:
                    # What SQLite saved comes with its folder, before the folder's files.
                    state = {**chosen, **state}
                yield state

    def _options(self, path: str, node: int, limit: int, dice: random.Random) -> list[State]:
        """Return what a place may hold: a file's contents and modes, or what SQLite saved in it."""
        file = self._files.get(node)
        if file is None:
            return [
                {path: (None, 0o700), **{f"{path}/{name}": item for name, item in saved.items()}}
                for saved in self._saved_options(node)
            ]
        return [
            {path: (content, mode)}
            for mode in dict.fromkeys(file.modes)
            for content in file.variants(limit, dice)
        ]

    def _saved_options(self, folder: int) -> Iterator[dict[str, tuple[bytes, int]]]:
        groups = []
        for (holder, name), versions in self._saved.items():
            if holder != folder:
                continue
            allowed = dict.fromkeys(versions[at] for at in (0, -2, -1) if -at <= len(versions))
            groups.append([(name, version) for version in allowed])
        for chosen in itertools.product(*groups):
            yield {
                f"{name}{suffix}": (content, 0o600)
                for name, pair in chosen
                for suffix, content in zip(("", "-wal"), pair, strict=True)
                if content is not None
            }

    def _change(self, names: dict[tuple[int, str], int | None]) -> None:
        self._changes.append(_Change(names))
        _apply(self._now, names)

    def _sync_names(self, folder: int) -> None:
        """Make the changes in a directory durable, and those that they build on."""
        chosen: set[int] = set()
        for at in reversed(range(len(self._changes))):
            change = self._changes[at]
            if any(holder == folder for holder, _ in change.names) or any(
                self._changes[later].follows(change) for later in chosen
            ):
                chosen.add(at)
        for at in sorted(chosen):
            _apply(self._folders, self._changes[at].names)
        self._changes = [each for at, each in enumerate(self._changes) if at not in chosen]

    def _name_states(self, limit: int, dice: random.Random) -> Iterator[dict[int, dict[str, int]]]:
        count = len(self._changes)
        pairs = [
            (early, late)
            for late in range(count)
            for early in range(late)
            if self._changes[late].follows(self._changes[early])
        ]
        for happened in _choices([[False, True]] * count, limit, dice):
            if any(happened[late] and not happened[early] for early, late in pairs):
                continue
            names = {node: dict(entries) for node, entries in self._folders.items()}
            for change, did in zip(self._changes, happened, strict=True):
                if did:
                    _apply(names, change.names)
            yield names


def _apply(folders: dict[int, dict[str, int]], names: dict[tuple[int, str], int | None]) -> None:
    for (folder, name), node in names.items():
        if node is None:
            folders[folder].pop(name, None)
        else:
            folders[folder][name] = node


def _walk(names: dict[int, dict[str, int]], folder: int, prefix: str) -> Iterator[tuple[str, int]]:
    for name, node in names[folder].items():
        path = f"{prefix}{name}"
        yield path, node
        if node in names:
            yield from _walk(names, node, f"{path}/")


def _choices(
    options: Sequence[Sequence[OptionT]], limit: int, dice: random.Random
) -> Iterator[tuple[OptionT, ...]]:
    """Yield one of each, in every combination if those are not too many."""
    if math.prod(map(len, options)) <= limit:
        yield from itertools.product(*options)
        return
    first = tuple(each[0] for each in options)
    last = tuple(each[-1] for each in options)
    yield first
    yield last
    count = len(options)
    for _ in range(limit):
        one = list(dice.choice((first, last)))
        for at in dice.sample(range(count), min(count, dice.choice((1, 1, 2, 3, count)))):
            one[at] = dice.choice(options[at])
        yield tuple(one)


def _changed(content: bytes, step: Written | Cut) -> bytes:
    if isinstance(step, Cut):
        return content[: step.size].ljust(step.size, b"\0")
    end = step.offset + len(step.data)
    return content[: step.offset].ljust(step.offset, b"\0") + step.data + content[end:]


def _in_order(
    content: bytes, pending: Sequence[Written | Cut], limit: int, dice: random.Random
) -> Iterator[bytes]:
    """Yield what is there if the writes came to the disk in order, up to some byte."""
    newest = content
    for step in pending:
        newest = _changed(newest, step)
    yield content
    yield newest
    for step in pending:
        if isinstance(step, Written):
            sizes: Sequence[int] = range(1, len(step.data))
            for size in sizes if len(sizes) <= limit else dice.sample(sizes, limit):
                yield _changed(content, Written(step.node, step.offset, step.data[:size]))
        content = _changed(content, step)
        yield content


def _by_sector(
    content: bytes, pending: Sequence[Written | Cut], limit: int, dice: random.Random
) -> Iterator[bytes]:
    """Yield what is there if each sector came to the disk, or did not, on its own."""
    versions = [content]
    for step in pending:
        versions.append(_changed(versions[-1], step))
    sizes = list(dict.fromkeys(map(len, versions)))
    largest = max(sizes)
    padded = [version.ljust(largest, b"\0") for version in versions]
    sectors = [
        list(dict.fromkeys(version[at : at + SECTOR] for version in padded))
        for at in range(0, largest, SECTOR)
    ]
    for size in sizes:
        for parts in _choices(sectors, limit, dice):
            yield b"".join(parts)[:size]


def fingerprint(state: State) -> bytes:
    """Return what tells a state from others."""
    digest = blake2b(digest_size=16)
    for path in sorted(state):
        content, mode = state[path]
        size = -1 if content is None else len(content)
        digest.update(f"{path}\0{mode:o}\0{size}\0".encode())
        digest.update(content or b"")
    return digest.digest()


def lay_out(state: State, root: Path) -> None:
    """Make a folder that holds a state; it must not be there."""
    root.mkdir(mode=0o700)
    top = str(root)
    for path in sorted(state):
        content, mode = state[path]
        target = f"{top}/{path}"
        if content is None:
            (root / path).mkdir(0o700)
            continue
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        os.write(fd, content)
        os.close(fd)


def take_in(root: Path) -> State:
    """Return the state that a folder is in; what SQLite shares between processes is left out."""
    return {
        path.relative_to(root).as_posix(): (
            None if path.is_dir() else path.read_bytes(),
            path.stat().st_mode & 0o777,
        )
        for path in sorted(root.rglob("*"))
        if not path.name.endswith("-shm")
    }
