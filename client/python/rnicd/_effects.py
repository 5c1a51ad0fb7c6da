"""What an operation wants done, apart from how: the sync and the async client perform the same steps.

An operation is a generator. It yields a Call or an Exchange, is sent the answer, or has the failure thrown into it.
"""

from __future__ import annotations

from typing import Any, Generator, NamedTuple, Optional, TypeVar, Union

Result = TypeVar("Result")


class Call(NamedTuple):
    """One unary call. The answer is its response message; the failure an `Error`."""

    service: str
    """"Session", "Adapter", "Memory" or "Queue"."""
    method: str
    request: Any
    """The request message."""
    seconds: Optional[float] = None
    """Timeout; None means that of the session."""


class Exchange(NamedTuple):
    """One exchange on fd.sock. The answer is the received descriptor, or -1."""

    ticket: bytes
    descriptor: int = -1
    """The descriptor to send; -1 to fetch one."""


Steps = Generator[Union[Call, Exchange], Any, Result]
