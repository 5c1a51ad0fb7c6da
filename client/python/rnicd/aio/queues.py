"""Queue pairs, completion queues and transfers, for asyncio."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from .. import _amounts, _data_path, _failures, _queues, errors
from .._memory import RegionBase, RegionPart
from .._pages import FastRegionBase, LogicalMappingBase, WindowBase
from ..completion import Completion
from ..remote import RemoteRegion
from ..work import Bind, FastRegister, Invalidate, Local, Payload, Read, Receive, Request, Send, Write, part_of
from ._collect import CallSource, MappedSource
from ._runner import AsyncHandle


class Pending(_queues.PendingBase):
    """Requests that were posted together. `await pending` or `await pending.wait(seconds)` collects them."""

    async def wait(self, timeout: Optional[float] = None) -> List[Completion]:
        """As `rnicd.Pending.wait`. Cancelling it loses nothing: it may be awaited again."""
        for queue in list(self._open):
            assert isinstance(queue, CompletionQueue)
            await queue._wait_until(lambda queue=queue: not self._open_on(queue), timeout)  # type: ignore[misc]
        return self._result()

    def __await__(self) -> Any:
        return self.wait().__await__()


class CompletionQueue(AsyncHandle, _queues.QueueBase):
    __doc__ = _queues.QueueBase.__doc__

    def __init__(self) -> None:
        self._source: Union[CallSource, MappedSource]
        self._notified: asyncio.Event = asyncio.Event()
        self._overrun = False

    async def poll(self, most: int = _data_path.RESULTS_MAX, timeout: float = 0.0) -> List[Completion]:
        """As `rnicd.CompletionQueue.poll`."""
        try:
            await self._wait_until(lambda: bool(self._unclaimed), timeout)
        except errors.TimedOut:
            pass
        return self._take_unclaimed(most)

    async def arm(self, kind: str = "any") -> None:
        """As `rnicd.CompletionQueue.arm`."""
        await self._run(self._arm_steps(kind))

    async def wait_for_notification(self, timeout: float) -> bool:
        """As `rnicd.CompletionQueue.wait_for_notification`."""
        try:
            await asyncio.wait_for(self._notified.wait(), _amounts.seconds(timeout))
        except asyncio.TimeoutError:
            self._link.check()
            return False
        self._notified.clear()
        self._link.check()
        if self._overrun:
            raise _failures.of_reason("CQ_OVERRUN")
        return True

    async def resize(self, depth: int) -> None:
        """As `rnicd.CompletionQueue.resize`."""
        await self._run(self._resize_steps(depth))

    async def close(self) -> None:
        """Ends the queue. Queue pairs that report to it are closed before."""
        self._link.events.forget("cq", self._ident)
        await super().close()

    async def _wait_until(self, met: Callable[[], bool], timeout: Optional[float]) -> None:
        if met():
            return
        self._link.check()
        seconds = self._link.seconds if timeout is None else _amounts.seconds(timeout)
        try:
            if await self._source.until(met, seconds):
                return
        except errors.SessionLost as lost:
            raise await self._link.explain(lost) from None
        raise errors.TimedOut("no completion in time; the transfer may still end")

    def _start(self, link: Any, made: Any, depth: int) -> None:
        super()._start(link, made, depth)
        proxy = weakref.proxy(self)
        self._source = CallSource(proxy) if made.mapped is None else MappedSource(proxy, made.mapped)


class Batch(_queues.BatchBase):
    """As `rnicd.Batch`, with `async with`."""

    def __init__(self, pair: QueuePair) -> None:
        super().__init__()
        self._pair = pair
        self.pending: Optional[Pending] = None

    async def wait(self, timeout: Optional[float] = None) -> List[Completion]:
        """`Pending.wait`; an empty batch has no completions."""
        return [] if self.pending is None else await self.pending.wait(timeout)

    async def __aenter__(self) -> Batch:
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._requests:
            self.pending = await self._pair.post(self._requests)


class QueuePair(AsyncHandle, _queues.PairBase):
    __doc__ = _queues.PairBase.__doc__

    def __init__(self) -> None:
        self._own_queue: Optional[CompletionQueue] = None
        self._gone: asyncio.Event = asyncio.Event()

    @property
    def completion_queue(self) -> _queues.QueueBase:
        """The queue of everything but receives."""
        return self._initiator_queue

    @property
    def peer_gone(self) -> bool:
        """As `rnicd.QueuePair.peer_gone`."""
        return self._gone.is_set()

    async def state(self) -> str:
        """ "init", "ready" or "error"."""
        return await self._run(self._state_steps())

    async def connect(self, peer_address: bytes) -> None:
        """As `rnicd.QueuePair.connect`."""
        await self._run(self._connect_steps(peer_address))

    async def disconnect(self) -> None:
        """As `rnicd.QueuePair.disconnect`."""
        await self._run(self._disconnect_steps())

    async def flush(self) -> None:
        """As `rnicd.QueuePair.flush`."""
        await self._run(self._flush_steps())

    async def post(self, requests: Sequence[Request]) -> Pending:
        """As `rnicd.QueuePair.post`: the call is awaited, the transfers are not."""
        pending = Pending(requests)
        await self._run(self._post_steps(requests, pending))
        return pending

    async def post_raw(self, requests: Sequence[Request], contexts: Sequence[int]) -> Dict[int, int]:
        """As `rnicd.QueuePair.post_raw`."""
        return await self._run(self._post_raw_steps(requests, contexts))

    def batch(self) -> Batch:
        """`async with pair.batch() as b: b.write(...)` posts in one call at the end of the block."""
        return Batch(self)

    async def write(
        self, payload: Payload, remote: RemoteRegion, offset: int = 0, timeout: Optional[float] = None
    ) -> None:
        """As `rnicd.QueuePair.write`."""
        await self._do(Write(payload, part_of(remote, offset)), timeout)

    async def read(self, local: Local, remote: RemoteRegion, offset: int = 0, timeout: Optional[float] = None) -> None:
        """As `rnicd.QueuePair.read`."""
        await self._do(Read(local, part_of(remote, offset)), timeout)

    async def send(self, payload: Payload = (), timeout: Optional[float] = None) -> None:
        """As `rnicd.QueuePair.send`."""
        await self._do(Send(payload), timeout)

    async def receive(self, local: Local = (), timeout: Optional[float] = None) -> int:
        """As `rnicd.QueuePair.receive`: bytes received."""
        pending = await self.post([Receive(local)])
        return (await pending.wait(timeout))[0].bytes

    async def fast_register(
        self,
        region: FastRegionBase,
        mapping: LogicalMappingBase,
        remote: str = "rw",
        timeout: Optional[float] = None,
    ) -> RemoteRegion:
        """As `rnicd.QueuePair.fast_register`."""
        token = await self._do(FastRegister.of(region, mapping, remote), timeout)
        return RemoteRegion(mapping.address, mapping.length, token)

    async def bind(
        self,
        window: WindowBase,
        part: Union[RegionBase, RegionPart],
        remote: str = "rw",
        timeout: Optional[float] = None,
    ) -> RemoteRegion:
        """As `rnicd.QueuePair.bind`."""
        return RemoteRegion(part.address, len(part), await self._do(Bind(window, part, remote), timeout))

    async def invalidate(self, target: Union[FastRegionBase, WindowBase], timeout: Optional[float] = None) -> None:
        """As `rnicd.QueuePair.invalidate`."""
        await self._do(Invalidate(target), timeout)

    async def close(self) -> None:
        """Flushes and ends the pair, and its connector, and its queue if it was made with it."""
        if self._connector is not None:
            await self._connector.close()
        self._link.events.forget("qp", self._ident)
        await super().close()
        if self._own_queue is not None:
            await self._own_queue.close()

    async def _do(self, request: Request, timeout: Optional[float]) -> int:
        """Posts one request and waits for it; returns the token that it issued, or 0."""
        pending = await self.post([request])
        await pending.wait(timeout)
        return pending.tokens.get(0, 0)
