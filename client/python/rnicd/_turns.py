"""Threads that wait for what the daemon brings: one of them waits for all, the others for what it finds."""

from __future__ import annotations

import threading
import time
from typing import Callable, Protocol


class Source(Protocol):
    """Where something comes from: a ring, a mapped queue, or calls."""

    def position(self) -> int:
        """What `wait` is given; with the lock held."""

    def wait(self, position: int, end: float) -> None:
        """Waits until there may be something after `position`, at most until `end`; without the lock."""

    def read(self) -> bool:
        """Takes what there is, and says whether there was anything; with the lock held."""


class Turns:
    """The lock of one source. Threads: safe."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self._waiting = False

    def wait_until(self, source: Source, met: Callable[[], bool], end: float) -> bool:
        """Reads the source until `met`, which is called with the lock held. False when the time is over.

        Looks once at least. Errors: those of the source.
        """
        last = False
        while True:
            with self.changed:
                if met():
                    return True
                if not self._waiting or last:
                    if source.read():
                        self.changed.notify_all()
                        if met():
                            return True
                    if last:
                        return False
                remaining = end - time.monotonic()
                if self._waiting:
                    last = remaining <= 0 or not self.changed.wait(remaining)
                    continue
                self._waiting = True
                position = source.position()
            try:
                source.wait(position, end)
            finally:
                with self.changed:
                    self._waiting = False
                    # Another thread takes over if this one has what it waited for.
                    self.changed.notify_all()
            last = time.monotonic() >= end
