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
        # Not the condition's own `with`, which is Python code and takes longer.
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self._waiting = False
        self._sleepers = 0

    def notify(self) -> None:
        """Has all that wait look again; with the lock held."""
        if self._sleepers:
            self._changed.notify_all()

    def wait_until(self, source: Source, met: Callable[[], bool], end: float) -> bool:
        """Reads the source until `met`, which is called with the lock held. False when the time is over.

        Looks once at least. Errors: those of the source.
        """
        last = False
        while True:
            # A signal may end this at any line, and must leave no thread that seems to wait for all.
            mine = False
            try:
                with self.lock:
                    if met():
                        return True
                    if not self._waiting or last:
                        if source.read():
                            self.notify()
                            if met():
                                return True
                        if last:
                            return False
                    if self._waiting:
                        last = not self._sleep(end)
                        continue
                    mine = self._waiting = True
                    position = source.position()
                source.wait(position, end)
                last = time.monotonic() >= end
            finally:
                if mine:
                    self._hand_over()

    def _hand_over(self) -> None:
        """Another thread takes over if this one has what it waited for."""
        with self.lock:
            self._waiting = False
            self.notify()

    def _sleep(self, end: float) -> bool:
        """Waits for `notify`. False when the time is over."""
        remaining = end - time.monotonic()
        self._sleepers += 1
        try:
            return remaining > 0 and self._changed.wait(remaining)
        finally:
            self._sleepers -= 1
