"""The clock: the only place that reads the time of day."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Whatever tells the time."""

    def now_us(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clock, as read: it may go back."""

    def now_us(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000
