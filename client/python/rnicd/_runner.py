"""Performs the steps of operations for the sync client."""

from __future__ import annotations

import copy
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from . import _attempts, _events, _fd_socket, _fork, errors
from ._channel import Channel
from ._effects import Effect, Exchange, Result, Steps, Submit, Work
from ._handle import Handle
from ._link import Link
from ._ring import Reply
from ._ring_path import CANNOT_OPEN, SyncRing, open_ring

# How long a failed call waits for the event that tells why the session ended.
_CAUSE_SECONDS = 1.0


class SyncLink(Link):
    """A session whose operations wait. gRPC lets other threads run meanwhile. Threads: safe."""

    def __init__(self, socket_dir: Any, seconds: float, data_path: str, spin_seconds: float) -> None:
        super().__init__(socket_dir, seconds, data_path)
        self.spin_seconds = spin_seconds
        self.ring: Optional[SyncRing] = None
        """Opened by the first request that may travel through it."""
        self._opening = threading.Lock()
        self.channel: Channel
        self.events = _events.Router()
        self._stream: Any = None
        self._finalizer: Any = None

    def start(self, label: str, grant: Any, adapter: str) -> None:
        """Connects and opens the session. Nothing is left when it fails."""
        attempts = _attempts.Attempts(time.monotonic() + self.seconds)
        while (pause := self._connect(label, grant, adapter, attempts)) is not None:
            time.sleep(pause)
        weak = weakref.WeakMethod(self.end)
        self.events.on_end(lambda lost: (weak() or _ignore)(lost))
        self._stream = _events.start(self.channel, self.events)
        self._finalizer = _events.end_when_dropped(self, self.generation, self._stream, self.channel)

    def _connect(self, label: str, grant: Any, adapter: str, attempts: _attempts.Attempts) -> Optional[float]:
        """Opens the session over a new channel. Seconds: it is to be tried again after these."""
        self.channel = Channel(self.socket_dir)
        try:
            self.run(self.open(label, grant, adapter))
        except BaseException as failure:
            self.channel.close()
            pause = None if self.session_id else attempts.pause_after(failure)
            if pause is None:
                raise
            return pause
        return None

    def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps one after another and returns the operation's result."""
        self.check()
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = self._perform(wanted)
                except BaseException as failure:
                    wanted = steps.throw(failure)
                else:
                    wanted = steps.send(answer)
        except StopIteration as done:
            result: Result = done.value
            return result

    def finish(self) -> None:
        """Closes stream and channel; in a forked child nothing, because they are the parent's."""
        if self.generation != _fork.generation():
            return
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._stream is not None:
            self._stream.cancel()
        self.channel.close()
        self.ring = None

    def end(self, lost: errors.SessionLost) -> None:
        super().end(lost)
        ring = self.ring
        if ring is not None:
            ring.end(errors.SessionLost(self.ended.cause if self.ended else lost.cause))

    def _perform(self, wanted: Effect) -> Any:
        if isinstance(wanted, Submit):
            return self._submit(wanted)
        if isinstance(wanted, Exchange):
            return _fd_socket.exchange(self.fd_path, wanted, self.seconds)
        if isinstance(wanted, Work):
            return wanted.run()
        try:
            return self.channel.perform(wanted, self.seconds)
        except (errors.SessionLost, errors.Unavailable) as failure:
            raise self.explain(failure) from None

    def _submit(self, wanted: Submit) -> Optional[Reply]:
        """Through the ring. None: the call is to be made instead."""
        ring = self.ring or self._open_ring()
        if ring is None:
            return None
        try:
            reply = ring.execute(wanted, wanted.seconds or self.seconds)
        except errors.SessionLost as failure:
            raise self.explain(failure) from None
        if reply is None and ring.ended is not None:
            if self.data_path == "rings":
                raise copy.copy(ring.ended)
            self.data_path = "calls"
        return reply

    def _open_ring(self) -> Optional[SyncRing]:
        with self._opening:
            if self.ring is None and self.data_path != "calls":
                try:
                    ring, _ = self.run(open_ring(False, self.drop))
                except CANNOT_OPEN:
                    if self.data_path == "rings":
                        raise
                    self.data_path = "calls"
                    return None
                self.ring = SyncRing(ring, self.spin_seconds)
                # The session may have ended meanwhile.
                if self.ended is not None:
                    self.ring.end(self.ended)
            return self.ring

    def explain(self, failure: errors.Error) -> errors.Error:
        """The failure of a call; where the session ended with the connection, SessionLost with the daemon's cause."""
        if self._stream is None or (isinstance(failure, errors.Unavailable) and failure.detail is not None):
            return failure
        if self.ended is None:
            # The event that names the cause is on its way, or the stream ends without it.
            self.events.wait_for_end(_CAUSE_SECONDS)
        if self.ended is None:
            self.end(failure if isinstance(failure, errors.SessionLost) else errors.SessionLost("connection_lost"))
        return errors.SessionLost(self.ended.cause if self.ended else "connection_lost")


def _ignore(_: errors.SessionLost) -> None:
    """For the end of a session that nothing refers to any more."""


Self = TypeVar("Self", bound="SyncHandle")


class SyncHandle(Handle):
    """A handle whose operations wait."""

    if TYPE_CHECKING:
        _link: SyncLink

    def _run(self, steps: Steps[Result]) -> Result:
        return self._link.run(steps)

    def close(self) -> None:
        """Ends the object now; a second time, and after the session's end, it does nothing. Errors: InUse."""
        if self._link.usable():
            try:
                self._link.run(self._close_steps())
            except errors.SessionLost:
                pass  # Meanwhile.
        self._let_go()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
