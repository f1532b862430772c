"""The search for what must not be there: every file of a folder, segments inflated."""

import gzip
import json
import subprocess
import sys
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


def traces_beside(folder: Path, words: Iterable[str]) -> dict[str, list[str]]:
    """Search as `traces_of` does, by another process: stores of this one may be open."""
    command = [sys.executable, "-m", "tests.support.traces", str(folder), *words]
    done = subprocess.run(command, check=True, capture_output=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def parts_of(word: str, length: int = 5) -> list[str]:
    """Return every piece of a word that has so many characters."""
    return [word[start : start + length] for start in range(len(word) - length + 1)]


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


if __name__ == "__main__":
    sys.stdout.write(json.dumps(traces_of(Path(sys.argv[1]), sys.argv[2:])))
