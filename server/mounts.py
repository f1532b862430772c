"""What kind of file system a folder is on, and where to keep what must not be on a network drive.

SQLite's write-ahead log is an index in shared memory, which processes on two machines do not have:
on a network drive the ledger, plain files under one lock, is safe, and the projections are not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
"""Linux's list of mounts; no other system has it, and what is unknown counts as local."""

SHARED: Final = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph", "fuse.davfs", "fuse.gcsfuse"),
        *("fuse.glusterfs", "fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gfs2"),
        *("gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "prl_fs", "smb3", "smbfs", "vboxsf"),
        *("virtiofs", "vmhgfs", "fuse.vmhgfs-fuse"),
    }
)
"""Types of file systems that another machine may have mounted as well."""

FileSystemOf = Callable[[Path], str]
"""Returns the type of the file system that a folder is on, empty if that is not known."""


def file_system_of(folder: Path, table: Path = MOUNT_TABLE) -> str:
    """Return the type of the file system that a folder is on, or will be once it is made.

    Args:
        folder: an absolute path.
        table: a mount table in the form of proc_pid_mountinfo(5).

    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    device = os.stat(folder).st_dev  # noqa: PTH116 - next to its parts
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        if mount.split(" ")[2:3] == [wanted]:
            return source.partition(" ")[0]
    return ""


def local_folder(ledger_id: str, file_system: FileSystemOf) -> Path:
    """Return a folder on this machine for what is derived from a ledger.

    In the user's cache folder, or, if the user's home is on the network as well, in the folder of
    the login session, which is emptied at its end.
    """
    from platformdirs import user_cache_path, user_runtime_path  # noqa: PLC0415 - 20 ms, for few

    cache = user_cache_path("mnemolog", appauthor=False).resolve()
    if file_system(cache) in SHARED:
        cache = user_runtime_path("mnemolog", appauthor=False).resolve()
    return cache / ledger_id
