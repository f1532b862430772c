"""What a bundle says of itself and nobody signed is compared with its records."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import checked, copied, make_bundle, report_of, small_ledger


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summary")
    make_bundle(small_ledger(folder / "ledger"), folder / "whole", earlier=6)
    return folder / "whole"


def rewritten(bundle: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    folder = copied(bundle, target)
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    change(summary)
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["redactions"][0].update(by="somebody else"),
        lambda said: said["redactions"][0].update(at="2001-01-01T00:00:00.000000Z"),
        lambda said: said["redactions"][0].update(positions=[1]),
        lambda said: said["redactions"][0].update(redaction="another"),
        lambda said: said["redactions"].clear(),
        lambda said: said.pop("redactions"),
        lambda said: said.update(redactions=[7]),
    ],
    ids=["by", "at", "positions", "name", "none", "no field", "no object"],
)
def test_a_redaction_that_is_told_wrongly_is_named(
    bundle: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    report = report_of(rewritten(bundle, tmp_path / "b", change))

    (problem,) = report.problems
    assert problem["kind"] == "summary"
    assert "when and by whom" in problem["detail"]


def test_an_earlier_checkpoint_that_was_taken_away_is_named(bundle: Path, tmp_path: Path) -> None:
    folder = rewritten(bundle, tmp_path / "b", lambda said: said.update(earlier_checkpoint=6))
    assert checked(folder).status == 0

    (folder / "earlier-checkpoint").unlink()

    assert checked(folder).kinds == ["summary"]
