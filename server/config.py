"""The settings: what there is to set, and the one place that reads the environment.

`SETTINGS` is the list of them. A setting has the value the environment gives it, else the value the
configuration file gives it, else its default. The file is TOML: `config.toml` in the home if it is
there, or whatever file MNEMOLOG_CONFIG names. Its keys are the names of the variables in lower
case, without `mnemolog_`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from server.errors import ConfigError
from server.form import (
    Form,
    Value,
    choice_form,
    name_form,
    number_form,
    path_form,
    switch_form,
    time_zone_form,
)

FILE_NAME: Final = "config.toml"
"""The configuration file of a home."""

WORKSPACE_NAME_MAX: Final = 200
SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX = 65_536, 1 << 30
LOCK_TIMEOUT_S_MIN, LOCK_TIMEOUT_S_MAX = 0.1, 3_600.0
COMPRESSIONS: Final = ("zstd", "gzip")
TOOL_SETS: Final = ("full", "core")
LOG_LEVELS: Final = ("warning", "info", "debug")
"""From few words to many: each level has what the ones before it have."""

_PREFIX: Final = "MNEMOLOG_"
_ECHO_CHARACTERS_MAX: Final = 64

Source = Literal["default", "file", "environment"]


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one process.

    Attributes:
        home: Folder of the store, absolute.
        workspace: Workspace to read and write, 1 to 200 characters.
        compression: Of sealed segments: zstd or gzip.
        segment_bytes: Size at which a segment is sealed.
        lock_timeout_s: How long to wait for the ledger's lock, in seconds.
        activity: Whether searches and accesses are recorded.
        tools: Which tools clients are offered: full or core.
        time_zone: IANA name of the zone in which dates in words are meant.
        log_level: How much goes to standard error: warning, info or debug.
    """

    home: Path
    workspace: str = "default"
    compression: str = "zstd"
    segment_bytes: int = 16 << 20
    lock_timeout_s: float = 30.0
    activity: bool = True
    tools: str = "full"
    time_zone: str = "UTC"
    log_level: str = "warning"

    def logs(self, level: str) -> bool:
        """Whether texts of this level are wanted."""
        return LOG_LEVELS.index(level) <= LOG_LEVELS.index(self.log_level)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be set.

    Attributes:
        variable: Name of its environment variable.
        meaning: What it is.
        form: What its values look like.
        unset: What holds when it is not set, in words; empty if that is a value.
        in_file: Whether it may be set in the file.
    """

    variable: str
    meaning: str
    form: Form
    unset: str = ""
    in_file: bool = True

    @property
    def key(self) -> str:
        """Its name in the file and in `Config`."""
        return self.variable.removeprefix(_PREFIX).lower()

    @property
    def default(self) -> Value:
        """The value that holds when it is not set; None if that depends on the machine."""
        value: Value = getattr(_DEFAULTS, self.key) if self.in_file else None
        return value


class Reading(msgspec.Struct, frozen=True):
    """The value a setting has.

    Attributes:
        setting: The setting.
        value: Its value; None if it has none, or one that is not accepted.
        source: Where the value comes from.
    """

    setting: Setting
    value: Value
    source: Source


class Survey(msgspec.Struct, frozen=True):
    """All settings, as an environment and its file have them.

    Attributes:
        readings: Key -> its setting's value, in the order of `SETTINGS`.
        problems: What is not accepted, a sentence each; with one of them no process starts.
    """

    readings: Mapping[str, Reading]
    problems: tuple[str, ...]


# ---------------------------------------------------------------------------- settings

_DEFAULTS: Final = Config(home=Path())

SETTINGS: Final = (
    Setting(
        variable="MNEMOLOG_HOME",
        meaning="folder of the store",
        form=path_form(),
        unset="the platform's user data folder",
        in_file=False,
    ),
    Setting(
        variable="MNEMOLOG_CONFIG",
        meaning="configuration file",
        form=path_form(),
        unset=f"`{FILE_NAME}` in the home, if it is there",
        in_file=False,
    ),
    Setting(
        variable="MNEMOLOG_WORKSPACE",
        meaning="workspace to read and write",
        form=name_form(WORKSPACE_NAME_MAX),
    ),
    Setting(
        variable="MNEMOLOG_TOOLS",
        meaning="which tools clients are offered: all, or those that every agent needs",
        form=choice_form(TOOL_SETS),
    ),
    Setting(
        variable="MNEMOLOG_TIME_ZONE",
        meaning="zone in which dates in words are meant, such as `yesterday`",
        form=time_zone_form(),
    ),
    Setting(
        variable="MNEMOLOG_ACTIVITY",
        meaning="whether searches and accesses are recorded, beside the ledger",
        form=switch_form(),
    ),
    Setting(
        variable="MNEMOLOG_LOG_LEVEL",
        meaning="how much the server writes to standard error",
        form=choice_form(LOG_LEVELS),
    ),
    Setting(
        variable="MNEMOLOG_COMPRESSION",
        meaning="compression of sealed segments",
        form=choice_form(COMPRESSIONS),
    ),
    Setting(
        variable="MNEMOLOG_SEGMENT_BYTES",
        meaning="size at which a segment is sealed, in bytes",
        form=number_form(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX, whole=True),
    ),
    Setting(
        variable="MNEMOLOG_LOCK_TIMEOUT_S",
        meaning="how long to wait for the ledger's lock, in seconds",
        form=number_form(LOCK_TIMEOUT_S_MIN, LOCK_TIMEOUT_S_MAX, whole=False),
    ),
    Setting(
        variable="MNEMOLOG_CHECKPOINT_KEY",
        meaning="file of the key that signs checkpoints (Ed25519, PKCS #8 in PEM)",
        form=path_form(),
        unset="`checkpoint.key` in the home, made at first use",
        in_file=False,
    ),
    Setting(
        variable="MNEMOLOG_PUBLIC_DATA",
        meaning="folder of data sets that are not shipped (`locomo.json`), for the demo",
        form=path_form(),
        unset="none",
        in_file=False,
    ),
)
"""Every setting there is, in the order in which they are listed."""

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}


# ---------------------------------------------------------------------------- reading


def read_config(
    environment: Mapping[str, str] = os.environ, *, overrides: Mapping[str, str] = _NOTHING
) -> Config:
    """Read the settings; `overrides` are variables that a caller sets over the environment's.

    Raises:
        ConfigError: a value is not accepted, or the file is unusable; the message names the
            variable, or the file and the key, and says what is accepted.

    """
    found = survey(environment, overrides=overrides)
    if found.problems:
        first, more = found.problems[0], len(found.problems) - 1
        raise ConfigError(f"{first} ({more} more: mnemolog config check)" if more else first)
    values: dict[str, Any] = {key: found.readings[key].value for key in Config.__struct_fields__}
    return Config(**values)


def survey(
    environment: Mapping[str, str] = os.environ, *, overrides: Mapping[str, str] = _NOTHING
) -> Survey:
    """Read every setting, going on where one is not accepted; `overrides` as in `read_config`."""
    if overrides:
        environment = {**environment, **overrides}
    problems: list[str] = []
    readings = {
        setting.key: _from_environment(setting, environment, problems) for setting in SETTINGS
    }
    if readings["home"].source == "default":
        readings["home"] = Reading(_BY_KEY["home"], _default_home(), "default")
    if readings["config"].source == "default":
        beside = _file_of_home(readings["home"].value)
        readings["config"] = Reading(_BY_KEY["config"], beside, "default")
    file = readings["config"].value
    if isinstance(file, Path):
        for reading in _from_file(file, problems):
            key = reading.setting.key
            if readings[key].source == "default":
                readings[key] = reading
    return Survey(readings, tuple(problems))


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Name the variables that look like settings and are none, a sentence each."""
    known = [setting.variable for setting in SETTINGS]
    return [
        f"{_echo(name)} is no setting; {_nearest(name, known)}"
        for name in sorted(environment)
        if name.startswith(_PREFIX) and name not in known
    ]


def public_data(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of data sets that may be measured with but not shipped, if there is one.

    Raises:
        ConfigError: what the environment says is no path.

    """
    return _path("public_data", environment)


def checkpoint_key(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file of the key that signs checkpoints, if it is not the home's own.

    Raises:
        ConfigError: what the environment says is no path.

    """
    return _path("checkpoint_key", environment)


def child_environment(home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a child process that serves another home, with the defaults."""
    kept = {name: text for name, text in environment.items() if not name.startswith(_PREFIX)}
    return {**kept, "MNEMOLOG_HOME": str(home)}


def _path(key: str, environment: Mapping[str, str]) -> Path | None:
    problems: list[str] = []
    value = _from_environment(_BY_KEY[key], environment, problems).value
    if problems:
        raise ConfigError(problems[0])
    assert value is None or isinstance(value, Path)
    return value


def _from_environment(
    setting: Setting, environment: Mapping[str, str], problems: list[str]
) -> Reading:
    text = environment.get(setting.variable)
    # Clients pass on paths that their users have left empty. Elsewhere nobody means nothing.
    if text is None or (not text and setting.unset):
        return Reading(setting, setting.default, "default")
    try:
        return Reading(setting, setting.form.parse(text), "environment")
    except ValueError:
        problems.append(f"{setting.variable} is {_echo(text)}; accepted: {setting.form.accepted}")
        return Reading(setting, None, "environment")


def _default_home() -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 - 20 ms that most starts do not need

    return user_data_path("mnemolog", appauthor=False).resolve()


# ---------------------------------------------------------------------------- the file


def _file_of_home(home: Value) -> Path | None:
    if not isinstance(home, Path):
        return None
    file = home / FILE_NAME
    try:
        file.stat()
    except OSError:
        # Not there, or in a home that cannot be looked into, of which opening the store tells.
        return None
    return file


def _from_file(file: Path, problems: list[str]) -> list[Reading]:
    """Read what the file sets; whatever is wrong with it is added to the problems."""
    from server.config_file import read_entries  # noqa: PLC0415 - most starts have no file

    try:
        entries = read_entries(file)
    except ConfigError as error:
        problems.append(f"{file} {error}")
        return []
    readings = []
    for key, value in entries.items():
        setting = _BY_KEY.get(key)
        if setting is None or not setting.in_file:
            problems.append(f"{file}: {_unknown_key(key)}")
            continue
        try:
            readings.append(Reading(setting, setting.form.parse_in_file(value), "file"))
        except ValueError:
            accepted = setting.form.accepted_in_file or setting.form.accepted
            problems.append(f"{file}: {key} is {_said(value)}; accepted: {accepted}")
    return readings


# ---------------------------------------------------------------------------- sentences


def _unknown_key(key: str) -> str:
    name = key.lower().removeprefix(_PREFIX.lower())
    setting = _BY_KEY.get(name)
    if setting is not None and not setting.in_file:
        return f"{name} cannot be set in the file; set {setting.variable} in the environment"
    keys = [setting.key for setting in SETTINGS if setting.in_file]
    return f"{_echo(key)} is no setting; {_nearest(name, keys)}"


def _nearest(name: str, known: list[str]) -> str:
    import difflib  # noqa: PLC0415 - only a mistake pays for it

    # A name that is longer than any setting's is like none, and slow to compare.
    near = difflib.get_close_matches(name[:_ECHO_CHARACTERS_MAX], known, n=1)
    return f"the nearest is {near[0]}" if near else f"known: {', '.join(known)}"


def _said(value: object) -> str:
    match value:
        case str():
            return f"the text {_echo(value)}"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _echo(value)
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or a time"


def _echo(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number too long to print"
    return text if len(text) <= _ECHO_CHARACTERS_MAX else f"{text[:_ECHO_CHARACTERS_MAX]}…"
