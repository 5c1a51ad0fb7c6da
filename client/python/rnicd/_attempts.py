"""When a daemon is connected to again, over a new channel or socket.

Its queue of connections may be full for the moment. A connect that does not block fails with EAGAIN then. gRPC takes
that for a connect in progress, uses the socket, fails because it is not connected, and would try again after 100 ms to
5 s. So each attempt has a channel of its own. None of them has reached the daemon.

An older generation of the daemon refuses OpenSession with DAEMON_HANDED_OVER, also while this process has sessions
there, or ends before it answers. No other call is repeated.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Iterator, Optional

from . import errors

_FULL_SECONDS_MIN = 2e-3
_FULL_SECONDS_MAX = 10e-3
# What gRPC says of a socket that is not connected; the last with the poller "poll" of gRPC 1.51.
_FULL_WORDS = (os.strerror(errno.EINVAL), os.strerror(errno.ENOTCONN), "FD shutdown")
# What it says of a connection that the daemon closed.
_CLOSED_WORDS = ("Socket closed", os.strerror(errno.ECONNRESET), os.strerror(errno.EPIPE), "GOAWAY")
_AT_ONCE = 3
# A daemon that has too many connections closes them too, and its clients must not make that worse.
_UNANSWERED_MAX = 6
_SECONDS_MIN = 10e-3
_SECONDS_MAX = 200e-3


def pauses(end: float) -> Iterator[float]:
    """Seconds to wait before each further attempt at a full queue. Errors: TimedOut, when none is before `end`."""
    pause = _FULL_SECONDS_MIN
    while time.monotonic() + pause < end:
        yield pause
        pause = min(pause * 1.5, _FULL_SECONDS_MAX)
    raise errors.TimedOut("the daemon's queue of connections was full")


def _says(failure: BaseException, words: tuple[str, ...]) -> bool:
    """Whether gRPC reports this of the socket: only its words tell."""
    if not isinstance(failure, errors.Unavailable) or failure.detail is not None:
        return False
    after_path = str(failure).rpartition(".sock")[2]
    return any(each in after_path for each in words)


def _is_handed_over(failure: BaseException) -> bool:
    detail = failure.detail if isinstance(failure, errors.Unavailable) else None
    return detail is not None and detail.reason == "DAEMON_HANDED_OVER"


class Attempts:
    """The attempts to open one session, until `end`, a time of `time.monotonic`."""

    def __init__(self, end: float) -> None:
        self._end = end
        self._full = pauses(end)
        self._repeated = 0

    def pause_after(self, failure: BaseException) -> Optional[float]:
        """Seconds until the next attempt; None when `failure` is the caller's. Errors: TimedOut, for a full queue."""
        if _says(failure, _FULL_WORDS):
            return next(self._full)
        lost = self._repeated < _UNANSWERED_MAX and _says(failure, _CLOSED_WORDS)
        doublings = min(self._repeated - _AT_ONCE, 8)
        pause = 0.0 if doublings < 0 else min(_SECONDS_MIN * (1 << doublings), _SECONDS_MAX)
        if not (lost or _is_handed_over(failure)) or time.monotonic() + pause >= self._end:
            return None
        self._repeated += 1
        return pause
