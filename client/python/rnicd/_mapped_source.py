"""Waiting for the completions of a mapped queue, for the sync client."""

from __future__ import annotations

import time
from typing import Any

from . import _failures, _futex, errors
from ._mapped_queue import TAIL, WAKES, WAKEUP, Closing, MappedQueue
from ._ring_path import sleep_until_changed
from ._runner import SyncLink


class MappedSource:
    """Completions of a mapped queue. Its turns make it safe."""

    def __init__(self, queue: Any, mapped: MappedQueue) -> None:
        self._queue = queue
        self._link: SyncLink = queue._link
        self._mapped = mapped
        self._spin = _futex.Spin(self._link.spin_seconds)
        self.torn = False

    def position(self) -> int:
        return self._mapped.head

    def read(self) -> bool:
        try:
            found = self._mapped.take()
        except Closing:
            # The event that names the cause is on its way; `SyncLink.explain` waits for it, without this lock.
            if self._queue.closed and self._link.ended is None:
                raise _failures.of_reason("OBJECT_CLOSING", "cq_id") from None
            raise errors.SessionLost("connection_lost") from None
        if not found:
            self._link.check()
            if self._queue.closed:
                raise errors.Closed("this CompletionQueue is closed")
            return False
        self._queue._dispatch(found)
        return True

    def wait(self, position: int, end: float) -> None:
        mapped, words = self._mapped, self._mapped.file.words
        began = time.monotonic()
        if began >= end or words[TAIL] != position:
            return
        ring = self._link.ring
        daemon = 0 if ring is None else ring.daemon_cpu
        if self._spin.until_changed(words, TAIL, position, _futex.processor(), daemon):
            return
        sleep_until_changed(mapped.file, WAKEUP, WAKES, lambda: mapped.changed(position), end)
        self._spin.record(time.monotonic() - began)
