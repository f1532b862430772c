#!/usr/bin/env python3
"""Check an audit bundle of a mnemolog ledger: `python3 verify.py [FOLDER]`.

Needs Python 3.8 or newer and nothing else: no package, no network, no program. It reads the files
beside it (or in FOLDER) and changes none. VERIFY.md says what is checked and what is not proven.

Exit status: 0 all of it holds, 1 something does not and is named, 2 it could not be checked.

It is one long file, so that whoever was given it needs, and has to read, nothing else.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import re
import sys
from array import array
from bisect import bisect_left
from hashlib import sha256, sha512
from pathlib import Path
from typing import (
    IO,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    NoReturn,
    Optional,
    Set,
    Tuple,
)

CLEAN, PROBLEMS, COULD_NOT_LOOK, INTERRUPTED = 0, 1, 2, 130

RECORD_BYTES_MAX = 8 * 1024 * 1024
"""Longest line of a record, newline included."""

SMALL_FILE_BYTES_MAX = 1024 * 1024
"""Most that is read of a checkpoint or a key."""

SUMMARY_BYTES_MAX = 256 * 1024 * 1024

PROBLEMS_MAX = 100
"""Problems that are named; more are counted."""

PROGRESS_RECORDS = 5_000
"""Records between two looks at the progress."""

BUNDLE_FORMAT = 1

HEADER_TYPES: Dict[str, type] = {
    "seq": int,
    "g": int,
    "b": int,
    "n": int,
    "t": str,
    "type": str,
    "v": int,
    "ws": str,
    "sub": str,
    "sp": int,
    "act": str,
    "ses": str,
    "cause": str,
    "undo": int,
    "ik": str,
    "back": bool,
    "pc": str,
    "prev": str,
}
"""Every field that a header may have, and its type."""

HEADER_NEEDS = ("seq", "t", "type", "ws", "sub", "act", "pc", "prev")
NEVER_ERASED = ("memory_redacted", "redaction_completed")

OPEN, MIDDLE, DIGEST, CLOSE = b'{"h":', b'},"p":', b',"d":"', b'"}\n'
TAIL = len(DIGEST) + 64 + len(CLOSE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HEX_DIGEST = re.compile(r"[0-9a-f]{64}")
NOTE_END = re.compile("(?<=\n)\n(?:\u2014 [^\n]*\n)+")
SEQ_IN_LINE = re.compile(rb'\{"h":\{"seq":([1-9][0-9]{0,18}),')
PROOF_LINE = re.compile(r"(record|others) ([1-9][0-9]{0,18}) ([1-9][0-9]{0,18}) ([0-9a-f]{64})\n")


class CannotLookError(Exception):
    """The bundle cannot be checked at all."""


class FaultError(Exception):
    """Something is not what it should be.

    Attributes:
        kind: one stable word.
        detail: what was found.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


# ------------------------------------------------------------------ Ed25519, RFC 8032, section 5.1

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

Point = Tuple[int, int, int, int]
"""X, Y, Z, T: x = X/Z, y = Y/Z, x*y = T/Z."""

NEUTRAL: Point = (0, 1, 1, 0)


def point_add(a: Point, b: Point) -> Point:
    """Add two points of the curve (section 5.1.4)."""
    left = (a[1] - a[0]) * (b[1] - b[0]) % P
    right = (a[1] + a[0]) * (b[1] + b[0]) % P
    cross = 2 * D * a[3] * b[3] % P
    scale = 2 * a[2] * b[2] % P
    e, f, g, h = right - left, scale - cross, scale + cross, right + left
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def point_times(factor: int, point: Point) -> Point:
    """Multiply a point by a number."""
    result = NEUTRAL
    while factor:
        if factor & 1:
            result = point_add(result, point)
        point = point_add(point, point)
        factor >>= 1
    return result


def point_encode(point: Point) -> bytes:
    """Write a point as 32 bytes (section 5.1.2)."""
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def point_decode(data: bytes) -> Optional[Point]:
    """Read a point from 32 bytes (section 5.1.3); None if they are none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    above, below = (y * y - 1) % P, (D * y * y + 1) % P
    x = above * pow(below, 3, P) * pow(above * pow(below, 7, P), (P - 5) // 8, P) % P
    square = below * x * x % P
    if square == -above % P:
        x = x * ROOT_OF_MINUS_ONE % P
    elif square != above:
        return None
    if x == 0 and sign:
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


_BASE = point_decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
assert _BASE is not None
BASE: Point = _BASE


def signature_holds(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature is that of a message under a key (section 5.1.7)."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key = point_decode(public_key)
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + public_key + message).digest(), "little")
    minus_key = (P - key[0], key[1], key[2], P - key[3])
    wanted = point_add(point_times(scalar, BASE), point_times(challenge % ORDER, minus_key))
    return point_encode(wanted) == signature[:32]


# ------------------------------------------------------------------ notes, c2sp.org/signed-note


class Key(NamedTuple):
    """A public key and its name."""

    name: str
    id: bytes
    public: bytes


class Checkpoint(NamedTuple):
    """What a signed note says of a ledger: so many records have this root."""

    origin: str
    size: int
    root: bytes


def parse_key(text: str, place: str) -> Key:
    """Read a key in the form NAME+ID+BASE64."""
    parts = text.strip().split("+", 2)
    if len(parts) == 3:
        name, key_id, data = parts
        raw = from_base64(data)
        if raw is not None and len(raw) == 33 and raw[0] == 1 and name:
            expected = sha256(name.encode() + b"\n" + raw).digest()[:4]
            if key_id == expected.hex():
                return Key(name, expected, raw[1:])
    raise FaultError("key", place + " is no Ed25519 key in the form NAME+ID+BASE64")


def parse_note(text: str, key: Key, place: str) -> Checkpoint:
    """Read a checkpoint that the key has signed."""
    body, blank, signatures = text.rpartition("\n\n")
    if not blank or not signatures.endswith("\n"):
        raise FaultError("checkpoint", place + " is no signed note")
    body += "\n"
    held = False
    lines = signatures[:-1].split("\n")
    if len(set(lines)) != len(lines):
        raise FaultError("checkpoint", place + " has the same signature twice")
    for line in lines:
        parts = line.split(" ")
        raw = from_base64(parts[2]) if len(parts) == 3 and parts[0] == "\u2014" else None
        if raw is None:
            raise FaultError("checkpoint", place + " has a line that is no signature")
        if parts[1] == key.name and raw[:4] == key.id:
            if not signature_holds(key.public, body.encode(), raw[4:]):
                raise FaultError("signature", "the signature of " + place + " does not hold")
            held = True
    if not held:
        raise FaultError("signature", place + " is not signed by the key " + key.name)
    lines = body.split("\n")
    root = from_base64(lines[2]) if len(lines) > 3 else None
    if root is None or len(root) != 32 or not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
        raise FaultError("checkpoint", place + " names no size and root")
    return Checkpoint(lines[0], int(lines[1]), root)


def parse_notes(text: str, key: Key, origin: str, place: str) -> Dict[str, Checkpoint]:
    """Read what a file of checkpoints holds of one ledger, each by what it is called.

    Notes follow each other, as `mnemolog checkpoint publish-to` puts them, with nothing or empty
    lines between; those of other ledgers are passed over where one of this ledger is there.
    """
    notes, at = [], 0
    for end in NOTE_END.finditer(text):
        notes.append(text[at : end.end()].lstrip("\n"))
        at = end.end()
    if not notes or text[at:].strip("\n"):
        notes.append(text[at:])
    mine = [note for note in notes if note.startswith(origin + "\n")] or notes
    if len(mine) == 1:
        return {place: parse_note(mine[0], key, place)}
    names = ["%s no. %d" % (place, number) for number in range(1, len(mine) + 1)]
    return {name: parse_note(note, key, name) for name, note in zip(names, mine)}


def from_base64(text: str) -> Optional[bytes]:
    """Return what a text in base64 stands for; None if it is not the one way to write it."""
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


# ------------------------------------------------------------------ the tree, RFC 6962, section 2.1


class Tree:
    """The root over records in order, in the memory of its height."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: List[Tuple[int, bytes]] = []

    def add(self, digest: bytes, count: int = 1) -> bool:
        """Take the next `count` records, a power of two, under one digest; say if they may be."""
        if count & (count - 1) or self.size % count:
            return False
        self.size += count
        while self._peaks and self._peaks[-1][0] == count:
            digest = sha256(b"\x01" + self._peaks.pop()[1] + digest).digest()
            count *= 2
        self._peaks.append((count, digest))
        return True

    def root(self) -> bytes:
        """Return the root of what was taken."""
        if not self._peaks:
            return sha256(b"").digest()
        root = self._peaks[-1][1]
        for _, peak in reversed(self._peaks[:-1]):
            root = sha256(b"\x01" + peak + root).digest()
        return root


# ------------------------------------------------------------------ records


class Record(NamedTuple):
    """One line that is consistent in itself."""

    seq: int
    digest: bytes
    header: Dict[str, Any]
    payload: Any


def strict_json(raw: bytes, part: str) -> Any:  # noqa: ANN401 - JSON
    """Read JSON in which no key repeats and every number is one."""

    def unrepeated(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FaultError("repeated_key", part + " has the key " + json.dumps(twice) + " twice")
        return found

    def no_number(text: str) -> NoReturn:
        raise FaultError("json", part + " holds " + text + ", which is no JSON")

    try:
        return json.loads(
            raw.decode("utf-8"), object_pairs_hook=unrepeated, parse_constant=no_number
        )
    except (ValueError, RecursionError) as error:
        raise FaultError("json", part + " is no JSON: " + str(error)) from error


def open_record(line: bytes) -> Record:
    """Read a line of the ledger: exactly three parts that agree with their digests."""
    middle = line.find(MIDDLE) + 1
    if (
        not middle
        or not line.startswith(OPEN)
        or line[-TAIL : -TAIL + len(DIGEST)] != DIGEST
        or line[-len(CLOSE) :] != CLOSE
    ):
        raise why_not_framed(line)
    head, body = line[len(OPEN) : middle], line[middle + len(MIDDLE) - 1 : -TAIL]
    digest = sha256(b"\x00" + head).digest()
    if line[-len(CLOSE) - 64 : -len(CLOSE)] != digest.hex().encode():
        raise FaultError("digest", "the header is not what its digest says")
    header = strict_json(head, "the header")
    check_header(header)
    if body != b"null" and sha256(b"\x02" + body).hexdigest() != header["pc"]:
        raise FaultError("commitment", "the payload is not what the header commits to")
    payload = strict_json(body, "the payload")
    if payload is not None and not isinstance(payload, dict):
        raise FaultError("json", "the payload is no object")
    return Record(header["seq"], digest, header, payload)


def why_not_framed(line: bytes) -> FaultError:
    """Say in which way a line is not of three parts."""
    if not line.endswith(b"\n"):
        return FaultError("framing", "the line has no end, or is longer than a record may be")
    try:
        found = strict_json(line, "the line")
    except FaultError as fault:
        return fault if fault.kind == "repeated_key" else FaultError("framing", fault.detail)
    keys = list(found) if isinstance(found, dict) else []
    added = [json.dumps(key) for key in keys if key not in ("h", "p", "d")]
    if added:
        return FaultError("added_key", "the line has a key that no record has: " + ", ".join(added))
    return FaultError(
        "framing", "the line is not of the three parts h, p and d as they are written"
    )


def check_header(header: object) -> None:
    """Check that a header has the fields of one."""
    if not isinstance(header, dict):
        raise FaultError("header", "the header is no object")
    for name, value in header.items():
        if name not in HEADER_TYPES:
            raise FaultError("added_key", "the header has a key that none has: " + json.dumps(name))
        if type(value) is not HEADER_TYPES[name]:
            raise FaultError("header", "the field " + name + " is of another type")
    lacking = [name for name in HEADER_NEEDS if name not in header]
    if lacking:
        raise FaultError("header", "the header lacks " + ", ".join(lacking))
    if header["seq"] < 1 or not TIME.fullmatch(header["t"]):
        raise FaultError("header", "position or time of the header is none")


# ------------------------------------------------------------------ the bundle


class Report:
    """What was found."""

    def __init__(self) -> None:
        self.problems: List[Dict[str, Any]] = []
        self.problems_count = 0
        self.notes: List[str] = []
        self.proven: List[str] = []

    def add(self, kind: str, detail: str, *, record: int = 0, line: int = 0) -> None:
        """Note a problem."""
        self.problems_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            place = {"record": record, "line": line}
            found = {name: number for name, number in place.items() if number}
            self.problems.append({"kind": kind, **found, "detail": detail})

    def fault(self, fault: FaultError, *, record: int = 0, line: int = 0) -> None:
        """Note a problem that was raised."""
        self.add(fault.kind, fault.detail, record=record, line=line)


class Accounts:
    """Payloads that are missing, and the redactions that say why; some bytes for each."""

    def __init__(self) -> None:
        self._seqs = array("Q")
        self._digests = bytearray()
        self._named = bytearray()
        self.redactions: Dict[str, Dict[str, Any]] = {}

    def missing(self, seq: int, digest: bytes) -> None:
        """Note a payload that is not there."""
        self._seqs.append(seq)
        self._digests += digest
        self._named.append(0)

    def redaction(self, record: Record) -> None:
        """Take what a redaction names."""
        payload = record.payload
        targets = payload.get("targets")
        for target in targets if isinstance(targets, list) else ():
            seq, digest = (
                (target.get("seq"), target.get("digest")) if type(target) is dict else (0, 0)
            )
            at = bisect_left(self._seqs, seq) if type(seq) is int and 0 < seq < 2**63 else -1
            if (
                0 <= at < len(self._seqs)
                and self._seqs[at] == seq
                and self._digests[32 * at : 32 * at + 32].hex() == digest
            ):
                self._named[at] = 1
        name = str(payload.get("redaction"))
        said = self.redactions.setdefault(
            name, {"at": record.header["t"], "by": record.header["act"], "positions": []}
        )
        said["positions"].append(record.seq)

    def unnamed(self) -> Iterator[int]:
        """Yield the positions of payloads that are missing without a reason."""
        for at, named in enumerate(self._named):
            if not named:
                yield self._seqs[at]

    def count(self) -> int:
        """Return how many payloads are missing."""
        return len(self._seqs)


class Proof(NamedTuple):
    """A line of the proofs: so many records from `first` have this digest together."""

    is_record: bool
    first: int
    records: int
    digest: bytes


class Bundle:
    """The files of a bundle, and the way through them."""

    def __init__(self, folder: Path, report: Report) -> None:
        self.folder = folder
        self.report = report
        self.is_part = self.has("proofs")
        self.accounts = Accounts()
        self.agents: Dict[str, str] = {}
        self.records = 0
        self.bytes_read = 0
        self._seqs = array("Q")
        self._from = self._to = 0

    # -------------------------------------------------------------- small files

    def text(self, name: str, limit: int = SMALL_FILE_BYTES_MAX) -> str:
        """Read a small file."""
        return read_text(self.folder / name, limit)

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""
        return (self.folder / name).exists()

    def summary(self) -> Dict[str, Any]:
        """Read what the bundle says of itself."""
        try:
            found = strict_json(
                self.text("summary.json", SUMMARY_BYTES_MAX).encode(), "summary.json"
            )
        except FaultError as fault:
            self.report.fault(fault)
            return {}
        if not isinstance(found, dict) or found.get("format") != BUNDLE_FORMAT:
            raise CannotLookError("this verify.py does not know the form of this bundle")
        return found

    # -------------------------------------------------------------- records

    def lines(self, progress: Callable[[int], None]) -> Iterator[Tuple[int, bytes]]:
        """Yield every line of the records with its number."""
        with open_bytes(self.folder / "records.jsonl") as file:
            number = 0
            while True:
                line = file.readline(RECORD_BYTES_MAX + 1)
                if not line:
                    return
                number += 1
                self.bytes_read += len(line)
                if number % PROGRESS_RECORDS == 0:
                    progress(self.bytes_read)
                yield number, line

    def opened(
        self, progress: Callable[[int], None]
    ) -> Iterator[Tuple[int, int, Optional[Record]]]:
        """Yield line number, position and record of every line; None for one that is no record.

        A position that cannot be read is 0.
        """
        for number, line in self.lines(progress):
            try:
                record = open_record(line)
            except FaultError as fault:
                found = SEQ_IN_LINE.match(line)
                seq = int(found.group(1)) if found else 0
                self.report.fault(fault, record=seq, line=number)
                yield number, seq, None
                continue
            self.records += 1
            self.account(record, number)
            yield number, record.seq, record

    def account(self, record: Record, number: int) -> None:
        """Note what a record says of payloads, names and its subject's history."""
        kind, payload = record.header["type"], record.payload
        if payload is None:
            if kind in NEVER_ERASED:
                self.report.add(
                    "payload_missing",
                    "a " + kind + " is never erased",
                    record=record.seq,
                    line=number,
                )
            else:
                self.accounts.missing(record.seq, record.digest)
        elif kind == "memory_redacted":
            self.accounts.redaction(record)
        elif kind == "agent_registered":
            self.agents[record.header["sub"]] = str(payload.get("name"))

    def check_history(self, record: Record, number: int) -> None:
        """Check that what the record's subject did before is there too."""
        before = record.header.get("sp", 0)
        if self._from <= record.seq <= self._to and before >= self._from > 0:
            at = bisect_left(self._seqs, before)
            if at == len(self._seqs) or self._seqs[at] != before:
                self.report.add(
                    "history",
                    "record %d, which came before it in the same history, is missing" % before,
                    record=record.seq,
                    line=number,
                )
        self._seqs.append(record.seq)

    def check_whole(
        self, genesis: str, sizes: Set[int], size: int, progress: Callable[[int], None]
    ) -> Dict[int, bytes]:
        """Check that every record is there in its place; return the roots at some sizes."""
        tree, expected, prev = Tree(), 1, genesis
        roots = {0: tree.root()}
        for number, seq, record in self.opened(progress):
            if record is None:
                expected, prev = (seq or expected) + 1, ""
                continue
            if seq < expected:
                detail = "it stands a second time, or behind a later one"
                self.report.add("order", detail, record=seq, line=number)
                prev = ""
                continue
            if seq > expected:
                detail = span(expected, seq - 1) + " missing before it"
                self.report.add("missing", detail, record=expected, line=number)
            elif prev and record.header["prev"] != prev:
                self.report.add(
                    "chain", "it does not point to the record before it", record=seq, line=number
                )
            expected, prev = seq + 1, record.digest.hex()
            tree.add(record.digest)
            if tree.size in sizes:
                roots[tree.size] = tree.root()
        if expected <= size:
            self.report.add(
                "missing", span(expected, size) + " missing at the end", record=expected
            )
        elif expected > size + 1:
            detail = span(size + 1, expected - 1) + " behind the end that was signed"
            self.report.add("unsigned", detail, record=size + 1)
        return roots

    def check_part(
        self, sizes: Set[int], size: int, scope: Dict[str, Any], progress: Callable[[int], None]
    ) -> Dict[int, bytes]:
        """Check that every record is one that the proofs name; return the roots at some sizes."""
        first, last = scope.get("from"), scope.get("to")
        self._from = first if type(first) is int and first > 0 else 1
        self._to = last if type(last) is int and last > 0 else size
        tree = Tree()
        roots = {0: tree.root()}
        records = self.opened(progress)
        line = next(records, None)
        seen = 0
        for proof in self.proofs(tree, roots, sizes, size):
            # Whatever stands before the record that the proof names has no proof of its own.
            while line is not None and 0 < line[1] < proof.first:
                seen = self.unproven(line, seen)
                line = next(records, None)
            if line is None or line[1] != proof.first:
                if line is not None and line[1] == 0:
                    line = next(records, None)
                else:
                    self.report.add(
                        "missing", "the proofs name it and it is not there", record=proof.first
                    )
                continue
            number, seq, record = line
            if record is not None:
                if record.digest != proof.digest:
                    self.report.add(
                        "foreign",
                        "it is not the record that the proofs name",
                        record=seq,
                        line=number,
                    )
                self.check_history(record, number)
            seen, line = seq, next(records, None)
        while line is not None:
            seen = self.unproven(line, seen)
            line = next(records, None)
        return roots

    def unproven(self, line: Tuple[int, int, Optional[Record]], seen: int) -> int:
        """Say that no proof names a line; return the greatest position seen."""
        number, seq, record = line
        if record is not None:
            if seq <= seen:
                detail = "it stands a second time, or behind a later one"
                self.report.add("order", detail, record=seq, line=number)
            else:
                self.report.add("foreign", "no proof names it", record=seq, line=number)
        return max(seen, seq)

    def proofs(
        self, tree: Tree, roots: Dict[int, bytes], sizes: Set[int], size: int
    ) -> Iterator[Proof]:
        """Yield the proofs of records; note the roots at some sizes on the way."""
        with open_bytes(self.folder / "proofs") as file:
            number = 0
            while True:
                raw = file.readline(200)
                if not raw:
                    break
                number += 1
                found = PROOF_LINE.fullmatch(raw.decode("utf-8", "replace"))
                if found is None:
                    self.report.add("proof", "line %d of the proofs is none" % number)
                    return
                kind, first, count, digest = found.groups()
                proof = Proof(kind == "record", int(first), int(count), bytes.fromhex(digest))
                if proof.first != tree.size + 1:
                    self.gap(tree.size + 1, proof.first - 1, number)
                    return
                fits = not proof.is_record or proof.records == 1
                if not fits or not tree.add(proof.digest, proof.records) or tree.size > size:
                    self.report.add(
                        "proof", "line %d of the proofs is no part of the tree" % number
                    )
                    return
                if tree.size in sizes:
                    roots[tree.size] = tree.root()
                if proof.is_record:
                    yield proof
        if tree.size < size:
            self.gap(tree.size + 1, size, number + 1)

    def gap(self, first: int, last: int, number: int) -> None:
        """Say that proofs are cut."""
        detail = "the proofs are not in order"
        if first <= last:
            detail = "the proofs are cut: " + span(first, last) + " neither shown nor proven"
        self.report.add("proof", "%s (line %d)" % (detail, number), record=min(first, max(last, 1)))

    def check_accounts(self) -> None:
        """Check that a redaction names every payload that is missing."""
        for seq in self.accounts.unnamed():
            self.report.add(
                "payload_missing", "its payload is missing and no redaction names it", record=seq
            )


def span(first: int, last: int) -> str:
    """Name records from one position to another."""
    return "record %d is" % first if first == last else "records %d to %d are" % (first, last)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file of the bundle."""
    try:
        return path.open("rb")
    except OSError as error:
        raise CannotLookError("%s cannot be read: %s" % (path.name, error.strerror)) from error


def read_text(path: Path, limit: int = SMALL_FILE_BYTES_MAX) -> str:
    """Read a file of text."""
    with open_bytes(path) as file:
        try:
            raw = file.read(limit + 1)
        except OSError as error:
            raise CannotLookError("%s cannot be read: %s" % (path.name, error.strerror)) from error
    if len(raw) > limit:
        raise CannotLookError(path.name + " is too long")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FaultError("file", path.name + " is no text in UTF-8") from error


# ------------------------------------------------------------------ the check


class Wanted(NamedTuple):
    """What the bundle is to be compared with."""

    key: str
    checkpoint: str


class Signed(NamedTuple):
    """What was signed, and by which key."""

    key: Key
    checkpoint: Checkpoint
    others: Dict[str, Checkpoint]
    """Further checkpoints of the same ledger, by what they are called."""


def check(folder: Path, wanted: Wanted, report: Report, progress: Callable[[int], None]) -> None:
    """Check a bundle."""
    bundle = Bundle(folder, report)
    summary = bundle.summary()
    key = the_key(bundle, wanted.key)
    checkpoint = parse_note(bundle.text("checkpoint"), key, "checkpoint")
    others: Dict[str, Checkpoint] = {}
    if bundle.has("earlier-checkpoint"):
        text, name = bundle.text("earlier-checkpoint"), "the earlier checkpoint"
        others[name] = parse_note(text, key, name)
    if wanted.checkpoint:
        text, name = read_text(Path(wanted.checkpoint)), "the given checkpoint"
        others.update(parse_notes(text, key, checkpoint.origin, name))
    signed = Signed(key, checkpoint, others)
    sizes = {checkpoint.size, *(other.size for other in others.values())}
    if bundle.is_part:
        scope = summary.get("scope")
        scope = scope if isinstance(scope, dict) else {}
        roots = bundle.check_part(sizes, checkpoint.size, scope, progress)
    else:
        ledger = checkpoint.origin.rpartition("/")[2]
        genesis = sha256(b"\x03" + ledger.encode()).hexdigest()
        roots = bundle.check_whole(genesis, sizes, checkpoint.size, progress)
    bundle.check_accounts()
    check_roots(report, signed, roots)
    check_summary(report, summary, bundle, checkpoint)
    if not report.problems_count:
        say_what_is_proven(report, bundle, signed, wanted)


def the_key(bundle: Bundle, given: str) -> Key:
    """Return the key to check with: the given one, else the bundle's own."""
    text = bundle.text("public-key")
    own = parse_key(text, "public-key")
    if text != text.strip() + "\n":
        raise FaultError("key", "public-key is not one line")
    if not given:
        return own
    key = parse_key(given if "+" in given else read_text(Path(given)), "the given key")
    if key != own:
        raise FaultError("key", "the bundle's public key is not the given one")
    return key


def check_roots(report: Report, signed: Signed, roots: Dict[int, bytes]) -> None:
    """Compare the roots that came out with those that were signed."""
    checkpoint = signed.checkpoint
    if roots.get(checkpoint.size) == checkpoint.root:
        pass
    elif checkpoint.size in roots:
        report.add("root", "what is here does not lead to the root that was signed")
    elif not report.problems_count:
        report.add("root", "what is here does not reach the size that was signed")
    for name, other in signed.others.items():
        if other.origin != checkpoint.origin:
            report.add("consistency", name + " is of another ledger: " + other.origin)
        elif other.size in roots:
            if roots[other.size] != other.root:
                detail = name + " was signed over other records: the first %d are not the same"
                report.add("consistency", detail % other.size)
        elif other.size > checkpoint.size:
            raise CannotLookError(
                "%s covers %d records and this bundle %d; only an export that is newer than it can "
                "be compared" % (name, other.size, checkpoint.size)
            )
        elif not report.problems_count:
            raise CannotLookError(
                "this bundle shows a part of the ledger and holds no proof for the size %d of %s; "
                "ask for one made with --checkpoint, or for the whole" % (other.size, name)
            )


def check_summary(
    report: Report, summary: Dict[str, Any], bundle: Bundle, checkpoint: Checkpoint
) -> None:
    """Compare what the bundle says of itself, and nobody signed, with what it is."""
    if not summary:
        return
    said = {
        "ledger": checkpoint.origin.rpartition("/")[2],
        "size": checkpoint.size,
        "records": bundle.records,
        "is_whole": not bundle.is_part,
        "redacted_records": bundle.accounts.count(),
    }
    for name, found in said.items():
        if type(summary.get(name)) is not type(found) or summary.get(name) != found:
            detail = "summary.json says %s %s and it is %s"
            report.add("summary", detail % (name, json.dumps(summary.get(name)), json.dumps(found)))
    if summary.get("earlier_checkpoint") is not None and not bundle.has("earlier-checkpoint"):
        report.add("summary", "summary.json names an earlier checkpoint, and none is here")
    entries = summary.get("redactions")
    entries = entries if isinstance(entries, list) else []
    told = {str(each.get("redaction")): each for each in entries if isinstance(each, dict)}
    for name, of_it in bundle.accounts.redactions.items():
        by = bundle.agents.get(of_it["by"], of_it["by"])
        right = {"by": by, "at": of_it["at"], "positions": of_it["positions"]}
        entry = told.get(name, {})
        if {field: entry.get(field) for field in right} != right:
            detail = "summary.json does not say rightly when and by whom redaction %s was"
            report.add("summary", detail % name)


def say_what_is_proven(report: Report, bundle: Bundle, signed: Signed, wanted: Wanted) -> None:
    """Say in words what holds."""
    checkpoint = signed.checkpoint
    part = "a part" if bundle.is_part else "all"
    proven = (bundle.records, part, checkpoint.origin, checkpoint.size)
    report.proven.append("%d records, %s of the ledger %s at position %d" % proven)
    whose = "" if wanted.key else " (the bundle's own)"
    report.proven.append("signed by the key " + signed.key.name + whose)
    report.proven += [
        "%s (position %d) is of the same history" % (name, other.size)
        for name, other in signed.others.items()
    ]
    for name, said in sorted(bundle.accounts.redactions.items()):
        by = bundle.agents.get(said["by"], said["by"])
        report.notes.append("redaction %s by %s at %s" % (name, json.dumps(by), said["at"]))
    if bundle.accounts.count():
        detail = "%d payloads are erased; a redaction names each"
        report.notes.append(detail % bundle.accounts.count())
    if not wanted.key:
        report.notes.append("compare the public key with one that you got elsewhere: --key")
    if not wanted.checkpoint:
        report.notes.append("compare with a checkpoint that you got elsewhere: --checkpoint")


# ------------------------------------------------------------------ the program


def plain(text: str) -> str:
    """Return a text that cannot steer a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def show(report: Report) -> None:
    """Print what was found, for people."""
    for problem in report.problems:
        place = "".join(
            "%s %d: " % (name, problem[name]) for name in ("record", "line") if name in problem
        )
        print(plain("PROBLEM %s%s: %s" % (place, problem["kind"], problem["detail"])))
    if report.problems_count > len(report.problems):
        print("... and %d more" % (report.problems_count - len(report.problems)))
    for text in report.proven:
        print(plain("proven: " + text))
    for text in report.notes:
        print(plain("note: " + text))
    print("%d problems" % report.problems_count if report.problems_count else "all of it holds")


def progress_of(folder: Path) -> Callable[[int], None]:
    """Return what shows the progress on a terminal."""
    if not sys.stderr.isatty():
        return lambda _done: None
    try:
        total = max((folder / "records.jsonl").stat().st_size, 1)
    except OSError:
        total = 1
    return lambda done: print(
        "\r%3d %%" % (100 * done // total), end="", file=sys.stderr, flush=True
    )


def main() -> int:
    """Check the bundle that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Check an audit bundle of a mnemolog ledger.")
    own = Path(__file__).resolve().parent
    parser.add_argument("folder", nargs="?", type=Path, default=own, help="default: where this is")
    parser.add_argument("--key", default="", help="the public key you trust, or a file with it")
    parser.add_argument("--checkpoint", default="", help="a file with a checkpoint got elsewhere")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args()
    report, status, why = Report(), CLEAN, ""
    progress = progress_of(given.folder)
    try:
        check(given.folder, Wanted(given.key, given.checkpoint), report, progress)
    except FaultError as fault:
        report.fault(fault)
    except (CannotLookError, OSError) as error:
        status, why = COULD_NOT_LOOK, str(error)
    except KeyboardInterrupt:
        print("\ninterrupted: nothing is said of the bundle", file=sys.stderr)
        return INTERRUPTED
    if sys.stderr.isatty():
        print("\r     \r", end="", file=sys.stderr)
    if report.problems_count:
        status = PROBLEMS
    if given.json:
        print(json.dumps({"status": status, "cannot_look": why, **vars(report)}))
        return status
    if status != COULD_NOT_LOOK:
        show(report)
    if why:
        print(plain("could not be checked: " + why), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
