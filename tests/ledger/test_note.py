"""Signed notes: the forms of C2SP, and that nothing altered passes."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import LedgerReadOnlyError, LedgerUnreadableError, LedgerWriteError, NoteError
from ledger.keys import KEY_NAME, ensure_signer, read_signer
from ledger.merkle import EMPTY_ROOT
from ledger.note import (
    NOTE_BYTES_MAX,
    SIZE_MAX,
    Checkpoint,
    Note,
    Signature,
    Signer,
    VerifierKey,
    from_base64,
    parse_key,
    parse_note,
    to_base64,
)
from tests.support.ledgers import OrderedFiles, open_ledger

ORIGIN = "mnemolog/aaaaaaaaaaaaaaab"
ROOT = bytes(range(32))
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SIGNER = Signer(ORIGIN, PRIVATE)
NOTE = SIGNER.sign(Checkpoint(ORIGIN, 1204, ROOT))


# ---------------------------------------------------------------------------- forms


def test_a_checkpoint_reads_as_the_format_says() -> None:
    text, gap, signature = NOTE.encode().decode().partition("\n\n")
    assert text.split("\n") == [ORIGIN, "1204", to_base64(ROOT)]
    assert gap
    dash, name, encoded = signature.removesuffix("\n").split(" ")
    assert (dash, name) == ("—", ORIGIN)
    content = from_base64(encoded)
    assert content is not None
    assert content[:4] == SIGNER.key.key_id
    assert len(content) == 4 + 64


def test_a_verifier_key_in_public_use_has_the_hash_that_is_computed_here() -> None:
    # The key of the Go checksum database, as its clients have it built in.
    text = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
    key = parse_key(text)
    assert key.name == "sum.golang.org"
    assert key.key_id.hex() == "033de0ae"
    assert key.text == text


def test_openssl_agrees_with_the_signature(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to ask")
    public = PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "pub.pem").write_bytes(public)
    (tmp_path / "text").write_text(NOTE.text)
    (tmp_path / "sig").write_bytes(NOTE.signatures[0].value)
    command = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", "pub.pem", "-rawin"]
    command += ["-in", "text", "-sigfile", "sig"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


# ---------------------------------------------------------------------------- laws

names = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="+"), min_size=1)
digests = st.binary(min_size=32, max_size=32)


@given(names, st.integers(0, SIZE_MAX), digests)
def test_what_is_signed_is_read_and_judged_good(name: str, size: int, root: bytes) -> None:
    signer = Signer(name, PRIVATE)
    checkpoint = Checkpoint(name, size, root)
    note = parse_note(signer.sign(checkpoint).encode())
    assert note.checkpoint() == checkpoint
    assert signer.key.judge(note) == "good"
    assert parse_key(signer.key.text) == signer.key


@given(st.integers(0, len(NOTE.encode()) - 1), st.integers(1, 255))
def test_no_changed_byte_passes(at: int, change: int) -> None:
    data = bytearray(NOTE.encode())
    data[at] ^= change
    try:
        note = parse_note(bytes(data))
    except NoteError:
        return
    assert SIGNER.key.judge(note) != "good"


@given(st.integers(0, len(NOTE.encode()) - 1))
def test_no_part_of_a_note_passes(length: int) -> None:
    with pytest.raises(NoteError):
        parse_note(NOTE.encode()[:length])


@given(st.binary(max_size=300))
def test_other_bytes_are_refused_and_nothing_else_happens(data: bytes) -> None:
    with pytest.raises(NoteError):
        parse_note(data)


@given(st.binary(max_size=100))
def test_base64_has_one_form(data: bytes) -> None:
    assert from_base64(to_base64(data)) == data
    assert from_base64(to_base64(data) + "\n") is None


# ---------------------------------------------------------------------------- signatures


def test_signatures_of_others_are_passed_over() -> None:
    witness = Signer("witness.example/w", Ed25519PrivateKey.generate())
    foreign = Signature(ORIGIN, b"\0\0\0\0", b"of another kind")
    signed = witness.sign(NOTE.checkpoint()).signatures + NOTE.signatures
    note = parse_note(Note(NOTE.text, (*signed, foreign)).encode())
    assert SIGNER.key.judge(note) == "good"
    assert witness.key.judge(note) == "good"
    assert Signer(ORIGIN, Ed25519PrivateKey.generate()).key.judge(note) == "unsigned"


def test_one_bad_signature_of_a_known_key_spoils_the_note() -> None:
    (good,) = NOTE.signatures
    bad = Signature(good.name, good.key_id, bytes(64))
    assert SIGNER.key.judge(Note(NOTE.text, (good, bad))) == "bad"


def test_a_key_with_the_same_id_by_accident_is_found_out() -> None:
    (good,) = NOTE.signatures
    other = Ed25519PrivateKey.generate().sign(NOTE.text.encode())
    assert SIGNER.key.judge(Note(NOTE.text, (Signature(ORIGIN, good.key_id, other),))) == "bad"


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "signature lines"),
        (b"text\n", "signature lines"),
        (b"\n\n\xe2\x80\x94 name AAAAAAA=\n", "signature lines"),
        (b"text\n\n\xe2\x80\x94 name AAAAAAA=", "signature lines"),
        (b"text\n\n- name AAAAAAA=\n", "a signature line"),
        (b"text\n\n\xe2\x80\x94 name AAAA\n", "a signature line"),
        (b"text\n\n\xe2\x80\x94 name AAAAA\n", "a signature line"),
        (b"text\n\n\xe2\x80\x94 name AAAAAAB=\n", "a signature line"),
        (b"text\n\n\xe2\x80\x94 na+me AAAAAAA=\n", "no key name"),
        (b"text\n\n\xe2\x80\x94  AAAAAAA=\n", "no key name"),
        (b"one\ttwo\n\n\xe2\x80\x94 name AAAAAAA=\n", "control characters"),
        (b"\xff\n\n\xe2\x80\x94 name AAAAAAA=\n", "UTF-8"),
        (b"a" * (NOTE_BYTES_MAX + 1), "accepted: up to 65536"),
    ],
)
def test_what_is_no_note_is_refused(data: bytes, match: str) -> None:
    with pytest.raises(NoteError, match=match):
        parse_note(data)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (f"{ORIGIN}\n5\n", "a line each"),
        (f"{ORIGIN}\n\n{to_base64(ROOT)}\n", "a line each"),
        (f"{ORIGIN}\n05\n{to_base64(ROOT)}\n", "size"),
        (f"{ORIGIN}\n-5\n{to_base64(ROOT)}\n", "size"),
        (f"{ORIGIN}\n٥\n{to_base64(ROOT)}\n", "size"),
        (f"{ORIGIN}\n{SIZE_MAX + 1}\n{to_base64(ROOT)}\n", "size"),
        (f"{ORIGIN}\n{'9' * 5000}\n{to_base64(ROOT)}\n", "size"),
        (f"{ORIGIN}\n5\n{to_base64(ROOT[1:])}\n", "root"),
        (f"{ORIGIN}\n5\nnone\x00\n", "root"),
    ],
)
def test_a_text_that_is_no_checkpoint_is_refused(text: str, match: str) -> None:
    with pytest.raises(NoteError, match=match):
        Note(text, NOTE.signatures).checkpoint()


def test_further_lines_of_a_checkpoint_are_signed_and_passed_over() -> None:
    note = Note(f"{NOTE.text}more\n", NOTE.signatures)
    assert note.checkpoint() == NOTE.checkpoint()
    assert SIGNER.key.judge(note) == "bad"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no key name"),
        ("na me+00000000+AA==", "no key name"),
        ("name", "no verifier key"),
        ("name+00000000+?", "no verifier key"),
        ("name+00000000+AQ==", "no verifier key"),
        (f"name+00000000+{to_base64(bytes(33))}", "no verifier key"),
        (f"name+00000000+{to_base64(bytes([1]) + bytes(32))}", "hash is '00000000', not"),
    ],
)
def test_what_is_no_verifier_key_is_refused(text: str, match: str) -> None:
    with pytest.raises(NoteError, match=match):
        parse_key(text)


def test_a_signer_needs_a_name() -> None:
    with pytest.raises(NoteError, match="no key name"):
        Signer("a b", PRIVATE)


def test_keys_of_two_names_are_two_keys() -> None:
    public = SIGNER.key.public
    assert VerifierKey("a", public).key_id != VerifierKey("b", public).key_id


# ---------------------------------------------------------------------------- the key's file


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / KEY_NAME
    ledger = open_ledger(tmp_path / "ledger")
    assert read_signer(path, ORIGIN) is None
    made = ensure_signer(ledger, path, lock_timeout_s=1.0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.key.name == ledger.identity.origin
    again = ensure_signer(ledger, path, lock_timeout_s=0.0)
    assert again.key == made.key
    assert again.key.judge(made.sign(Checkpoint(ORIGIN, 0, EMPTY_ROOT))) == "good"


def test_two_that_make_the_key_at_once_use_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / KEY_NAME
    ledger = open_ledger(tmp_path / "ledger")
    ensure_signer(open_ledger(tmp_path / "ledger"), path, lock_timeout_s=1.0)
    looks: list[Path] = []

    def late(path: Path, origin: str) -> Signer | None:
        looks.append(path)
        return None if len(looks) == 1 else read_signer(path, origin)

    monkeypatch.setattr("ledger.keys.read_signer", late)
    key = ensure_signer(ledger, path, lock_timeout_s=1.0).key
    assert read_signer(path, ledger.identity.origin).key == key  # type: ignore[union-attr]


def test_a_key_that_openssl_would_write_is_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.pem"
    path.write_bytes(PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    signer = read_signer(path, ORIGIN)
    assert signer is not None
    assert signer.key == SIGNER.key


def test_a_file_that_holds_no_usable_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    locked = PRIVATE.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
    )
    other = generate_private_key(SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for data, match in ((b"", "can be used"), (locked, "can be used"), (other, "another kind")):
        path.write_bytes(data)
        with pytest.raises(NoteError, match=match):
            read_signer(path, ORIGIN)


def test_a_key_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreadableError):
        read_signer(tmp_path, ORIGIN)


def test_a_key_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "ledger", files=files)
    files.fail("rename", 28)
    with pytest.raises(LedgerWriteError, match="disk_full"):
        ensure_signer(ledger, tmp_path / KEY_NAME, lock_timeout_s=1.0)
    assert not (tmp_path / KEY_NAME).exists()


def test_a_store_that_cannot_be_written_gets_no_key(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    ledger.refusal = "read_only"
    with pytest.raises(LedgerReadOnlyError):
        ensure_signer(ledger, tmp_path / KEY_NAME, lock_timeout_s=1.0)
