"""What a peer needs to know of a region."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from . import _amounts
from ._failures import invalid, wrong_type

_FORMAT = struct.Struct("!4sQQI")
_MAGIC = b"rnr1"


@dataclass(frozen=True)
class RemoteRegion:
    """Address, length and token of registered memory, for the peer that may read or write it.

    `remote[a:b]` is a part of it. Send `to_bytes()` over a channel of your own: the token is the right of access.
    """

    address: int
    """Address of the first byte, as the owner knows it."""
    length: int
    """Bytes."""
    token: int = field(repr=False)
    """Opaque, to be passed on unchanged."""

    def __post_init__(self) -> None:
        _amounts.make_integers(self, address=64, length=64, token=32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> RemoteRegion:
        """Bytes a to b. Errors: InvalidArgument outside the region."""
        if not isinstance(part, slice):
            raise wrong_type("remote", "cut by slices, remote[a:b]", part)
        offset, count = _amounts.bounds(part, self.length, "remote")
        return RemoteRegion(self.address + offset, count, self.token)

    def to_bytes(self) -> bytes:
        """24 bytes that `from_bytes` reads, on any machine."""
        return _FORMAT.pack(_MAGIC, self.address, self.length, self.token)

    @classmethod
    def from_bytes(cls, packed: bytes) -> RemoteRegion:
        """Reads what `to_bytes` made. Errors: InvalidArgument."""
        if not isinstance(packed, (bytes, bytearray, memoryview)):
            raise wrong_type("packed", "bytes", packed)
        if len(packed) != _FORMAT.size or packed[:4] != _MAGIC:
            raise invalid("FIELD_OUT_OF_RANGE", "packed", "these bytes are not from RemoteRegion.to_bytes")
        _, address, length, token = _FORMAT.unpack(packed)
        return cls(address, length, token)
