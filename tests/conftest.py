"""What every test shares."""

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.ledgers import close_opened
from tests.support.measured import is_unmeasured, unmeasured
from tests.support.store import Client, Home, home_at

# Two shared cores make time limits on one example a source of false alarms.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", parent=_PATIENT, max_examples=50)
settings.register_profile("ci", parent=_PATIENT, max_examples=200, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

_DESCRIPTORS = Path("/dev/fd")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    is_long = item.get_closest_marker("slow") is not None or is_unmeasured(item.path)
    with unmeasured() if is_long else nullcontext():
        return (yield)


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> Iterator[None]:
    """Fail a test that leaves files open: all tests run in one process, which has only so many."""
    before = set(_DESCRIPTORS.iterdir())
    yield
    close_opened()
    if len(list(_DESCRIPTORS.iterdir())) > len(before):
        gc.collect()
        after = set(_DESCRIPTORS.iterdir())
        left = sorted(str(path.resolve()) for path in after - before)
        assert len(after) <= len(before), f"left open: {left}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with home_at(tmp_path / "home") as home:
        yield home


@pytest.fixture
def client(home: Home) -> Client:
    return home.open()
