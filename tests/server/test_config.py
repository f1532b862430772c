"""The settings: where each comes from, what is refused and how that is said."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from server import config, form
from server.config import SETTINGS, Config, child_environment, public_data, read_config, survey
from server.config_report import add_config_command, run_config
from server.errors import ConfigError
from tests.support.peer import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
PATH = "a path in UTF-8; `~` must be a user that exists"
NAME = "a name of 1 to 200 characters"
WHOLE = "a whole number from 65,536 to 1,073,741,824"
IN_FILE = [setting for setting in SETTINGS if setting.in_file]
OTHER_VALUES = {
    "workspace": ("work", '"work"', "work"),
    "tools": ("core", '"core"', "core"),
    "time_zone": ("Europe/Berlin", '"Europe/Berlin"', "Europe/Berlin"),
    "activity": ("off", "false", False),
    "log_level": ("debug", '"debug"', "debug"),
    "compression": ("gzip", '"gzip"', "gzip"),
    "segment_bytes": ("65536", "65_536", 65_536),
    "lock_timeout_s": ("1.5", "1.5", 1.5),
}
"""Key -> a value that is not the default: in the environment, in the file, in `Config`."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for name in list(os.environ):
        if name.startswith("MNEMOLOG_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMOLOG_HOME", str(home))


def written(home: Path, text: str | bytes) -> dict[str, str]:
    """Write the file of a home; returns an environment that has nothing but the home."""
    home.mkdir(exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    (home / "config.toml").write_bytes(data)
    return {"MNEMOLOG_HOME": str(home)}


def problem(environment: Mapping[str, str]) -> str:
    """Return what is wrong, without the name of the file."""
    with pytest.raises(ConfigError) as refused:
        read_config(environment)
    return str(refused.value).replace(environment.get("MNEMOLOG_HOME", "\0"), "<home>")


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="mnemolog")
    add_config_command(parser.add_subparsers())
    return run_config(parser.parse_args(["config", *arguments]))


# ---------------------------------------------------------------------------- sources


def test_without_any_setting_every_value_is_the_default(home: Path) -> None:
    environment = {"MNEMOLOG_HOME": str(home)}

    assert read_config(environment) == Config(home=home)
    assert [
        key for key, reading in survey(environment).readings.items() if reading.source != "default"
    ] == ["home"]


def test_each_setting_of_a_process_can_be_set_and_no_other_in_the_file() -> None:
    assert {setting.key for setting in IN_FILE} == {*Config.__struct_fields__} - {"home"}
    assert {setting.key for setting in IN_FILE} == {*OTHER_VALUES}


@pytest.mark.parametrize("setting", IN_FILE, ids=lambda setting: setting.key)
def test_the_environment_beats_the_file_and_the_file_beats_the_default(
    home: Path, setting: config.Setting
) -> None:
    text, in_file, value = OTHER_VALUES[setting.key]
    environment = {"MNEMOLOG_HOME": str(home)}
    default = {setting.variable: form.written(setting.default)}

    unset = survey(environment).readings[setting.key]
    from_environment = survey({**environment, setting.variable: text}).readings[setting.key]
    written(home, f"{setting.key} = {in_file}\n")
    from_file = survey(environment).readings[setting.key]
    from_both = survey({**environment, **default}).readings[setting.key]

    assert (unset.value, unset.source) == (setting.default, "default")
    assert (from_environment.value, from_environment.source) == (value, "environment")
    assert (from_file.value, from_file.source) == (value, "file")
    assert (from_both.value, from_both.source) == (setting.default, "environment")
    assert getattr(read_config(environment), setting.key) == value


def test_a_file_named_in_the_environment_takes_the_place_of_the_one_in_the_home(
    home: Path, tmp_path: Path
) -> None:
    environment = written(home, 'workspace = "home"\ntools = "core"\n')
    named = tmp_path / "named.toml"
    named.write_text('workspace = "named"\n')

    settings = read_config({**environment, "MNEMOLOG_CONFIG": str(named)})

    assert (settings.workspace, settings.tools) == ("named", "full")


def test_the_null_device_for_a_file_means_no_file(home: Path) -> None:
    environment = written(home, "this is not TOML")

    assert read_config({**environment, "MNEMOLOG_CONFIG": os.devnull}) == Config(home=home)


def test_a_path_that_is_left_empty_is_not_set(home: Path) -> None:
    environment = written(home, 'workspace = "home"\n')

    settings = read_config({**environment, "MNEMOLOG_CONFIG": "", "MNEMOLOG_PUBLIC_DATA": ""})

    assert settings.workspace == "home"
    assert public_data({"MNEMOLOG_PUBLIC_DATA": ""}) is None


def test_relative_paths_and_tildes_mean_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    here, there = (read_config({"MNEMOLOG_HOME": text}).home for text in ("x", "~/x"))

    assert here == there == tmp_path.resolve() / "x"


def test_without_a_home_in_the_environment_it_is_in_the_users_data_folder() -> None:
    reading = survey({}).readings["home"]

    assert reading.source == "default"
    assert isinstance(reading.value, Path)
    assert reading.value.is_absolute()
    assert reading.value.name == "mnemolog"


def test_every_level_of_the_log_has_what_those_before_it_have(home: Path) -> None:
    wanted = {
        level: [each for each in config.LOG_LEVELS if Config(home=home, log_level=level).logs(each)]
        for level in config.LOG_LEVELS
    }

    assert wanted == {
        "warning": ["warning"],
        "info": ["warning", "info"],
        "debug": ["warning", "info", "debug"],
    }


def test_a_child_that_serves_another_home_has_none_of_our_settings(home: Path) -> None:
    ours = {"PATH": "/bin", "MNEMOLOG_HOME": "/ours", "MNEMOLOG_CONFIG": "ours.toml"}

    assert child_environment(home, ours) == {"PATH": "/bin", "MNEMOLOG_HOME": str(home)}


# ---------------------------------------------------------------------------- refusals


@pytest.mark.guarantee("G-SETTINGS-1")
@pytest.mark.parametrize(
    ("variable", "text", "accepted"),
    [
        ("MNEMOLOG_HOME", "~nosuchuser/x", PATH),
        ("MNEMOLOG_CONFIG", "a\0b", PATH),
        ("MNEMOLOG_PUBLIC_DATA", "/\udcff", PATH),
        ("MNEMOLOG_WORKSPACE", "", NAME),
        ("MNEMOLOG_WORKSPACE", "x" * 201, NAME),
        ("MNEMOLOG_WORKSPACE", "\udcff", NAME),
        ("MNEMOLOG_TOOLS", "all", "full, core"),
        ("MNEMOLOG_ACTIVITY", "true", "on, off"),
        ("MNEMOLOG_LOG_LEVEL", "error", "warning, info, debug"),
        ("MNEMOLOG_COMPRESSION", "ZSTD", "zstd, gzip"),
        ("MNEMOLOG_SEGMENT_BYTES", "65536.7", WHOLE),
        ("MNEMOLOG_SEGMENT_BYTES", "1e6", WHOLE),
        ("MNEMOLOG_SEGMENT_BYTES", "65535", WHOLE),
        ("MNEMOLOG_SEGMENT_BYTES", "9" * 5000, WHOLE),
        ("MNEMOLOG_LOCK_TIMEOUT_S", "nan", "a number from 0.1 to 3,600"),
        ("MNEMOLOG_LOCK_TIMEOUT_S", "inf", "a number from 0.1 to 3,600"),
        ("MNEMOLOG_LOCK_TIMEOUT_S", "0", "a number from 0.1 to 3,600"),
        ("MNEMOLOG_LOCK_TIMEOUT_S", "", "a number from 0.1 to 3,600"),
    ],
)
def test_a_variable_that_is_not_accepted_is_named_with_what_is(
    variable: str, text: str, accepted: str
) -> None:
    said = problem({"MNEMOLOG_HOME": "/nowhere", variable: text})

    assert said.startswith(f"{variable} is '")
    assert said.endswith(f"; accepted: {accepted}")
    assert len(said) < 200


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Europe",
        "Europe/Nowhere",
        "../../etc/passwd",
        "/etc/passwd",
        "a\0b",
        "\udcff",
        "x" * 999,
    ],
)
def test_a_time_zone_that_is_none_is_refused(name: str) -> None:
    said = problem({"MNEMOLOG_HOME": "/nowhere", "MNEMOLOG_TIME_ZONE": name})

    assert said.startswith("MNEMOLOG_TIME_ZONE is ")
    assert said.endswith("such as Europe/Berlin")


@pytest.mark.guarantee("G-SETTINGS-1")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("workspace = 1", "workspace is 1; accepted: a name of 1 to 200 characters"),
        ('workspace = " "', "workspace is the text ' '; accepted: a name of 1 to 200 characters"),
        ('activity = "off"', "activity is the text 'off'; accepted: true, false"),
        ("activity = 1", "activity is 1; accepted: true, false"),
        (
            "segment_bytes = true",
            f"segment_bytes is true; accepted: {WHOLE}",
        ),
        (
            "segment_bytes = 65536.0",
            f"segment_bytes is 65536.0; accepted: {WHOLE}",
        ),
        (
            'segment_bytes = "65536"',
            f"segment_bytes is the text '65536'; accepted: {WHOLE}",
        ),
        (
            f"segment_bytes = 0x{'f' * 9000}",
            f"segment_bytes is a number too long to print; accepted: {WHOLE}",
        ),
        ("lock_timeout_s = 0", "lock_timeout_s is 0; accepted: a number from 0.1 to 3,600"),
        ("lock_timeout_s = inf", "lock_timeout_s is inf; accepted: a number from 0.1 to 3,600"),
        ("tools = ['core']", "tools is a list; accepted: full, core"),
        ("tools.core = true", "tools is a table; accepted: full, core"),
        ("tools = 2026-01-01", "tools is a date or a time; accepted: full, core"),
        ("worksapce = 'x'", "'worksapce' is no setting; the nearest is workspace"),
        ("MNEMOLOG_TOOLS = 'core'", "'MNEMOLOG_TOOLS' is no setting; the nearest is tools"),
        ("[tool]", "'tool' is no setting; the nearest is tools"),
        (
            "home = '/x'",
            "home cannot be set in the file; set MNEMOLOG_HOME in the environment",
        ),
        (
            "config = '/x'",
            "config cannot be set in the file; set MNEMOLOG_CONFIG in the environment",
        ),
        (
            "api_key = 'x'",
            f"'api_key' is no setting; known: {', '.join(OTHER_VALUES)}",
        ),
    ],
)
def test_a_line_of_the_file_that_is_not_accepted_is_named_with_what_is(
    home: Path, line: str, said: str
) -> None:
    assert problem(written(home, line)) == f"<home>/config.toml: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workspace = 'x'\ntools\n", "is not TOML: .* [(]at line 2, column 6[)]"),
        ("tools = 'full'\ntools = 'core'\n", "is not TOML: .*at line 2.*"),
        ("\n\ntools = [1,\n", "is not TOML: .*at line 3, the last.*"),
        ("segment_bytes = " + "9" * 5000, "is not TOML: .*"),
        (b"# one\n# two \xff\n", "is not UTF-8 [(]at line 2[)]"),
        ("a = " + "[" * 50_000, "is (nested too deep|not TOML: .*)"),
        ("#" * ((1 << 20) + 1), "is longer than 1,048,576 bytes"),
    ],
    ids=["no value", "twice", "cut off", "huge number", "not UTF-8", "deep", "long"],
)
def test_a_file_that_is_not_toml_is_refused_with_the_line(
    home: Path, text: str | bytes, said: str
) -> None:
    assert re.fullmatch(f"<home>/config.toml {said}", problem(written(home, text)))


def make_folder(path: Path) -> None:
    path.mkdir()


def make_nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_folder, "is not a file"),
        (os.mkfifo, "is not a file"),
        (make_nothing, "cannot be read: No such file or directory"),
    ],
    ids=["folder", "pipe", "nothing"],
)
def test_a_file_that_cannot_be_read_is_refused_and_not_waited_for(
    tmp_path: Path, home: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "config.toml"
    make(path)

    refused = problem({"MNEMOLOG_HOME": str(home), "MNEMOLOG_CONFIG": str(path)})

    assert refused == f"{path} {said}"


def test_a_home_that_is_a_file_has_no_configuration(home: Path) -> None:
    home.write_text("not a folder")

    assert read_config({"MNEMOLOG_HOME": str(home)}) == Config(home=home)


def test_a_file_is_checked_even_where_the_environment_overrides_it(home: Path) -> None:
    environment = written(home, "tools = 1\n")

    assert "tools is 1" in problem({**environment, "MNEMOLOG_TOOLS": "core"})


def test_the_first_of_many_problems_says_how_many_more_there_are(home: Path) -> None:
    environment = written(home, "tools = 1\nworksapce = 2\n")

    said = problem({**environment, "MNEMOLOG_ACTIVITY": "maybe"})

    assert said == (
        "MNEMOLOG_ACTIVITY is 'maybe'; accepted: on, off (2 more: mnemolog config check)"
    )


def test_data_for_the_demo_that_is_no_path_is_refused() -> None:
    with pytest.raises(ConfigError, match="MNEMOLOG_PUBLIC_DATA is '~nosuchuser'"):
        public_data({"MNEMOLOG_PUBLIC_DATA": "~nosuchuser"})


# ---------------------------------------------------------------------------- commands


def test_a_check_lists_every_problem_and_warns_of_variables_nobody_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(home, "tools = 1\nworksapce = 2\n")
    monkeypatch.setenv("MNEMOLOG_ACTIVITY", "maybe")
    monkeypatch.setenv("MNEMOLOG_SEGMENT_BYTE", "65536")

    status = command("check")

    file = home / "config.toml"
    assert status == 2
    assert capsys.readouterr().out.splitlines() == [
        f"file: {file}",
        "problem: MNEMOLOG_ACTIVITY is 'maybe'; accepted: on, off",
        f"problem: {file}: tools is 1; accepted: full, core",
        f"problem: {file}: 'worksapce' is no setting; the nearest is workspace",
        "warning: 'MNEMOLOG_SEGMENT_BYTE' is no setting; the nearest is MNEMOLOG_SEGMENT_BYTES",
        "the settings are not accepted",
    ]


def test_a_variable_nobody_reads_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MNEMOLOG_SEGMENT_BYTE", "65536")

    status = command("check", "--json")

    report = json.loads(capsys.readouterr().out)
    assert status == 0
    assert (report["ok"], report["file"], report["problems"]) == (True, None, [])
    assert len(report["warnings"]) == 1


def test_a_check_for_machines_says_the_same(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(home, "tools = 1\n")

    status = command("check", "--json")

    file = str(home / "config.toml")
    assert status == 2
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "file": file,
        "problems": [f"{file}: tools is 1; accepted: full, core"],
        "warnings": [],
    }


def test_settings_are_shown_with_their_sources_even_if_some_are_not_accepted(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(home, "segment_bytes = 70000\nlock_timeout_s = 2\n")
    monkeypatch.setenv("MNEMOLOG_TOOLS", "many")
    monkeypatch.setenv("MNEMOLOG_ACTIVITY", "off")
    monkeypatch.setenv("MNEMOLOG_WORKSPACE", "a\x1b[2Jb")

    status = command("show")

    shown = capsys.readouterr()
    assert status == 2
    assert shown.err == "mnemolog: MNEMOLOG_TOOLS is 'many'; accepted: full, core\n"
    assert [line.split(maxsplit=2) for line in shown.out.splitlines()] == [
        ["MNEMOLOG_HOME", "environment", str(home)],
        ["MNEMOLOG_CONFIG", "default", str(home / "config.toml")],
        ["MNEMOLOG_WORKSPACE", "environment", r"'a\x1b[2Jb'"],
        ["MNEMOLOG_TOOLS", "environment", "not accepted"],
        ["MNEMOLOG_TIME_ZONE", "default", "UTC"],
        ["MNEMOLOG_ACTIVITY", "environment", "off"],
        ["MNEMOLOG_LOG_LEVEL", "default", "warning"],
        ["MNEMOLOG_COMPRESSION", "default", "zstd"],
        ["MNEMOLOG_SEGMENT_BYTES", "file", "70000"],
        ["MNEMOLOG_LOCK_TIMEOUT_S", "file", "2"],
        ["MNEMOLOG_CHECKPOINT_KEY", "default", "none"],
        ["MNEMOLOG_PUBLIC_DATA", "default", "none"],
    ]


def test_settings_for_machines_have_values_of_their_types(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(home, "activity = false\nsegment_bytes = 70000\n")

    status = command("show", "--json")

    report = json.loads(capsys.readouterr().out)
    by_variable = {entry.pop("variable"): entry for entry in report["settings"]}
    assert status == 0
    assert report["problems"] == []
    assert [*by_variable] == [setting.variable for setting in SETTINGS]
    assert by_variable["MNEMOLOG_HOME"] == {
        "key": None,
        "value": str(home),
        "source": "environment",
    }
    assert by_variable["MNEMOLOG_ACTIVITY"] == {
        "key": "activity",
        "value": False,
        "source": "file",
    }
    assert by_variable["MNEMOLOG_SEGMENT_BYTES"]["value"] == 70_000
    assert by_variable["MNEMOLOG_PUBLIC_DATA"]["value"] is None


# ---------------------------------------------------------------------------- documents


def examples() -> Iterator[tuple[str, str]]:
    """Yield each command of the page with what it prints."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for piece in block.split("$ ")[1:]:
            line, _, output = piece.partition("\n")
            if " config " in line:
                yield line, output


@pytest.mark.parametrize(("line", "output"), list(examples()))
def test_the_commands_on_the_page_print_what_stands_there(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    output: str,
) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    written(home, example)
    words = shlex.split(line)
    while "=" in words[0]:
        name, _, text = words.pop(0).partition("=")
        monkeypatch.setenv(name, text)

    status = command(*words[2:])

    printed = capsys.readouterr()
    assert words[:2] == ["mnemolog", "config"]
    assert (printed.out + printed.err).replace(str(home), "/srv/memory") == output
    assert status == (2 if "not accepted" in output else 0)


def test_the_file_on_the_page_sets_every_setting_that_a_file_can(home: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

    assert [*tomllib.loads(example)] == [setting.key for setting in IN_FILE]
    assert read_config(written(home, example)) != Config(home=home)


# ---------------------------------------------------------------------------- price


def test_without_a_file_reading_the_settings_loads_nothing_that_is_slow(home: Path) -> None:
    code = (
        "import sys, server.config;"
        f"server.config.read_config({{'MNEMOLOG_HOME': {str(home)!r}}});"
        "print([name for name in ('tomllib', 'zoneinfo', 'difflib', 'platformdirs', 'argparse')"
        " if name in sys.modules])"
    )
    # Measuring coverage loads some of them.
    environment = {name: text for name, text in os.environ.items() if "COVERAGE" not in name}

    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        check=True,
    )

    assert done.stdout == b"[]\n"
