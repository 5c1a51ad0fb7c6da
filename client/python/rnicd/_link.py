"""What all objects of a session share, whether the client is sync or async."""

from __future__ import annotations

import collections
import os
import threading
from typing import Any, Callable, ClassVar, List, Optional

from . import _amounts, _data_path, _events, _failures, _fork, errors
from ._effects import Call, Steps
from ._fields import message
from ._proto import adapter_service_pb2 as adapter_messages
from ._proto import connection_service_pb2 as connection_messages
from ._proto import memory_service_pb2 as memory_messages
from ._proto import session_service_pb2 as session_messages

DEFAULT_SOCKET_DIR = "/run/rnicd"
# Bytes a second that a registration or an allocation makes at least; the call's timeout grows with the size.
_SLOWEST = 64 << 20


def _folder(name: Any) -> str:
    """The path of a folder. Errors: InvalidArgument."""
    try:
        return os.fsdecode(name)
    except TypeError:
        raise _failures.wrong_type("socket_dir", "a path", name) from None


def _close_stray(ident: int) -> Call:
    """Rejects a request whose listener is gone."""
    return Call("Connection", "CloseConnector", connection_messages.CloseConnectorRequest(connector_id=ident))


class Link:
    """A session of this process, with one adapter and one protection domain.

    Threads: safe. `dropped` holds calls that finalizers ask for: a finalizer may run anywhere, also inside gRPC, so it
    must not call by itself.
    """

    events: _events.Router
    ring: Any
    """The session's ring, of the client's own kind; None until a request opens it."""
    WANTS_PIPES: ClassVar[bool] = False
    """Whether shared memory is waited for by an event loop, which needs a descriptor."""

    def __init__(self, socket_dir: Any, seconds: float, data_path: str) -> None:
        _fork.check_may_open()
        self.data_path = _data_path.choose(data_path)
        """"automatic", "calls" or "rings"; "automatic" becomes "calls" where the session has no ring."""
        self.socket_dir = _folder(socket_dir or os.environ.get("RNICD_SOCKET_DIR") or DEFAULT_SOCKET_DIR)
        self.seconds = _amounts.seconds(seconds)
        self.generation = _fork.generation()
        self.session_id = 0
        self.tenant = ""
        self.fd_path = ""
        self.adapter_id = 0
        self.adapter_name = ""
        self.domain_id = 0
        self._callbacks_lock = threading.Lock()
        self._callbacks: List[Callable[[errors.SessionLost], None]] = []
        self.ended: Optional[errors.SessionLost] = None
        self.dropped: collections.deque[tuple[int, Call]] = collections.deque()

    def seconds_for(self, size: int) -> float:
        """Timeout of a call whose duration grows with `size` bytes."""
        return self.seconds + size / _SLOWEST

    def check(self) -> None:
        """Raises ForkedError in a forked child, and SessionLost after the end."""
        _fork.check_same_process(self.generation)
        if self.ended is not None:
            raise errors.SessionLost(self.ended.cause)

    def usable(self) -> bool:
        """Whether there is something to release: not in a forked child, and not after the end."""
        return self.ended is None and self.generation == _fork.generation()

    def call_when_lost(self, callback: Callable[[errors.SessionLost], None]) -> None:
        """Calls `callback` at an end other than `close`; at once if that was before."""
        with self._callbacks_lock:
            lost = self.ended
            if lost is None:
                self._callbacks.append(callback)
        if lost is not None and lost.cause != "closed":
            _events.call_back(callback, lost)

    def end(self, lost: errors.SessionLost) -> None:
        """Records the first cause of the end, and makes it known."""
        with self._callbacks_lock:
            first = self.ended is None
            self.ended = self.ended or lost
            callbacks, self._callbacks = self._callbacks, []
        if first and lost.cause != "closed":
            for callback in callbacks:
                _events.call_back(callback, lost)

    def drop(self, rank: int, call: Call) -> None:
        """Called by finalizers: has `call` made before the next object is created. Lower ranks first."""
        if self.usable():
            self.dropped.append((rank, call))

    def release_dropped(self) -> Steps[None]:
        """Makes the calls of finalizers, children first. What the daemon refuses stays until the session ends."""
        while self.events.strays:
            self.drop(0, _close_stray(self.events.strays.popleft()))
        waiting: list[tuple[int, Call]] = []
        while self.dropped:
            waiting.append(self.dropped.popleft())
        for _, call in sorted(waiting, key=lambda item: item[0]):
            try:
                yield call
            except errors.Refused:
                pass

    def open(self, label: str, grant: Optional[str], adapter: str) -> Steps[None]:
        """Opens session, adapter and protection domain."""
        secret = grant if grant is not None else os.environ.get("RNICD_GRANT", "")
        request = message(session_messages.OpenSessionRequest, label=label, grant=secret)
        opened = yield Call("Session", "OpenSession", request)
        if "/" in opened.fd_socket_name:
            raise errors.Unavailable("the daemon's name of fd.sock is a path")
        self.session_id, self.tenant = opened.session_id, opened.tenant
        self.fd_path = os.path.join(self.socket_dir, opened.fd_socket_name)
        wanted = message(adapter_messages.OpenAdapterRequest, adapter_name=adapter)
        found = yield Call("Adapter", "OpenAdapter", wanted)
        self.adapter_id, self.adapter_name = found.adapter_id, found.adapter_name
        made = yield Call("Memory", "CreatePd", memory_messages.CreatePdRequest(adapter_id=self.adapter_id))
        self.domain_id = made.pd_id

    def close(self) -> Steps[Any]:
        """Ends the session; returns the daemon's CloseSessionResponse."""
        answer = yield Call("Session", "CloseSession", session_messages.CloseSessionRequest())
        self.end(errors.SessionLost("closed"))
        return answer


class SessionBase:
    """What a session says of itself, whether sync or async."""

    _link: Link

    @property
    def id(self) -> int:
        """Id of the session, as operators see it."""
        return self._link.session_id

    @property
    def tenant(self) -> str:
        """Name of the tenant whose limits the session shares."""
        return self._link.tenant

    @property
    def adapter(self) -> str:
        """Name of the session's card."""
        return self._link.adapter_name

    @property
    def data_path(self) -> str:
        """How requests travel now: "rings", "calls", or "automatic" until the first request decides."""
        return "rings" if self._link.ring is not None and self._link.data_path != "calls" else self._link.data_path

    @property
    def lost(self) -> Optional[errors.SessionLost]:
        """Why the session has ended; None while it is open."""
        return self._link.ended
