"""Checking and exporting read a ledger piece by piece, however much is in it."""

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ledger import verify
from server.audit_args import AuditExportArgs
from server.bootstrap import Store
from server.bundle_files import verify as script
from server.config import Config
from server.tool import Call
from tests.support.store import Client

SEGMENT_BYTES = 128 << 10
TEXT_CHARS = 32 << 10
FEW, MANY = 20, 200
SLACK_BYTES = 512 << 10
"""What caches and a record's digests may add; the texts of the longer ledger add 5.6 MiB."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folders = {}
    for size in (FEW, MANY):
        folders[size] = tmp_path_factory.mktemp("streaming") / "home"
        with closing(_open(folders[size])) as store:
            for start in range(0, size, 10):
                texts = [f"{number} ".ljust(TEXT_CHARS, ".") for number in range(start, start + 10)]
                added = Client(store, "tester").add_many(
                    *({"content": text, "layer": "semantic"} for text in texts)
                )
                assert added.added_count == 10
    return folders


def _open(home: Path) -> Store:
    return Store(Config(home=home, segment_bytes=SEGMENT_BYTES))


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _peaks(home: Path, folder: Path, first: str | None) -> dict[str, int]:
    """Return the most bytes that each work held at once."""
    with closing(_open(home)) as store:
        args = AuditExportArgs(folder=str(folder), from_=first)
        report = script.Report()
        wanted = script.Wanted("", "")
        peaks = {
            "verify": _peak(lambda: verify(home / "ledger")),
            "export": _peak(lambda: store.app.audit_export(args, Call())),
            "check": _peak(lambda: script.check(folder, wanted, report, lambda _: None)),
        }
        assert report.problems == []
    return peaks


@pytest.mark.guarantee("G-AUDIT-4")
@pytest.mark.parametrize("first", [None, "2"], ids=["whole", "part"])
def test_verifying_and_exporting_hold_no_more_of_the_texts_of_a_longer_ledger(
    homes: dict[int, Path], tmp_path: Path, first: str | None
) -> None:
    few = _peaks(homes[FEW], tmp_path / "few", first)
    many = _peaks(homes[MANY], tmp_path / "many", first)

    assert {
        work: many[work] - few[work] for work in few if many[work] - few[work] > SLACK_BYTES
    } == {}
