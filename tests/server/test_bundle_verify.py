"""verify.py: a whole bundle passes, and no change of one goes unnoticed or unnamed."""

import ast
import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from ledger import Checkpoint, Signer
from server.bundle_files import verify as script
from server.bundle_scope import Scope
from tests.support.bundles import (
    ANA,
    HERE,
    SCRIPT,
    SECRET,
    checked,
    copied,
    edit,
    make_bundle,
    note_at,
    private_key,
    report_of,
    small_ledger,
)
from tests.support.ledgers import append_each, open_ledger

END: Final = 14
Change = Callable[[bytes], bytes]

PART: Final = Scope(workspace=HERE, to_seq=END)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole bundle, one of a workspace, one of a memory, and one of an erased memory."""
    folder = tmp_path_factory.mktemp("bundles")
    ledger = small_ledger(folder / "ledger")
    make_bundle(ledger, folder / "whole", earlier=6)
    make_bundle(ledger, folder / "part", PART, earlier=6)
    make_bundle(ledger, folder / "memory", Scope(memory=ANA, to_seq=END))
    make_bundle(ledger, folder / "erased", Scope(memory=SECRET, to_seq=END))
    foreign = small_ledger(folder / "foreign-ledger", seed=100)
    make_bundle(foreign, folder / "foreign")
    tiny = open_ledger(folder / "tiny-ledger")
    append_each(tiny, "one", "two")
    make_bundle(tiny, folder / "tiny")
    for size in (5, 6, 14):
        (folder / f"note-{size}").write_bytes(note_at(ledger, size))
        (folder / f"other-{size}").write_bytes(note_at(foreign, size))
    (folder / "note-by-other").write_bytes(note_at(ledger, 6, key=2))
    (folder / "ahead").write_bytes(
        Signer(ledger.identity.origin, private_key())
        .sign(any_checkpoint(ledger.identity.origin, 99))
        .encode()
    )
    return folder


def any_checkpoint(origin: str, size: int) -> Checkpoint:
    return Checkpoint(origin, size, b"\1" * 32)


# ---------------------------------------------------------------------------- every byte


@pytest.mark.guarantee("G-AUDIT-2")
@pytest.mark.parametrize("name", ["whole", "part", "memory", "erased"])
def test_a_bundle_passes_and_says_what_is_proven(bundles: Path, name: str) -> None:
    verdict = checked(bundles / name)

    assert (verdict.status, verdict.problems) == (0, [])
    assert any("at position 14" in text for text in verdict.proven)


@pytest.mark.slow
@pytest.mark.guarantee("G-AUDIT-1")
@pytest.mark.parametrize("name", ["tiny", "erased"])
def test_no_flipped_byte_of_the_records_goes_unnoticed(
    bundles: Path, tmp_path: Path, name: str
) -> None:
    folder = copied(bundles / name, tmp_path / "b")
    path = folder / "records.jsonl"
    data = path.read_bytes()

    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)

        assert report_of(folder).problems_count, f"byte {at}"


@pytest.mark.slow
@pytest.mark.guarantee("G-AUDIT-1")
@pytest.mark.parametrize("file", ["proofs", "checkpoint", "public-key"], ids=str)
def test_no_flipped_byte_of_what_proves_the_records_goes_unnoticed(
    bundles: Path, tmp_path: Path, file: str
) -> None:
    folder = copied(bundles / "memory", tmp_path / "b")
    path = folder / file
    data = path.read_bytes()

    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)

        assert report_of(folder).problems_count, f"byte {at}"


@pytest.mark.slow
@pytest.mark.guarantee("G-AUDIT-1")
@pytest.mark.parametrize(("name", "file"), [("tiny", "records.jsonl"), ("memory", "proofs")])
def test_no_cut_goes_unnoticed(bundles: Path, tmp_path: Path, name: str, file: str) -> None:
    folder = copied(bundles / name, tmp_path / "b")
    path = folder / file
    data = path.read_bytes()

    for size in range(len(data)):
        path.write_bytes(data[:size])

        assert report_of(folder).problems_count, f"cut to {size}"


# ---------------------------------------------------------------------------- named faults


def line_of(data: bytes, seq: int) -> bytes:
    found = [
        line for line in data.splitlines(keepends=True) if line.startswith(b'{"h":{"seq":%d,' % seq)
    ]
    (line,) = found
    return line


def without(seq: int) -> Change:
    return lambda data: data.replace(line_of(data, seq), b"")


def twice(seq: int) -> Change:
    return lambda data: data.replace(line_of(data, seq), line_of(data, seq) * 2)


def swapped(first: int, second: int) -> Change:
    def change(data: bytes) -> bytes:
        one, two = line_of(data, first), line_of(data, second)
        return data.replace(one, b"@").replace(two, one).replace(b"@", two)

    return change


def replaced(seq: int, old: bytes, new: bytes) -> Change:
    def change(data: bytes) -> bytes:
        line = line_of(data, seq)
        assert old in line
        return data.replace(line, line.replace(old, new, 1))

    return change


def resealed(line: bytes, old: bytes, new: bytes) -> bytes:
    """Change a header or payload and make digest and commitment fit again."""
    match = re.fullmatch(rb'\{"h":(.*\}),"p":(.*),"d":"[0-9a-f]{64}"\}\n', line, re.DOTALL)
    assert match is not None
    head, body = match[1], match[2]
    body = body.replace(old, new, 1)
    old_commitment = re.search(rb'"pc":"([0-9a-f]{64})"', head)
    assert old_commitment is not None
    if body != b"null":
        head = head.replace(old_commitment[1], sha256(b"\x02" + body).hexdigest().encode())
    head = head.replace(old, new, 1)
    digest = sha256(b"\x00" + head).hexdigest().encode()
    return b'{"h":' + head + b',"p":' + body + b',"d":"' + digest + b'"}\n'


def rewritten(seq: int, old: bytes, new: bytes) -> Change:
    return lambda data: data.replace(line_of(data, seq), resealed(line_of(data, seq), old, new))


def emptied(seq: int) -> Change:
    def change(data: bytes) -> bytes:
        line = line_of(data, seq)
        start, stop = line.index(b'},"p":') + 6, line.rindex(b',"d":"')
        return data.replace(line, line[:start] + b"null" + line[stop:])

    return change


RECORD_FAULTS: Final = {
    "a changed byte of the text": (replaced(8, b"coffee", b"coffeE"), "commitment", 8),
    "a changed byte of the header": (replaced(8, b'"sub":"m', b'"sub":"n'), "digest", 8),
    "a changed actor": (replaced(8, b'"act":"a', b'"act":"b'), "digest", 8),
    "a changed digest": (replaced(8, b',"d":"', b',"d":"0'), "framing", 8),
    "a text rewritten with all its digests": (rewritten(8, b"coffee", b"cocoa!"), None, 8),
    "an added key": (replaced(8, b',"d":"', b',"x":1,"d":"'), "commitment", 8),
    "an added key at the end": (replaced(8, b'"}\n', b'","x":"1"}\n'), "added_key", 8),
    "a repeated key": (replaced(8, b'"}\n', b'","p":null}\n'), "repeated_key", 8),
    "a key added inside and resealed": (rewritten(8, b'"t":', b'"x":1,"t":'), "added_key", 8),
    "a key repeated inside and resealed": (
        rewritten(8, b'"content":', b'"content":"tea","content":'),
        "repeated_key",
        8,
    ),
    "a space between": (replaced(8, b',"p":', b', "p":'), "framing", 8),
    "a dropped record": (without(8), "missing", 8),
    "a repeated record": (twice(8), "order", 8),
    "two swapped records": (swapped(3, 8), "order", 3),
    "a payload that is missing": (emptied(8), "payload_missing", 8),
    "a dropped redaction": (without(10), "payload_missing", 5),
    "an emptied redaction": (emptied(10), "payload_missing", 10),
    "a blank line": (
        lambda data: data.replace(line_of(data, 8), b"\n" + line_of(data, 8)),
        "framing",
        0,
    ),
    "no JSON": (lambda data: data + b"no record\n", "framing", 0),
    "no end": (lambda data: data[:-1], "framing", 14),
    "bytes that are not UTF-8": (rewritten(8, b"coffee", b"\xff\xfe"), "json", 8),
    "a number that is none": (rewritten(8, b'"layer":"semantic"', b'"layer":NaN'), "json", 8),
    "a header of other types": (rewritten(8, b'"sp":3', b'"sp":"3"'), "header", 8),
    "a header without its subject": (rewritten(8, b'"sub":', b'"ses":'), "header", 8),
    "a time that is none": (rewritten(8, b'"t":"2', b'"t":"x'), "header", 8),
    "a payload that is a list": (
        lambda data: data.replace(
            line_of(data, 8), re.sub(rb'"p":.*,"d"', b'"p":[1],"d"', line_of(data, 8))
        ),
        "commitment",
        8,
    ),
}


@pytest.mark.guarantee("G-AUDIT-1")
@pytest.mark.parametrize("bundle", ["whole", "part"])
@pytest.mark.parametrize("fault", RECORD_FAULTS)
def test_a_fault_of_the_records_is_named_with_the_record(
    bundles: Path, tmp_path: Path, bundle: str, fault: str
) -> None:
    folder = copied(bundles / bundle, tmp_path / "b")
    change, kind, seq = RECORD_FAULTS[fault]
    edit(folder / "records.jsonl", change)

    verdict = checked(folder)

    assert verdict.status == 1
    expected = kind or ("foreign" if bundle == "part" else "chain")
    assert expected in verdict.kinds
    # Whoever made all of a record's digests fit is found out where the next record points to it.
    named = 9 if (kind, bundle) == (None, "whole") else seq
    assert named in verdict.names(expected), verdict.problems


def test_a_record_of_another_ledger_is_named(bundles: Path, tmp_path: Path) -> None:
    other = line_of((bundles / "foreign" / "records.jsonl").read_bytes(), 9)
    for bundle, kind in (("whole", "chain"), ("part", "foreign")):
        folder = copied(bundles / bundle, tmp_path / bundle)
        own = (folder / "records.jsonl").read_bytes()
        put = without(9)(own) if bundle == "whole" else own
        (folder / "records.jsonl").write_bytes(
            put.replace(line_of(own, 10), other + line_of(own, 10))
        )

        verdict = checked(folder)

        assert verdict.status == 1
        assert kind in verdict.kinds


def test_records_behind_the_signed_end_are_named(bundles: Path, tmp_path: Path) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    (folder / "checkpoint").write_bytes((bundles / "note-6").read_bytes())

    verdict = checked(folder)

    assert verdict.names("unsigned") == [7]


def test_a_gap_in_a_memorys_history_is_named_although_the_proofs_fit(
    bundles: Path, tmp_path: Path
) -> None:
    folder = copied(bundles / "memory", tmp_path / "b")
    edit(folder / "records.jsonl", without(8))
    edit(folder / "proofs", lambda data: data.replace(b"record 8 ", b"others 8 "))
    edit(folder / "summary.json", lambda data: data.replace(b'"records": 5', b'"records": 4'))

    verdict = checked(folder)

    assert verdict.kinds == ["history"]
    assert verdict.names("history") == [14]


PROOF_FAULTS: Final[dict[str, tuple[str, Change]]] = {
    "a changed proof": (
        "foreign",
        lambda data: re.sub(rb"(record 3 1 ).{8}", rb"\g<1>01234567", data),
    ),
    "a changed subtree": (
        "root",
        lambda data: re.sub(rb"(others 9 1 ).{8}", rb"\g<1>01234567", data),
    ),
    "a proof that is cut": ("proof", lambda data: b"".join(data.splitlines(keepends=True)[:-3])),
    "a proof that lacks a line": (
        "proof",
        lambda data: b"".join(
            line for line in data.splitlines(keepends=True) if b"others 9" not in line
        ),
    ),
    "a proof line twice": ("proof", lambda data: data.replace(b"record 3", b"record 2", 1)),
    "a subtree of three": ("proof", lambda data: data.replace(b"others 9 1 ", b"others 9 3 ")),
    "a record of two": ("proof", lambda data: data.replace(b"record 3 1 ", b"record 3 2 ")),
    "records beyond the end": ("proof", lambda data: data + b"others 15 2 " + b"0" * 64 + b"\n"),
    "no proof at all": ("proof", lambda _: b""),
    "a word more": ("proof", lambda data: data.replace(b"record 3 1", b"record 3 1 1")),
}


@pytest.mark.parametrize("fault", PROOF_FAULTS)
def test_a_fault_of_the_proofs_is_named(bundles: Path, tmp_path: Path, fault: str) -> None:
    folder = copied(bundles / "part", tmp_path / "b")
    kind, change = PROOF_FAULTS[fault]
    edit(folder / "proofs", change)

    verdict = checked(folder)

    assert verdict.status == 1
    assert kind in verdict.kinds, verdict.problems


def signed_by_another(folder: Path) -> None:
    """Let another key sign the bundle's own checkpoint, under the same name."""
    origin = (folder / "checkpoint").read_text().split("\n")[0]
    text, _, _ = (folder / "checkpoint").read_text().rpartition("\n\n")
    key = private_key(2)
    public = b"\x01" + key.public_key().public_bytes_raw()
    key_id = sha256(origin.encode() + b"\n" + public).digest()[:4]
    signature = base64.b64encode(key_id + key.sign(f"{text}\n".encode())).decode()
    (folder / "checkpoint").write_text(f"{text}\n\n\u2014 {origin} {signature}\n")
    (folder / "public-key").write_text(
        f"{origin}+{key_id.hex()}+{base64.b64encode(public).decode()}\n"
    )


def test_another_key_is_found_out_by_whoever_knows_the_right_one(
    bundles: Path, tmp_path: Path
) -> None:
    folder = copied(bundles / "memory", tmp_path / "b")
    right = (folder / "public-key").read_text().strip()
    signed_by_another(folder)

    assert checked(folder).status == 0  # it agrees with itself
    verdict = checked(folder, "--key", right)

    assert (verdict.status, verdict.kinds) == (1, ["key"])


def test_the_right_key_is_taken_as_a_text_and_as_a_file(bundles: Path) -> None:
    folder = bundles / "whole"
    key = (folder / "public-key").read_text().strip()

    for text in (key, str(folder / "public-key")):
        verdict = checked(folder, "--key", text)
        assert verdict.status == 0
        assert not any("--key" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        ("checkpoint", lambda data: data.replace(b"\n14\n", b"\n13\n"), "signature"),
        ("checkpoint", lambda data: data.replace(b"\n\n", b"\n"), "checkpoint"),
        ("checkpoint", lambda data: data.replace("\u2014".encode(), b"-"), "checkpoint"),
        ("checkpoint", lambda data: data[:-8], "checkpoint"),
        ("checkpoint", lambda _: b"\xff", "file"),
        ("public-key", lambda data: data.replace(b"+", b"-"), "key"),
        ("summary.json", lambda data: data.replace(b'"size": 14', b'"size": 15'), "summary"),
        ("summary.json", lambda data: data.replace(b'"records": 14', b'"records": 1'), "summary"),
        ("summary.json", lambda data: data.replace(b'"size"', b'"records"'), "repeated_key"),
        ("summary.json", lambda _: b"{", "json"),
    ],
)
def test_a_fault_of_the_small_files_is_named(
    bundles: Path, tmp_path: Path, name: str, change: Change, kind: str
) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    edit(folder / name, change)

    verdict = checked(folder)

    assert verdict.status == 1
    assert kind in verdict.kinds


def test_a_note_by_another_key_beside_the_right_one_is_passed_over(
    bundles: Path, tmp_path: Path
) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    edit(
        folder / "checkpoint", lambda data: data + b"\xe2\x80\x94 witness.example " + b"AAAAAAAA\n"
    )

    assert checked(folder).status == 0


# ---------------------------------------------------------------------------- comparing


@pytest.mark.parametrize("bundle", ["whole", "part"])
@pytest.mark.parametrize("note", ["note-6", "note-14"])
def test_a_checkpoint_kept_elsewhere_is_of_the_same_history(
    bundles: Path, bundle: str, note: str
) -> None:
    verdict = checked(bundles / bundle, "--checkpoint", str(bundles / note))

    assert verdict.status == 0
    assert any(text.startswith("the given checkpoint") for text in verdict.proven)


@pytest.mark.parametrize(
    ("bundle", "note", "status", "words"),
    [
        ("whole", "other-6", 1, "not signed by the key"),
        ("whole", "note-by-other", 1, "not signed by the key"),
        ("whole", "ahead", 2, "only an export that is newer"),
        ("memory", "note-5", 2, "holds no proof for the size 5"),
        ("whole", "missing", 2, "cannot be read"),
    ],
)
def test_a_checkpoint_that_cannot_be_compared_is_never_passed(
    bundles: Path, bundle: str, note: str, status: int, words: str
) -> None:
    verdict = checked(bundles / bundle, "--checkpoint", str(bundles / note))

    assert verdict.status == status
    assert words in json.dumps([verdict.problems, verdict.cannot_look])


@pytest.mark.parametrize("bundle", ["whole", "part"])
def test_a_history_that_was_written_anew_and_signed_again_does_not_extend_what_was_kept(
    bundles: Path, tmp_path: Path, bundle: str
) -> None:
    """Whoever has the key can sign another history; a checkpoint kept elsewhere shows it."""
    folder = bundles / bundle
    origin = (folder / "checkpoint").read_text().split("\n")[0]
    forged = Signer(origin, private_key()).sign(any_checkpoint(origin, 6)).encode()
    (tmp_path / "kept").write_bytes(forged)

    verdict = checked(folder, "--checkpoint", str(tmp_path / "kept"))

    assert (verdict.status, verdict.kinds) == (1, ["consistency"])


def test_a_checkpoint_of_another_ledger_by_the_same_key_is_named(
    bundles: Path, tmp_path: Path
) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    origin = (folder / "checkpoint").read_text().split("\n")[0]
    other = Signer(origin, private_key()).sign(any_checkpoint("mnemolog/other", 6)).encode()
    (folder / "earlier-checkpoint").write_bytes(other)

    verdict = checked(folder)

    assert (verdict.status, verdict.kinds) == (1, ["consistency"])


# ---------------------------------------------------------------------------- the program


@pytest.mark.parametrize(
    "missing", ["records.jsonl", "checkpoint", "public-key", "summary.json"], ids=str
)
def test_without_one_of_its_files_nothing_is_passed(
    bundles: Path, tmp_path: Path, missing: str
) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    (folder / missing).unlink()

    verdict = checked(folder)

    assert (verdict.status, missing in verdict.cannot_look) == (2, True)


def test_a_part_without_its_proofs_is_no_whole(bundles: Path, tmp_path: Path) -> None:
    folder = copied(bundles / "part", tmp_path / "b")
    (folder / "proofs").unlink()

    verdict = checked(folder)

    assert verdict.status == 1
    assert 9 in verdict.names("missing")


def test_a_bundle_of_a_later_form_is_not_judged(bundles: Path, tmp_path: Path) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    edit(folder / "summary.json", lambda data: data.replace(b'"format": 1', b'"format": 2'))

    assert checked(folder).status == 2


def said(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", *words],
        cwd=folder,
        env={"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_people_are_told_in_words(bundles: Path, tmp_path: Path) -> None:
    clean = said(bundles / "whole")
    folder = copied(bundles / "whole", tmp_path / "b")
    edit(folder / "records.jsonl", without(8))
    broken = said(folder)
    nothing = said(folder, str(tmp_path / "nothing"))

    assert clean.returncode == 0
    assert clean.stdout.endswith("all of it holds\n")
    assert 'redaction redactionaaaaaaa by "bob" at 2026-' in clean.stdout
    assert "1 payloads are erased; a redaction names each" in clean.stdout
    assert broken.returncode == 1
    assert "PROBLEM record 8: line 8: missing: record 8 is missing before it\n" in broken.stdout
    assert nothing.returncode == 2
    assert "could not be checked" in nothing.stderr


def test_very_many_problems_are_counted_and_the_first_are_named(
    bundles: Path, tmp_path: Path
) -> None:
    folder = copied(bundles / "whole", tmp_path / "b")
    edit(folder / "records.jsonl", lambda data: data + b"x\n" * 500)

    verdict = said(folder)

    assert verdict.returncode == 1
    assert verdict.stdout.count("PROBLEM") == 100
    assert "more\n" in verdict.stdout


def test_what_was_stored_cannot_steer_the_terminal() -> None:
    assert script.plain("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"


def test_progress_is_drawn_on_a_terminal_only(
    bundles: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "PROGRESS_RECORDS", 1)
    monkeypatch.setattr(sys, "argv", ["verify.py", str(bundles / "whole")])
    assert script.main() == 0
    silent = capsys.readouterr()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert script.main() == 0
    monkeypatch.setattr(sys, "argv", ["verify.py", str(bundles / "nothing"), "--json"])
    assert script.main() == 2

    drawn = capsys.readouterr()
    assert silent.err == ""
    assert "100 %" in drawn.err
    assert silent.out.endswith("all of it holds\n")


@pytest.mark.guarantee("G-AUDIT-1")
def test_it_needs_nothing_but_the_standard_library_of_an_old_python() -> None:
    text = SCRIPT.read_text("utf-8")

    tree = ast.parse(text, feature_version=(3, 8))

    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= set(sys.stdlib_module_names)


def test_ctrl_c_ends_it_in_a_line(
    bundles: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "check", interrupted)
    monkeypatch.setattr(sys, "argv", ["verify.py", str(bundles / "tiny")])

    assert script.main() == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "\ninterrupted: nothing is said of the bundle\n")
