"""What an operation wants done, apart from how: the sync and the async client perform the same steps.

An operation is a generator. It yields a Call, an Exchange, Work or a Submit, is sent the answer, or has the failure
thrown into it.
"""

from __future__ import annotations

from typing import Any, Callable, Generator, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

Result = TypeVar("Result")


class Call(NamedTuple):
    """One unary call. The answer is its response message; the failure an `Error`."""

    service: str
    """"Session", "Adapter", "Memory", "Queue" or "Connection"."""
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


class Work(NamedTuple):
    """Work that holds up its thread, and lets others run: not for an event loop. The answer is None."""

    run: Callable[[], None]


class Submit(NamedTuple):
    """One request through the session's ring. The answer is a `Reply`, or None: the call is to be made instead.

    docs/RINGS.md has the fields.
    """

    opcode: int
    target: int
    """Id of the object."""
    records: int = 0
    """Records in the payload: the field `count`."""
    length: int = 0
    argument: int = 0
    payload: bytes = b""
    """Whole units of 8 bytes."""
    tokens: int = 0
    """Tokens that the answer has: one for each request of a chain."""
    seconds: Optional[float] = None
    """Timeout; None means that of the session."""


class Encoded(NamedTuple):
    """A request in numbers, apart from how it travels: `_messages.py` and `_records.py` make bytes of it."""

    operation: int
    flags: int
    sges: Sequence[Tuple[int, int, int]] = ()
    """Address, length and token of each."""
    inline: Optional[bytes] = None
    pages: Sequence[int] = ()
    target: int = 0
    """Id of the region or window."""
    window: int = 0
    address: int = 0
    length: int = 0
    token: int = 0
    fbo: int = 0


Effect = Union[Call, Exchange, Work, Submit]
Steps = Generator[Effect, Any, Result]
