"""Which tests the coverage is measured in.

Cases, contracts, laws and crashes run the whole program again and again, mostly in processes of its
own; measuring makes that more than twice as long. Every line is to be reached by the short tests
of its own package, so that a failure says where it is.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]

UNMEASURED: Final = ("cases", "contracts", "crash", "properties")
"""Folders of tests, besides whatever is marked as slow."""


def is_unmeasured(path: Path) -> bool:
    """Say whether a test file lies in a folder that is not measured."""
    return path.relative_to(TESTS).parts[0] in UNMEASURED


@contextmanager
def unmeasured() -> Iterator[None]:
    """Measure nothing of the block and of the processes it starts."""
    names = [name for name in os.environ if name.startswith("COVERAGE_PROCESS")]
    kept = {name: os.environ.pop(name) for name in names}
    # Not `Coverage.stop`: that opens the file of figures, and a process forked later hangs on it.
    trace, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(of_threads)
        sys.settrace(trace)
        os.environ.update(kept)
