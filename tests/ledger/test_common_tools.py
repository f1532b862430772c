"""The ledger is read by programs that know nothing of this one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.ledgers import SMALL, append_each, open_ledger, open_sealer

pytestmark = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("zstdcat")),
    reason="jq and zstdcat are not installed (Debian: apt-get install jq zstd)",
)


def output_of(command: str, folder: Path) -> list[str]:
    finished = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, check=True
    )
    return finished.stdout.decode().splitlines()


@pytest.mark.guarantee("G-FORMAT-1")
def test_zstdcat_and_jq_read_sealed_segments_in_order(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, options=SMALL)
    append_each(ledger, "one", "zwei", "три")
    open_sealer(ledger).run()

    texts = output_of("zstdcat *.zst | jq -r 'select(.h) | .p.memory.content'", tmp_path / "log")

    assert texts == ["one", "zwei", "три"]


@pytest.mark.guarantee("G-FORMAT-1")
def test_jq_reads_the_live_segment_with_its_header_line(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    append_each(ledger, "one", "two")

    kinds = output_of("jq -c 'keys_unsorted' *.jsonl", tmp_path / "log")

    assert kinds == ['["segment","d"]', '["h","p","d"]', '["h","p","d"]']
