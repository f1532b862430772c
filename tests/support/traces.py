"""The search for what must not be there: every file of a folder, segments inflated."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import zstandard


def traces_of(folder: Path, words: Iterable[str | bytes]) -> dict[str, list[str]]:
    """Return the files that hold a word, each with the words it holds; no store may be open.

    A word that is given as text is also looked for in other letter case.
    """
    wanted = {word if isinstance(word, bytes) else word.casefold().encode() for word in words}
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = content_of(path)
        folded = data.decode("utf-8", "replace").casefold().encode()
        held = sorted(
            word.decode(errors="replace") for word in wanted if word in data or word in folded
        )
        if held:
            found[str(path.relative_to(folder))] = held
    return found


def content_of(path: Path) -> bytes:
    """Return a file's bytes, inflated if it is a sealed segment."""
    data = path.read_bytes()
    match path.suffix:
        case ".zst":
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
        case ".gz":
            return gzip.decompress(data)
        case _:
            return data
