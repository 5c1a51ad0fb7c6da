"""The session's ring, for asyncio."""

from __future__ import annotations

import asyncio
import copy
import time
from typing import Optional

from .. import errors
from .._effects import Submit
from .._ring import COMPLETION_WAKEUP, Reply, Ring, Submission
from .._ring_path import of_end, timed_out
from .._shared_file import Descriptor
from ._pipe import PipeWatch


class AsyncRing:
    """A ring that the coroutines of a session share."""

    def __init__(self, ring: Ring, pipe: Descriptor) -> None:
        self._ring = ring
        self.ended: Optional[errors.Error] = None
        """Why the ring takes nothing any more."""
        self._news = PipeWatch(ring.file, COMPLETION_WAKEUP, pipe, self._read)

    def end(self, why: errors.Error) -> None:
        """The session has ended: what is under way fails. The first cause counts."""
        self.ended = self.ended or why
        self._news.look()

    async def execute(self, wanted: Submit, seconds: float) -> Optional[Reply]:
        """As `SyncRing.execute`."""
        if not self._ring.fits(wanted):
            return None
        end = time.monotonic() + seconds
        submission = await self._submit(wanted, end)
        if submission is None:
            return None
        self._ring.wake()
        # The others' turn; meanwhile the daemon has usually answered, and nothing needs to be waited for.
        await asyncio.sleep(0)
        sent = submission
        if not await self._news.until(lambda: sent.reply is not None or self.ended is not None, end - time.monotonic()):
            raise timed_out()
        if sent.reply is None:
            raise copy.copy(self.ended)  # type: ignore[misc]
        return sent.reply

    async def _submit(self, wanted: Submit, end: float) -> Optional[Submission]:
        while self.ended is None:
            submission = self._ring.submit(wanted)
            if submission is not None:
                return submission
            if not await self._news.until(lambda: self._ring.has_room(wanted), end - time.monotonic()):
                raise timed_out()
        return None

    def _read(self) -> None:
        # The reason first: outcomes that are read after it came before the end.
        reason = self._ring.end_reason
        self._ring.collect()
        if reason and self.ended is None:
            self.ended = of_end(reason)
