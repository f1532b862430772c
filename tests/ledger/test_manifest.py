"""The manifest: which segments are sealed."""

from hashlib import sha256

import pytest
from msgspec.structs import replace

from ledger import LedgerDamagedError
from ledger.codec import CodecError, compress
from ledger.manifest import (
    Manifest,
    SealedSegment,
    decode_manifest,
    encode_manifest,
    new_manifest,
)


def entry(first: int, data: bytes = b"", **fields: object) -> SealedSegment:
    made = SealedSegment(
        name=f"{first:020d}.g0.jsonl.zst",
        gen=0,
        first=first,
        last=first,
        prev="",
        digest="",
        count=1,
        raw_bytes=3,
        file_bytes=len(data),
        sha256=sha256(data).hexdigest(),
    )
    return replace(made, **fields)


def test_entries_stay_in_order_and_a_new_generation_replaces_the_old() -> None:
    manifest = new_manifest("l").with_segment(entry(5)).with_segment(entry(1))
    again = entry(5, gen=1, name=f"{5:020d}.g1.jsonl.gz")

    manifest = manifest.with_segment(again)

    assert manifest.segments == (entry(1), again)
    assert again.codec == "gz"
    assert decode_manifest(encode_manifest(manifest), ledger="l") == manifest


@pytest.mark.parametrize(
    "manifest",
    [
        Manifest(version=2, ledger="l"),
        Manifest(version=1, ledger="other"),
        Manifest(version=1, ledger="l", segments=(entry(1, gen=1),)),
        Manifest(version=1, ledger="l", segments=(entry(1, name="../../secret.zst"),)),
    ],
)
def test_a_manifest_that_belongs_elsewhere_is_damage(manifest: Manifest) -> None:
    with pytest.raises(LedgerDamagedError, match=r"MANIFEST\.json"):
        decode_manifest(encode_manifest(manifest), ledger="l")


def test_a_sealed_file_must_be_the_one_that_was_sealed() -> None:
    data = compress(b"abc", "zst")
    sealed = entry(1, data)

    assert sealed.open(data) == b"abc"
    for bad in (data[:-1], data + b"x", data[:-1] + b"x"):
        with pytest.raises(CodecError):
            sealed.open(bad)
    with pytest.raises(CodecError):
        replace(sealed, raw_bytes=4).open(data)
