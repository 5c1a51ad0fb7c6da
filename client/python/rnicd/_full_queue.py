"""A daemon whose queue of connections is full for the moment: another attempt follows within milliseconds.

A connect that does not block fails with EAGAIN then. gRPC takes that for a connect in progress, uses the socket, fails
because it is not connected, and would try again after 100 ms to 5 s. So each attempt has a channel of its own. None of
them has reached the daemon.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Iterator

from . import errors

_SECONDS_MIN = 2e-3
_SECONDS_MAX = 10e-3
# What gRPC says of a socket that is not connected; the last with the poller "poll" of gRPC 1.51. It says something else
# of a connection that the daemon refuses, which is not tried again.
_WORDS = (os.strerror(errno.EINVAL), os.strerror(errno.ENOTCONN), "FD shutdown")


def is_cause(failure: BaseException) -> bool:
    """Whether a call over a new channel failed because the queue is full: only gRPC's words tell."""
    if not isinstance(failure, errors.Unavailable) or failure.detail is not None:
        return False
    after_path = str(failure).rpartition(".sock")[2]
    return any(words in after_path for words in _WORDS)


def pauses(end: float) -> Iterator[float]:
    """Seconds to wait before each further attempt. Errors: TimedOut, where there is none before `end`."""
    pause = _SECONDS_MIN
    while time.monotonic() + pause < end:
        yield pause
        pause = min(pause * 1.5, _SECONDS_MAX)
    raise errors.TimedOut("the daemon's queue of connections was full")
