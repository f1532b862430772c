"""The commands on checkpoints: what they print, and when they refuse."""

import shutil
from pathlib import Path

import pytest

from ledger import parse_key, parse_note
from tests.support.cli import Shell, installed


@pytest.fixture(name="published")
def _published(cli: Shell, tmp_path: Path) -> Path:
    """Where one checkpoint of three records is published."""
    cli.add("a heron")
    cli("checkpoint", "create")
    cli("checkpoint", "publish-to", str(tmp_path / "published"))
    return tmp_path / "published"


def test_a_checkpoint_is_printed_as_it_is_kept(cli: Shell) -> None:
    cli.add("a heron")

    made = cli("checkpoint", "create")

    assert (made.status, made.err) == (0, "")
    assert made.out == (cli.home / "ledger" / "checkpoints").read_text()
    key = parse_key(cli("checkpoint", "key").out)
    assert cli("checkpoint", "key", "--json").json == {"key": key.text}
    assert key.judge(parse_note(made.out.encode())) == "good"
    again = cli("checkpoint", "create", "--json").json
    assert (again["size"], again["is_new"], again["note"]) == (3, False, made.out)


def test_checkpoints_are_listed_with_what_the_key_says_of_them(cli: Shell) -> None:
    cli.add("a heron")
    assert cli("checkpoint", "list").out == "no checkpoint yet\n"
    assert cli("checkpoint", "list", "--json").json == {"checkpoints": []}
    note = cli("checkpoint", "create", "--json").json
    row = {"size": 3, "root": note["root"], "signature": "good"}
    assert cli("checkpoint", "list", "--json").json == {"checkpoints": [row]}
    assert cli("checkpoint", "list").out == f"         3  {note['root']}  good\n"

    (cli.home / "checkpoint.key").unlink()
    assert "unchecked" in cli("checkpoint", "list").out
    cli("checkpoint", "key")
    assert "unsigned" in cli("checkpoint", "list").out


def test_publishing_says_whether_it_was_there(cli: Shell, published: Path) -> None:
    again = cli("checkpoint", "publish-to", str(published))
    assert again.out == f"already there: 3 records, in {published}\n"
    cli.add("a crane")
    cli("checkpoint", "create")
    told = cli("checkpoint", "publish-to", str(published), "--json").json
    assert (told["size"], told["is_new"], told["file"]) == (4, True, str(published))
    assert cli("verify", "--against", str(published), "--against", str(published)).status == 0


def test_proofs_are_printed_for_others(cli: Shell, published: Path) -> None:
    cli.add("a crane")
    cli("checkpoint", "create")

    proof = cli("checkpoint", "prove", "2").out
    assert proof.startswith("c2sp.org/tlog-proof@v1\nindex 1\n")
    earlier = cli("checkpoint", "prove", "2", "--in", str(published), "--json").json
    assert (earlier["seq"], earlier["size"], len(earlier["hashes"])) == (2, 3, 2)
    assert earlier["proof"].endswith(published.read_text())

    grown = cli("checkpoint", "extend", str(published))
    assert grown.out.startswith("old 3\n")
    told = cli("checkpoint", "extend", str(published), "--json").json
    assert (told["old_size"], told["size"], told["proof"]) == (3, 4, grown.out)


def test_a_key_of_the_settings_signs_and_is_not_made(
    cli: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.add("a heron")
    cli("checkpoint", "key")
    elsewhere = tmp_path / "elsewhere.pem"
    monkeypatch.setenv("MNEMOLOG_CHECKPOINT_KEY", str(elsewhere))

    refused = cli("checkpoint", "create")
    assert (refused.status, elsewhere.exists()) == (2, False)
    assert f"there is no key at {elsewhere}; a key that the settings name" in refused.err

    (cli.home / "checkpoint.key").rename(elsewhere)
    assert cli("checkpoint", "create").status == 0
    assert not (cli.home / "checkpoint.key").exists()
    assert cli("verify").status == 0


def test_signatures_are_checked_with_a_key_that_is_given(cli: Shell, published: Path) -> None:
    key = cli("checkpoint", "key").out.strip()
    (cli.home / "checkpoint.key").unlink()

    refused = cli("verify", "--against", str(published))
    assert refused.status == 2
    assert "checkpoint.key; give the verifier key of the checkpoints by --key" in refused.err
    assert cli("verify", "--against", str(published), "--key", key).status == 0
    assert cli("checkpoint", "extend", str(published), "--key", key).status == 0
    unpublished = cli("checkpoint", "publish-to", str(published))
    assert "checkpoint.key; `checkpoint create` makes one" in unpublished.err

    other = parse_key(cli("checkpoint", "key").out)
    told = cli("verify", "--against", str(published), "--key", other.text)
    assert told.status == 1
    assert "is not signed by the key" in told.out


def test_verify_alone_goes_on_without_a_key_that_can_be_used(cli: Shell, published: Path) -> None:
    del published
    (cli.home / "checkpoint.key").write_text("no key")
    alone = cli("verify")
    assert alone.status == 0
    assert "note: checkpoints: 1 of 1 signatures not checked: there is no key" in alone.out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("prove", "4"), 2, "covers records 1 to 3"),
        (("prove", "one"), 2, "invalid int value"),
        (("prove", "1", "--in", "missing"), 2, "there is no file missing"),
        (("extend", "missing"), 2, "there is no file missing"),
        (("extend", "missing", "--key", "abc"), 2, "'abc' is no verifier key"),
        (("publish-to", "/dev/null/file"), 2, "Not a directory"),
        ((), 2, "ACTION"),
    ],
)
@pytest.mark.usefixtures("published")
def test_what_cannot_be_done_is_said_in_one_line(
    cli: Shell, words: tuple[str, ...], status: int, said: str
) -> None:
    told = cli("checkpoint", *words)
    assert told.status == status
    assert said in told.err
    assert told.err.count("\n") == 1


def test_before_the_first_checkpoint_there_is_nothing_to_publish(
    cli: Shell, tmp_path: Path
) -> None:
    cli.add("a heron")
    cli("checkpoint", "key")
    told = cli("checkpoint", "publish-to", str(tmp_path / "published"))
    assert told.status == 2
    assert "`checkpoint create` makes one" in told.err


def test_without_a_store_nothing_is_made(cli: Shell) -> None:
    told = cli("checkpoint", "create")
    assert told.status == 2
    assert not cli.home.exists()


def test_a_store_without_projections_is_signed_too(cli: Shell) -> None:
    cli.add("a heron")
    shutil.rmtree(cli.home / "projections")
    assert cli("checkpoint", "create").status == 0


def test_what_signs_is_loaded_only_to_sign_or_check(tmp_path: Path) -> None:
    home = tmp_path / "home"
    installed(home, "add", "a heron")
    told = installed(home, "verify", PYTHONPROFILEIMPORTTIME="1")
    assert "msgspec" in told.err
    assert "cryptography" not in told.err
    installed(home, "checkpoint", "create")
    assert "cryptography" in installed(home, "verify", PYTHONPROFILEIMPORTTIME="1").err
    assert "cryptography" not in installed(home, "list", PYTHONPROFILEIMPORTTIME="1").err


def test_a_file_that_an_older_copy_does_not_extend_is_left_as_it_is(
    cli: Shell, published: Path, tmp_path: Path
) -> None:
    cli("backup", str(tmp_path / "older"))
    cli("add", "more", "--layer", "semantic")
    cli("checkpoint", "create")
    cli("checkpoint", "publish-to", str(published))
    before = published.read_bytes()
    cli("restore", str(tmp_path / "older"), "--replace")
    cli("checkpoint", "create")

    refused = cli("checkpoint", "publish-to", str(published))

    assert refused.status == 1
    assert "does not extend: it is shorter" in refused.err
    assert "publish to a new file and keep this one" in refused.err
    assert published.read_bytes() == before
    assert cli("checkpoint", "publish-to", str(tmp_path / "new")).status == 0
