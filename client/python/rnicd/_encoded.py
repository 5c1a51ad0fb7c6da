"""Work requests in numbers."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple


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
