"""The Ed25519 of verify.py: against the standard's vectors and against a library."""

from typing import Final

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from server.bundle_files.verify import ORDER, signature_holds

VECTORS: Final = (
    # RFC 8032, section 7.1, tests 1 to 3: public key, message, signature.
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
)


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_the_signatures_of_the_standard_hold(public: str, message: str, signature: str) -> None:
    assert signature_holds(bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature))


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.integers(0, 511))
def test_signatures_hold_for_their_message_and_for_no_other(
    seed: bytes, message: bytes, bit: int
) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    flipped = bytearray(signature)
    flipped[bit // 8] ^= 1 << bit % 8

    assert signature_holds(public, message, signature)
    assert not signature_holds(public, message, bytes(flipped))
    assert not signature_holds(public, message + b"x", signature)


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
def test_keys_and_signatures_that_are_none_are_refused_as_the_library_refuses_them(
    public: bytes, signature: bytes
) -> None:
    def by_library() -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, b"x")
        except InvalidSignature:
            return False
        return True

    assert signature_holds(public, b"x", signature) == by_library()


ODD_KEYS: Final = (
    b"",
    b"\xff" * 32,  # y is not below the prime
    (1).to_bytes(32, "little")[:31] + b"\x80",  # x is 0 with a sign
    (2).to_bytes(32, "little"),  # on no curve
)


@pytest.mark.parametrize("public", ODD_KEYS, ids=repr)
def test_bytes_that_are_no_point_are_no_key(public: bytes) -> None:
    assert not signature_holds(public, b"x", b"\0" * 64)


def test_a_scalar_that_was_made_greater_is_refused() -> None:
    public, message, signature = (bytes.fromhex(part) for part in VECTORS[1])
    greater = int.from_bytes(signature[32:], "little") + ORDER

    assert not signature_holds(public, message, signature[:32] + greater.to_bytes(32, "little"))
