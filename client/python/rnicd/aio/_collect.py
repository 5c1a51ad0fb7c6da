"""Collecting the completions of a queue, for asyncio: by calls, or from shared memory."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, List, Optional, Tuple

from .. import _data_path, _failures, errors
from .._mapped_queue import WAKEUP, Closing, MappedQueue
from ..completion import Completion
from ._pipe import PipeWatch

_POLL_SECONDS = 10.0
# Between polls where the session may not have another waiting call.
_RETRY_SECONDS = 0.002


class CallSource:
    """A queue that is polled by calls. One task collects for all, so a waiter that is cancelled takes nothing along."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._waiters: List[Tuple[Callable[[], bool], "asyncio.Future[bool]"]] = []
        self._collector: Optional["asyncio.Task[None]"] = None

    async def until(self, met: Callable[[], bool], seconds: float) -> bool:
        """Waits until `met`. False when the time is over. Errors: those of the calls."""
        ended: "asyncio.Future[bool]" = asyncio.get_running_loop().create_future()
        waiter = (met, ended)
        self._waiters.append(waiter)
        if self._collector is None or self._collector.done():
            self._collector = asyncio.get_running_loop().create_task(self._collect(seconds))
        elif seconds <= 0:
            self._waiters.remove(waiter)
            return False
        try:
            # The collector's first poll decides about a wait of no time at all.
            return await asyncio.wait_for(ended, seconds if seconds > 0 else self._queue._link.seconds)
        except asyncio.TimeoutError:
            return False
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def _collect(self, seconds: float) -> None:
        """Polls for as long as somebody waits."""
        wait = min(_POLL_SECONDS, max(0.0, seconds))
        try:
            while self._waiters:
                self._queue._dispatch(await self._poll(wait))
                self._wake(finally_empty=seconds <= 0)
        except errors.Error as failure:
            for _, ended in self._waiters:
                if not ended.done():
                    ended.set_exception(failure)
            self._waiters.clear()

    async def _poll(self, wait: float) -> List[Completion]:
        try:
            return await self._call(wait)
        except errors.QuotaExceeded as refused:
            if refused.reason != "QUOTA_PENDING_REQUESTS":
                raise
        await asyncio.sleep(_RETRY_SECONDS)
        return await self._call(0)

    async def _call(self, wait: float) -> List[Completion]:
        call = _data_path.poll(self._queue.id, _data_path.RESULTS_MAX, wait)
        return _data_path.collected(await self._queue._run(_one(call)))

    def _wake(self, finally_empty: bool) -> None:
        for waiter in list(self._waiters):
            met, ended = waiter
            if ended.done():
                continue
            if met() or finally_empty:
                ended.set_result(met())
                self._waiters.remove(waiter)


class MappedSource:
    """A mapped queue."""

    def __init__(self, queue: Any, mapped: MappedQueue) -> None:
        assert mapped.pipe is not None
        self._queue = queue
        self._mapped = mapped
        self._news = PipeWatch(mapped.file, WAKEUP, mapped.pipe, self._read)
        mapped.pipe = None
        queue._link.watches.add(self._news)

    async def until(self, met: Callable[[], bool], seconds: float) -> bool:
        """Waits until `met`. False when the time is over. Errors: those of the queue; SessionLost, Closed."""
        return await self._news.until(met, seconds)

    def _read(self) -> None:
        try:
            found = self._mapped.take()
        except Closing:
            if self._queue.closed and self._queue._link.ended is None:
                raise _failures.of_reason("OBJECT_CLOSING", "cq_id") from None
            raise errors.SessionLost("connection_lost") from None
        if found:
            self._queue._dispatch(found)
            return
        self._queue._link.check()
        if self._queue.closed:
            raise errors.Closed("this CompletionQueue is closed")


def _one(call: Any) -> Any:
    return (yield call)
