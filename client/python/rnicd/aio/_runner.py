"""Performs the steps of operations for the async client, on grpc.aio."""

from __future__ import annotations

import asyncio
import copy
import functools
import time
import weakref
from typing import TYPE_CHECKING, Any, Coroutine, Generator, Generic, Optional, Protocol, TypeVar

import grpc

from .. import _attempts, _channel, _events, _failures, _fd_socket, _fork, errors
from .._effects import Effect, Call, Exchange, Result, Steps, Submit, Work
from .._handle import Handle
from .._link import Link
from .._proto import session_service_pb2 as messages
from .._ring import Reply
from .._ring_path import CANNOT_OPEN, open_ring
from ._pipe import PipeWatch
from ._ring import AsyncRing

# How long a failed call waits for the event that tells why the session ended.
_CAUSE_SECONDS = 1.0


class AsyncLink(Link):
    """A session whose operations are awaited, in one event loop."""

    WANTS_PIPES = True

    def __init__(self, socket_dir: Any, seconds: float, data_path: str) -> None:
        super().__init__(socket_dir, seconds, data_path)
        self.ring: Optional[AsyncRing] = None
        """Opened by the first request that may travel through it."""
        self._opening = asyncio.Lock()
        self.watches: weakref.WeakSet[PipeWatch] = weakref.WeakSet()
        """Of mapped queues, which learn the session's end from here."""
        self._channel: Any = None
        self._methods: dict[tuple[str, str], Any] = {}
        self.events = _events.Router()
        self._known_end = asyncio.Event()
        self._reader: Any = None
        self._finalizer: Any = None

    async def start(self, label: str, grant: Any, adapter: str) -> None:
        """Connects and opens the session. Nothing is left when it fails."""
        attempts = _attempts.Attempts(time.monotonic() + self.seconds)
        while (pause := await self._connect(label, grant, adapter, attempts)) is not None:
            await asyncio.sleep(pause)
        weak, known = weakref.WeakMethod(self.end), self._known_end

        def on_end(lost: errors.SessionLost) -> None:
            known.set()
            end = weak()
            if end is not None:
                end(lost)

        self.events.on_end(on_end)
        stream = _channel.method_of(self._channel.unary_stream, "Session", "WatchEvents")
        reading = _read(stream(messages.WatchEventsRequest()), self.events)
        loop = asyncio.get_running_loop()
        self._reader = loop.create_task(reading)
        self._finalizer = weakref.finalize(self, _abandon, loop, self._reader, self._channel)
        self._finalizer.atexit = False

    async def _connect(self, label: str, grant: Any, adapter: str, attempts: _attempts.Attempts) -> Optional[float]:
        """Opens the session over a new channel. Seconds: it is to be tried again after these."""
        self._channel = grpc.aio.insecure_channel(_channel.target(self.socket_dir), options=_channel.OPTIONS)
        _fork.keep_in_children(self._channel)
        self._methods.clear()
        try:
            await self.run(self.open(label, grant, adapter))
        except BaseException as failure:
            await self._channel.close()
            pause = None if self.session_id else attempts.pause_after(failure)
            if pause is None:
                raise
            return pause
        return None

    async def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps one after another and returns the operation's result."""
        self.check()
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = await self._perform(wanted)
                except BaseException as failure:
                    wanted = steps.throw(failure)
                else:
                    wanted = steps.send(answer)
        except StopIteration as done:
            result: Result = done.value
            return result

    async def finish(self) -> None:
        """Closes stream and channel."""
        if self.generation != _fork.generation():
            return
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._reader is not None:
            self._reader.cancel()
        await self._channel.close()
        self.ring = None

    def end(self, lost: errors.SessionLost) -> None:
        super().end(lost)
        if self.ring is not None:
            self.ring.end(errors.SessionLost(self.ended.cause if self.ended else lost.cause))
        for watch in list(self.watches):
            watch.look()

    async def _perform(self, wanted: Effect) -> Any:
        if isinstance(wanted, Submit):
            return await self._submit(wanted)
        if isinstance(wanted, Exchange):
            return await self._exchange(wanted)
        if isinstance(wanted, Work):
            return await asyncio.get_running_loop().run_in_executor(None, wanted.run)
        try:
            return await self._method(wanted)(wanted.request, timeout=wanted.seconds or self.seconds)
        except grpc.RpcError as failure:
            raise await self.explain(_failures.of_rpc_error(failure)) from None
        except grpc.aio.UsageError:
            raise errors.SessionLost("closed") from None

    async def _exchange(self, wanted: Exchange) -> int:
        """As `_fd_socket.exchange`; the pauses hold up no thread."""
        end = time.monotonic() + self.seconds
        while True:
            exchange = functools.partial(_fd_socket.exchange_once, self.fd_path, wanted, end)
            try:
                return await asyncio.get_running_loop().run_in_executor(None, exchange)
            except errors.Refused as refused:
                await asyncio.sleep(_fd_socket.pause_after(refused, end))

    def _method(self, call: Call) -> Any:
        key = (call.service, call.method)
        found = self._methods.get(key)
        if found is None:
            found = self._methods[key] = _channel.method_of(self._channel.unary_unary, *key)
        return found

    async def _submit(self, wanted: Submit) -> Optional[Reply]:
        """Through the ring. None: the call is to be made instead."""
        ring = self.ring or await self._open_ring()
        if ring is None:
            return None
        try:
            reply = await ring.execute(wanted, wanted.seconds or self.seconds)
        except errors.SessionLost as failure:
            raise await self.explain(failure) from None
        if reply is None and ring.ended is not None:
            if self.data_path == "rings":
                raise copy.copy(ring.ended)
            self.data_path = "calls"
        return reply

    async def _open_ring(self) -> Optional[AsyncRing]:
        async with self._opening:
            if self.ring is None and self.data_path != "calls":
                try:
                    ring, pipe = await self.run(open_ring(True, self.drop))
                except CANNOT_OPEN:
                    if self.data_path == "rings":
                        raise
                    self.data_path = "calls"
                    return None
                assert pipe is not None
                self.ring = AsyncRing(ring, pipe)
                # The session may have ended meanwhile.
                if self.ended is not None:
                    self.ring.end(self.ended)
            return self.ring

    async def explain(self, failure: errors.Error) -> errors.Error:
        """The failure of a call; where the session ended with the connection, SessionLost with the daemon's cause."""
        lost = isinstance(failure, (errors.SessionLost, errors.Unavailable)) and not getattr(failure, "detail", None)
        if self._reader is None or not lost:
            return failure
        if self.ended is None:
            try:
                await asyncio.wait_for(self._known_end.wait(), _CAUSE_SECONDS)
            except asyncio.TimeoutError:
                pass
        if self.ended is None:
            self.end(failure if isinstance(failure, errors.SessionLost) else errors.SessionLost("connection_lost"))
        return errors.SessionLost(self.ended.cause if self.ended else "connection_lost")


async def _read(stream: Any, router: _events.Router) -> None:
    """Dispatches the stream's events until it ends."""
    try:
        async for event in stream:
            router.dispatch(event)
    except (Exception, asyncio.CancelledError):
        # However the stream ended, also by a fault of grpc's when it is cancelled: the session is gone.
        pass
    finally:
        router.end(errors.SessionLost("connection_lost"))


def _abandon(loop: asyncio.AbstractEventLoop, reader: Any, channel: Any) -> None:
    """Ends stream and channel of a session that was dropped, in its loop; a closed loop has ended them."""

    async def end() -> None:
        reader.cancel()
        await channel.close()

    try:
        loop.call_soon_threadsafe(lambda: loop.create_task(end()))
    except RuntimeError:
        pass


class AsyncHandle(Handle):
    """A handle whose operations are awaited."""

    if TYPE_CHECKING:
        _link: AsyncLink

    async def _run(self, steps: Steps[Result]) -> Result:
        return await self._link.run(steps)

    async def close(self) -> None:
        """Ends the object now; a second time, and after the session's end, it does nothing. Errors: InUse."""
        if self._link.usable():
            try:
                await self._link.run(self._close_steps())
            except errors.SessionLost:
                pass  # Meanwhile.
        self._let_go()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


Self = TypeVar("Self", bound=AsyncHandle)


class _Closeable(Protocol):
    async def close(self) -> Any:
        """Ends it."""


Opened = TypeVar("Opened", bound=_Closeable)


class Opening(Generic[Opened]):
    """An object that is being made: `await` gives it, and `async with` gives it and closes it."""

    def __init__(self, making: Coroutine[Any, Any, Opened]) -> None:
        self._making = making

    def __await__(self) -> Generator[Any, Any, Opened]:
        return self._making.__await__()

    async def __aenter__(self) -> Opened:
        self._made = await self._making
        return self._made

    async def __aexit__(self, *_: Any) -> None:
        await self._made.close()
