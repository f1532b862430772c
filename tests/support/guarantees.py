"""Which tests cite which promise, and what is printed of the promises."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.promises import GROUPS, GUARANTEES, Guarantee

ROOT = Path(__file__).resolve().parents[2]

MARK: Final = "pytest.mark.guarantee"

# ---------------------------------------------------------------------------- citations


def cited_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each test of a module with each id that it cites.

    A mark on a class, or on the module as `pytestmark`, counts for the whole of it.
    """
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                for mark in node.decorator_list:
                    yield from ((name, cited) for cited in _ids(mark))
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=marks):
                for mark in marks.elts if isinstance(marks, ast.List) else [marks]:
                    yield from (("pytestmark", cited) for cited in _ids(mark))
            case _:
                pass


def _ids(mark: ast.expr) -> Iterator[str]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
        for argument in mark.args:
            if not isinstance(argument, ast.Constant):
                raise TypeError(f"line {mark.lineno}: an id is given by its letters")
            yield str(argument.value)


@cache
def citations() -> dict[str, tuple[str, ...]]:
    """Return which tests cite an id, as `tests/file.py::test`, by id."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, cited in cited_in(path.read_text("utf-8")):
            found.setdefault(cited, []).append(f"{path.relative_to(ROOT).as_posix()}::{test}")
    return {cited: tuple(tests) for cited, tests in found.items()}


# ---------------------------------------------------------------------------- what is printed


def page() -> str:
    """Print every promise, its limit, and the files of the tests that prove it."""
    return "\n".join(
        f"## {heading}\n\n" + "\n".join(_entry(each) for each in group if each in GUARANTEES)
        for heading, group in GROUPS.items()
        if any(each in GUARANTEES for each in group)
    )


def _entry(guarantee: Guarantee) -> str:
    files = dict.fromkeys(test.split("::")[0] for test in citations().get(guarantee.id, ()))
    parts = [f"### {guarantee.id}", guarantee.promise]
    if guarantee.limit:
        parts.append(f"Not promised: {guarantee.limit[0].lower()}{guarantee.limit[1:]}")
    parts.append(f"Proven in {', '.join(f'`{file}`' for file in files)}.")
    return "\n\n".join(parts) + "\n"


def readme_rows() -> list[tuple[str, str]]:
    """Return the promises of the README with their ids."""
    return [(each.promise, f"[{each.id}]") for each in GUARANTEES if each.in_readme]


def links(from_readme: str = "docs/guarantees.md") -> str:
    """Print where the ids in brackets lead, which nobody sees."""
    return "".join(f"[{each.id}]: {from_readme}#{each.id.lower()}\n" for each in GUARANTEES)
