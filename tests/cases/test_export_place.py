"""Case X-1, exports: what is there is not overwritten, nor what a planted link leads to."""

from pathlib import Path

import pytest

from tests.cases.ways import Run
from tests.support.store import Client

VICTIM = "what the victim says"


@pytest.fixture
def victim(folder: Path) -> Path:
    victim = folder / "outside" / "victim"
    victim.parent.mkdir()
    victim.write_text(VICTIM)
    (folder / "chosen").mkdir()
    return victim


@pytest.mark.guarantee("G-OUTPUT-1")
@pytest.mark.parametrize("name", ["notes.md", "chain.md", "../outside/victim", "folder.md"])
def test_x1_an_export_overwrites_nothing_through_a_link_or_a_path(
    client: Client, run: Run, folder: Path, victim: Path, name: str
) -> None:
    client.add("the bittern")
    chosen = folder / "chosen"
    (chosen / "notes.md").symlink_to(victim)
    (chosen / "chain.md").symlink_to(chosen / "notes.md")
    (chosen / "folder.md").symlink_to(victim.parent)
    before = sorted(path.name for path in folder.rglob("*") if "home" not in path.parts)

    finished = run("export", "--format", "markdown", "--output", str(chosen / name))

    assert finished.status == 3
    assert name.encode() in finished.err
    assert victim.read_text() == VICTIM
    assert sorted(path.name for path in folder.rglob("*") if "home" not in path.parts) == before
