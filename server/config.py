"""The one place that reads the environment.

| variable | meaning | default |
|---|---|---|
| MNEMOLOG_HOME | folder of the store | the platform's user data folder |
| MNEMOLOG_WORKSPACE | workspace to read and write | default |
| MNEMOLOG_COMPRESSION | of sealed segments: zstd or gzip | zstd |
| MNEMOLOG_SEGMENT_BYTES | size at which a segment is sealed, 65,536 to 1,073,741,824 | 16,777,216 |
| MNEMOLOG_LOCK_TIMEOUT_S | wait for the ledger's lock, seconds, 0.1 to 3,600 | 30 |
| MNEMOLOG_PUBLIC_DATA | folder of data sets that are not shipped (locomo.json) | none |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from server.errors import ConfigError

WORKSPACE_NAME_MAX = 200
SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX = 65_536, 1 << 30
LOCK_TIMEOUT_S_MIN, LOCK_TIMEOUT_S_MAX = 0.1, 3_600.0
COMPRESSIONS = ("zstd", "gzip")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one process."""

    home: Path
    workspace: str = "default"
    compression: str = "zstd"
    segment_bytes: int = 16 << 20
    lock_timeout_s: float = 30.0


def read_config(environment: Mapping[str, str] = os.environ) -> Config:
    """Read the settings.

    Raises:
        ConfigError: a variable has a value that is not accepted; the message says which are.

    """
    return Config(
        home=_home(environment),
        workspace=_workspace(environment),
        compression=_choice(environment, "MNEMOLOG_COMPRESSION", COMPRESSIONS),
        segment_bytes=int(
            _number(
                environment,
                "MNEMOLOG_SEGMENT_BYTES",
                16 << 20,
                SEGMENT_BYTES_MIN,
                SEGMENT_BYTES_MAX,
            )
        ),
        lock_timeout_s=_number(
            environment,
            "MNEMOLOG_LOCK_TIMEOUT_S",
            30.0,
            LOCK_TIMEOUT_S_MIN,
            LOCK_TIMEOUT_S_MAX,
        ),
    )


def _home(environment: Mapping[str, str]) -> Path:
    given = environment.get("MNEMOLOG_HOME", "")
    if "\0" in given:
        raise ConfigError("MNEMOLOG_HOME holds a NUL character; give a folder's path")
    if given:
        # Resolved, so that a relative path means one place for the life of the process and two
        # names of one store are one store.
        try:
            given.encode()
            return Path(given).expanduser().resolve()
        except (UnicodeEncodeError, RuntimeError) as error:
            raise ConfigError(
                "MNEMOLOG_HOME must be a folder's path in UTF-8; `~` must be a user that exists"
            ) from error
    from platformdirs import user_data_path  # noqa: PLC0415 - 20 ms that most starts do not need

    return user_data_path("mnemolog", appauthor=False).resolve()


def _workspace(environment: Mapping[str, str]) -> str:
    name = environment.get("MNEMOLOG_WORKSPACE", "default")
    is_text = name.isascii() or name == name.encode(errors="replace").decode()
    if not name.strip() or len(name) > WORKSPACE_NAME_MAX or not is_text:
        raise ConfigError(
            f"MNEMOLOG_WORKSPACE must be a name of 1 to {WORKSPACE_NAME_MAX} characters"
        )
    return name


def _choice(environment: Mapping[str, str], name: str, accepted: tuple[str, ...]) -> str:
    value = environment.get(name, accepted[0])
    if value not in accepted:
        raise ConfigError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
    return value


def _number(
    environment: Mapping[str, str], name: str, default: float, lowest: float, highest: float
) -> float:
    text = environment.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not lowest <= value <= highest:
        raise ConfigError(f"{name} is {text!r}; accepted: a number from {lowest:,} to {highest:,}")
    return value


def public_data(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of data sets that may be measured with but not shipped, if there is one."""
    given = environment.get("MNEMOLOG_PUBLIC_DATA", "")
    return Path(given) if given else None


def child_environment(home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a child process that serves another home."""
    return {**environment, "MNEMOLOG_HOME": str(home)}
