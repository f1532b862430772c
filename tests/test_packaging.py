"""What the distribution says of itself."""

import tomllib
from pathlib import Path

import server
from server.bundle import FILES

ROOT = Path(__file__).resolve().parent.parent


def test_the_program_and_the_distribution_agree_on_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert server.__version__ == project["version"]


def test_type_checkers_are_told_of_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert packages
    assert all((ROOT / package / "py.typed").is_file() for package in packages)


def test_what_every_audit_bundle_is_given_lies_beside_the_modules() -> None:
    names = sorted(path.name for path in FILES.iterdir() if path.is_file())

    assert names == ["VERIFY.md", "verify.py"]
    assert (FILES / "verify.py").read_text("utf-8").startswith("#!/usr/bin/env python3\n")


def test_the_stemmers_that_decide_the_index_are_pinned_exactly() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stemmers = [name for name in project["dependencies"] if "stemmer" in name.lower()]

    assert len(stemmers) == 2
    assert all("==" in name for name in stemmers)
