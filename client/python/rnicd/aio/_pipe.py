"""Shared memory in an event loop: the daemon says by a byte in a pipe that there is news."""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any, Callable, List, Tuple

from .. import _fork
from .._shared_file import WAKE_BY_PIPE, WAKE_NOT, Descriptor, SharedFile

_DRAIN_BYTES = 4096


class PipeWatch:
    """Coroutines that wait for news in shared memory. Nothing of it blocks the loop.

    `read` takes what there is; what it raises fails all that wait. Threads: only that of the loop.
    """

    def __init__(self, file: SharedFile, wakeup: int, pipe: Descriptor, read: Callable[[], Any]) -> None:
        self._file, self._wakeup = file, wakeup
        # Weak: the reader owns this watch.
        self._reader = weakref.WeakMethod(read)
        self._waiters: List[Tuple[Callable[[], bool], "asyncio.Future[bool]"]] = []
        self._loop = loop = asyncio.get_running_loop()
        weak, number = weakref.ref(self), pipe.number

        def readable() -> None:
            if not _drain(number):
                # At its end it would be readable for ever.
                loop.remove_reader(number)
            alive = weak()
            if alive is not None:
                alive.look()

        loop.add_reader(number, readable)
        # The pipe is closed after the loop has forgotten it.
        weakref.finalize(self, _forget, loop, pipe, _fork.generation()).atexit = False

    async def until(self, met: Callable[[], bool], seconds: float) -> bool:
        """Waits until `met`, which is called after each reading. False when the time is over."""
        self._read()
        was_met = met()
        if was_met or seconds <= 0:
            # So that a program that only looks lets others run. They may undo what was met.
            await asyncio.sleep(0)
            return was_met
        ended: "asyncio.Future[bool]" = self._loop.create_future()
        self._waiters.append((met, ended))
        timer = self._loop.call_later(seconds, _set, ended, False)
        try:
            if len(self._waiters) == 1:
                self._file.words[self._wakeup] = WAKE_BY_PIPE
                self._file.fence()
            # What came since the first look announces itself by no byte.
            self.look()
            return await ended
        finally:
            timer.cancel()
            self._waiters = [one for one in self._waiters if one[1] is not ended]
            if not self._waiters:
                self._file.words[self._wakeup] = WAKE_NOT

    def _read(self) -> None:
        read = self._reader()
        if read is not None:
            read()

    def look(self) -> None:
        """Reads, and wakes those whose wait is over."""
        try:
            self._read()
        except Exception as failure:
            self.fail(failure)
            return
        for met, ended in self._waiters:
            if met():
                _set(ended, True)

    def fail(self, failure: Exception) -> None:
        """Nothing more will come."""
        for _, ended in self._waiters:
            if not ended.done():
                ended.set_exception(failure)


def _set(ended: "asyncio.Future[bool]", met: bool) -> None:
    if not ended.done():
        ended.set_result(met)


def _drain(number: int) -> bool:
    """Empties the pipe. False at its end."""
    try:
        while received := os.read(number, _DRAIN_BYTES):
            if len(received) < _DRAIN_BYTES:
                return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _forget(loop: asyncio.AbstractEventLoop, pipe: Descriptor, generation: int) -> None:
    """Ends the watch in its loop; `pipe` is closed when the call is gone. A closed loop watches nothing."""
    if generation != _fork.generation():
        return
    try:
        loop.call_soon_threadsafe(loop.remove_reader, pipe.number)
        loop.call_soon_threadsafe(_drop, pipe)
    except RuntimeError:
        pass


def _drop(_: Descriptor) -> None:
    """Keeps its argument until it runs."""
