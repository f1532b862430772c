"""The configuration file as it is on disk: TOML, bounded, and what is wrong with it by line."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import Final

from server.errors import ConfigError

FILE_BYTES_MAX: Final = 1 << 20
"""The largest configuration file that is read."""


def read_entries(file: Path) -> dict[str, object]:
    """Return what stands in the file, key -> value.

    Raises:
        ConfigError: it cannot be read or is not TOML; the message goes on from the file's name.

    """
    try:
        mode = file.stat().st_mode
        # Opening a pipe would wait for somebody to write.
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            raise ConfigError("is not a file")
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"is longer than {FILE_BYTES_MAX:,} bytes")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"is not UTF-8 (at line {line})") from error
    except ValueError as error:
        lines = len(data.splitlines())
        reason = str(error).replace("at end of document", f"at line {lines}, the last")
        raise ConfigError(f"is not TOML: {reason}") from error
    except RecursionError as error:
        raise ConfigError("is nested too deep") from error
