"""The real file system, with a log of everything that happens to a folder.

What goes through `OsFiles` is logged as it is called. What others do beside it (SQLite, `shutil`)
is found by looking at the folder before each of those calls and comparing.
"""

import os
from pathlib import Path

from tests.support.ledgers import QuickFiles
from tests.support.power_cut import (
    ROOT,
    SECTOR,
    Cut,
    Exchanged,
    Made,
    Moded,
    Removed,
    Renamed,
    Saved,
    State,
    Step,
    Synced,
    Told,
    Written,
    take_in,
)

_SHARED = "-shm"
_WAL = "-wal"


class KilledHere(BaseException):
    """The process dies before this call."""


class Recorder:
    """The log of a folder, and the folder as it is by that log."""

    def __init__(self, root: Path) -> None:
        """Begin with the folder as it is, all of it durable."""
        self.root = root
        self.before: State = take_in(root)
        self.steps: list[Step] = []
        self._folders: dict[int, dict[str, int]] = {ROOT: {}}
        self._contents: dict[int, bytes] = {}
        self._stats: dict[int, tuple[int, int, int]] = {}
        self._inodes: dict[int, int] = {}
        self._saved: dict[tuple[int, str], tuple[bytes | None, bytes | None]] = {}
        ids = {"": ROOT}
        for path in sorted(self.before):
            content, _ = self.before[path]
            ids[path] = node = len(ids)
            parent, _, name = path.rpartition("/")
            self._folders[ids[parent]][name] = node
            if content is None:
                self._folders[node] = {}
            else:
                self._contents[node] = content
            self._inodes[node] = (root / path).stat().st_ino
        self._count = len(ids)

    def find(self, path: Path) -> tuple[int, str]:
        """Return the folder that a path is in, and its name there."""
        *parents, name = path.relative_to(self.root).parts
        folder = ROOT
        for parent in parents:
            folder = self._folders[folder][parent]
        return folder, name

    def node(self, path: Path) -> int | None:
        """Return what a path names."""
        if path == self.root:
            return ROOT
        folder, name = self.find(path)
        return self._folders[folder].get(name)

    def holds(self, path: Path) -> bool:
        """Whether a path is in the recorded folder."""
        return path == self.root or self.root in path.parents

    def tell(self, what: object) -> None:
        """Note what must be found from here on."""
        self.steps.append(Told(what))

    def made(self, folder: int, name: str, *, is_folder: bool) -> int:
        node = self._count
        self._count += 1
        self._folders[folder][name] = node
        if is_folder:
            self._folders[node] = {}
        else:
            self._contents[node] = b""
        self.steps.append(Made(folder, name, node, is_folder))
        return node

    def written(self, node: int, offset: int, data: bytes) -> None:
        old = self._contents[node]
        self._contents[node] = old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]
        self.steps.append(Written(node, offset, data))

    def cut(self, node: int, size: int) -> None:
        self._contents[node] = self._contents[node][:size].ljust(size, b"\0")
        self.steps.append(Cut(node, size))

    def moded(self, node: int, mode: int) -> None:
        self.steps.append(Moded(node, mode))

    def synced(self, node: int) -> None:
        self.steps.append(Synced(node))

    def renamed(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        self._folders[to_folder][to_name] = self._folders[folder].pop(name)
        self.steps.append(Renamed(folder, name, to_folder, to_name))

    def exchanged(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        one, two = self._folders[folder][name], self._folders[to_folder][to_name]
        self._folders[folder][name], self._folders[to_folder][to_name] = two, one
        self.steps.append(Exchanged(folder, name, to_folder, to_name))

    def removed(self, folder: int, name: str) -> None:
        node = self._folders[folder][name]
        for child in list(self._folders.get(node, ())):
            self.removed(node, child)
        del self._folders[folder][name]
        self.steps.append(Removed(folder, name))

    def look(self) -> None:
        """Log what has happened beside the recorded calls."""
        self._look(ROOT, self.root)

    def _look(self, folder: int, path: Path) -> None:
        with os.scandir(path) as entries:
            real = {entry.name: entry for entry in entries if not entry.name.endswith(_SHARED)}
        self._look_at_names(folder, real)
        databases = [
            name for name in real if f"{name}{_WAL}" in real or (folder, name) in self._saved
        ]
        for name in databases:
            self._look_at_database(folder, name, path)
        for name in sorted(real):
            if name in databases or name.removesuffix(_WAL) in databases:
                continue
            node = self._folders[folder][name]
            if node in self._folders:
                self._look(node, path / name)
            else:
                self._look_at_file(node, path / name)

    def _look_at_names(self, folder: int, real: "dict[str, os.DirEntry[str]]") -> None:
        known = self._folders[folder]
        gone = {self._inodes.get(node): name for name, node in known.items() if name not in real}
        for name, entry in sorted(real.items()):
            if name in known:
                self._inodes.setdefault(known[name], entry.inode())
                continue
            moved = gone.pop(entry.inode(), None)
            if moved is not None:
                self.renamed(folder, moved, folder, name)
            else:
                node = self.made(folder, name, is_folder=entry.is_dir())
                self._inodes[node] = entry.inode()
        for name in [name for name in known if name not in real]:
            self.removed(folder, name)

    def _look_at_file(self, node: int, path: Path) -> None:
        status = path.stat()
        stamp = status.st_ino, status.st_size, status.st_mtime_ns
        if self._stats.get(node) == stamp:
            return
        self._stats[node] = stamp
        new, old = path.read_bytes(), self._contents[node]
        if new == old:
            return
        if len(new) < len(old):
            self.cut(node, len(new))
            old = old[: len(new)]
        at = 0
        while at < len(new):
            if new[at : at + SECTOR] == old[at : at + SECTOR]:
                at += SECTOR
                continue
            end = at + SECTOR
            while end < len(new) and new[end : end + SECTOR] != old[end : end + SECTOR]:
                end += SECTOR
            self.written(node, at, new[at:end])
            at = end

    def _look_at_database(self, folder: int, name: str, path: Path) -> None:
        pair = tuple(
            file.read_bytes() if file.exists() else None
            for file in (path / name, path / f"{name}{_WAL}")
        )
        assert len(pair) == 2
        if self._saved.get((folder, name)) != pair:
            self._saved[folder, name] = pair
            self.steps.append(Saved(folder, name, pair))


class RecordingFiles(QuickFiles):
    """The real file system; what is done to one folder is logged.

    `looks` asks for a look at what others did before each call. The call numbered `kill_at` among
    those that change something raises KilledHere instead of being made, a write after half its
    bytes.
    """

    def __init__(
        self, recorder: Recorder, *, looks: bool = False, kill_at: int | None = None
    ) -> None:
        self.recorder = recorder
        self.calls = 0
        self.failing: dict[str, list[OSError]] = {}
        """Errors that the next calls of a name raise."""
        self._looks = looks
        self._kill_at = kill_at
        self._nodes: dict[int, int] = {}

    def _enter(self, call: str) -> None:
        if self._looks:
            self.recorder.look()
        if self.calls == self._kill_at:
            raise KilledHere
        self.calls += 1
        if self.failing.get(call):
            raise self.failing[call].pop(0)

    def _opened(self, fd: int, path: Path) -> int:
        if self.recorder.holds(path):
            node = self.recorder.node(path)
            if node is None:
                node = self.recorder.made(*self.recorder.find(path), is_folder=False)
            self._nodes[fd] = node
        return fd

    def open_write(self, path: Path) -> int:
        if self._looks:
            self.recorder.look()
        return self._opened(super().open_write(path), path)

    def create(self, path: Path) -> int:
        self._enter("create")
        fd = self._opened(super().create(path), path)
        node = self._nodes.get(fd)
        if node is not None and self.recorder._contents[node]:
            self.recorder.cut(node, 0)
        return fd

    def open_lock(self, path: Path) -> int:
        self._enter("open_lock")
        return self._opened(super().open_lock(path), path)

    def open_directory(self, path: Path) -> int:
        if self._looks:
            self.recorder.look()
        fd = super().open_directory(path)
        if self.recorder.holds(path):
            node = self.recorder.node(path)
            assert node is not None, path
            self._nodes[fd] = node
        return fd

    def close(self, fd: int) -> None:
        self._nodes.pop(fd, None)
        super().close(fd)

    def make_directory(self, path: Path) -> None:
        self._enter("make_directory")
        super().make_directory(path)
        self.recorder.made(*self.recorder.find(path), is_folder=True)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        try:
            self._enter("write")
        except KilledHere:
            self._write(fd, data[: len(data) // 2], offset)
            raise
        return self._write(fd, data, offset)

    def _write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        taken = super().write(fd, data, offset)
        self.recorder.written(self._nodes[fd], offset, bytes(data[:taken]))
        return taken

    def truncate(self, fd: int, size: int) -> None:
        self._enter("truncate")
        super().truncate(fd, size)
        self.recorder.cut(self._nodes[fd], size)

    def sync(self, fd: int) -> None:
        self._enter("sync")
        super().sync(fd)
        if fd in self._nodes:
            self.recorder.synced(self._nodes[fd])

    def sync_directory(self, fd: int) -> None:
        self._enter("sync_directory")
        super().sync_directory(fd)
        if fd in self._nodes:
            self.recorder.synced(self._nodes[fd])

    def rename(self, source: Path, target: Path) -> None:
        self._enter("rename")
        super().rename(source, target)
        self.recorder.renamed(*self.recorder.find(source), *self.recorder.find(target))

    def exchange(self, one: Path, two: Path) -> None:
        self._enter("exchange")
        super().exchange(one, two)
        self.recorder.exchanged(*self.recorder.find(one), *self.recorder.find(two))

    def unlink(self, path: Path) -> None:
        self._enter("unlink")
        super().unlink(path)
        self.recorder.removed(*self.recorder.find(path))

    def change_mode(self, fd: int, mode: int) -> None:
        self._enter("change_mode")
        super().change_mode(fd, mode)
        self.recorder.moded(self._nodes[fd], mode)
