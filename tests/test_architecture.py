"""Rules on imports that import-linter can't express."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ledger", "projections", "server")
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
STDIO_PATH_STRANGERS = {"anyio", "asyncio", "mcp", "pydantic", "starlette"}
NOT_ON_THE_STDIO_PATH = {"server/demo.py"}


def sources(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes())


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def reads_environment(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT:
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            return any(alias.name in ENVIRONMENT for alias in node.names)
    return False


def test_only_the_configuration_reads_the_environment() -> None:
    readers = {name for name, tree in sources(*PACKAGES) if reads_environment(tree)}

    assert readers <= {"server/config.py"}


def test_only_one_module_imports_apsw() -> None:
    importers = {name for name, tree in sources(*PACKAGES, "tools") if "apsw" in imported(tree)}

    assert importers <= {"projections/connection.py"}


def test_nothing_on_the_stdio_path_imports_the_sdk_or_an_event_loop() -> None:
    importers = {name for name, tree in sources(*PACKAGES) if STDIO_PATH_STRANGERS & imported(tree)}

    assert importers <= NOT_ON_THE_STDIO_PATH


def test_no_package_has_a_main_module_that_a_foreign_folder_could_shadow() -> None:
    mains = [path for package in PACKAGES for path in (ROOT / package).rglob("__main__.py")]

    assert mains == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is(package: str) -> None:
    silent = [name for name, tree in sources(package) if not ast.get_docstring(tree)]

    assert silent == []
