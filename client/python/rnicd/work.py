"""Work requests, for `QueuePair.post`. The blocking methods of QueuePair make them for you.

`local` is the memory of this process: a Region, a part of one (`region[a:b]`), an Sge, or a list of these, of which
the bytes are taken one after another. Send and Write also take `bytes`, which travel inside the request (at most the
queue pair's `inline_bytes`) and need no registered memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, ClassVar, List, Optional, Sequence, Tuple, Union

from . import _amounts
from ._effects import Encoded
from ._failures import invalid, wrong_type
from ._memory import RegionBase, RegionPart
from ._pages import FastRegionBase, LogicalMappingBase, WindowBase
from .remote import RemoteRegion

_SGE_BYTES_MAX = (1 << 32) - 1
_SILENT, _FENCE, _SOLICIT, _INLINE, _DEFER = 1, 2, 4, 64, 512
_REMOTE_READ, _LOCAL_WRITE, _REMOTE_WRITE, _READ_SINK, _LOCAL_INVALIDATE = 8, 16, 48, 128, 256
# Operations as rings number them.
_SEND, _SEND_AND_INVALIDATE, _RECEIVE, _READ, _WRITE, _FAST_REGISTER = 1, 2, 3, 4, 5, 6
_INVALIDATE_REGION, _INVALIDATE_WINDOW, _BIND = 7, 8, 9


@dataclass(frozen=True)
class Sge:
    """Bytes named by hand: an address inside a region with its local token, or a logical address with the privileged
    token."""

    address: int
    length: int
    token: int

    def __post_init__(self) -> None:
        _amounts.make_integers(self, address=64, length=64, token=32)

    def __len__(self) -> int:
        return self.length


Piece = Union[RegionBase, RegionPart, Sge]
Local = Union[Piece, Sequence[Piece]]
Payload = Union[Local, bytes, bytearray, memoryview]


@dataclass(frozen=True)
class Request:
    """Base of all requests."""

    NAME: ClassVar[str] = ""

    def encode(self) -> Encoded:
        """The request in numbers. Errors: InvalidArgument."""
        raise NotImplementedError

    @property
    def reports(self) -> bool:
        """Whether success is reported by a completion."""
        return not getattr(self, "silent", False)


@dataclass(frozen=True)
class Send(Request):
    """Sends bytes to the receive that the peer posted first.

    `solicit` wakes a peer that armed its queue for solicited completions; `invalidate` is a token of the peer's that
    the peer's card invalidates; `silent`, `fence` and `defer` are NDK's flags of the same names.
    """

    NAME = "send"
    payload: Payload = ()
    invalidate: Optional[int] = None
    solicit: bool = False
    silent: bool = False
    fence: bool = False
    defer: bool = False

    def encode(self) -> Encoded:
        sges, inline, flags = _payload(self.payload)
        flags |= _flags(self) | (_SOLICIT if self.solicit else 0)
        if self.invalidate is None:
            return Encoded(_SEND, flags, sges, inline)
        token = _amounts.integer(self.invalidate, "invalidate", 0, 1 << 32)
        return Encoded(_SEND_AND_INVALIDATE, flags, sges, inline, token=token)


@dataclass(frozen=True)
class Receive(Request):
    """Room for one message of the peer's."""

    NAME = "receive"
    local: Local = ()

    def encode(self) -> Encoded:
        return Encoded(_RECEIVE, 0, _sink(self.local))


@dataclass(frozen=True)
class Write(Request):
    """Copies `payload` to the start of `remote`."""

    NAME = "write"
    payload: Payload
    remote: RemoteRegion
    silent: bool = False
    fence: bool = False
    defer: bool = False

    def encode(self) -> Encoded:
        sges, inline, flags = _payload(self.payload)
        _check_fits(sges, self.remote)
        remote = self.remote
        return Encoded(_WRITE, flags | _flags(self), sges, inline, address=remote.address, token=remote.token)


@dataclass(frozen=True)
class Read(Request):
    """Copies the start of `remote` to `local`. `invalidate_local` ends a fast registration of the first piece."""

    NAME = "read"
    local: Local
    remote: RemoteRegion
    invalidate_local: bool = False
    silent: bool = False
    fence: bool = False
    defer: bool = False

    def encode(self) -> Encoded:
        sges = _sink(self.local)
        _check_fits(sges, self.remote)
        flags = _flags(self) | (_LOCAL_INVALIDATE if self.invalidate_local else 0)
        return Encoded(_READ, flags, sges, address=self.remote.address, token=self.remote.token)


@dataclass(frozen=True)
class FastRegister(Request):
    """Registers pages with a fast region: byte A of it is byte A - `base` + `fbo` of the pages laid end to end.

    Its token is in `Pending.tokens`, and is valid when the request is complete.
    """

    NAME = "fast register"
    region: FastRegionBase
    pages: Sequence[int]
    length: int
    base: int
    fbo: int = 0
    remote: str = "rw"
    silent: bool = False
    fence: bool = False
    defer: bool = False

    @classmethod
    def of(cls, region: FastRegionBase, mapping: LogicalMappingBase, remote: str = "rw") -> FastRegister:
        """Registers a whole mapping, at the memory's own address."""
        _expect(mapping, LogicalMappingBase, "mapping", "a LogicalMapping")
        return cls(region, mapping.pages, mapping.length, mapping.address, mapping.fbo, remote)

    def encode(self) -> Encoded:
        read, write = _amounts.parse_rights(self.remote, "remote")
        _expect(self.region, FastRegionBase, "region", "a FastRegion")
        pages = _amounts.sequence(self.pages, "pages")
        flags = _flags(self) | _LOCAL_WRITE | _READ_SINK
        flags |= (_REMOTE_READ if read else 0) | (_REMOTE_WRITE if write else 0)
        return Encoded(
            _FAST_REGISTER,
            flags,
            pages=[_amounts.integer(page, "pages") for page in pages],
            target=self.region.id,
            address=_amounts.integer(self.base, "base"),
            length=_amounts.integer(self.length, "length"),
            fbo=_amounts.integer(self.fbo, "fbo", 0, 1 << 32),
        )


@dataclass(frozen=True)
class Invalidate(Request):
    """Ends a fast registration, or the binding of a window: when it is complete, the token opens nothing."""

    NAME = "invalidate"
    target: Union[FastRegionBase, WindowBase]
    silent: bool = False
    fence: bool = False
    defer: bool = False

    def encode(self) -> Encoded:
        _expect(self.target, (FastRegionBase, WindowBase), "target", "a FastRegion or a MemoryWindow")
        operation = _INVALIDATE_WINDOW if isinstance(self.target, WindowBase) else _INVALIDATE_REGION
        return Encoded(operation, _flags(self), target=self.target.id)


@dataclass(frozen=True)
class Bind(Request):
    """Opens a window on a part of a region, for the peer of this queue pair only."""

    NAME = "bind"
    window: WindowBase
    part: Union[RegionBase, RegionPart]
    remote: str = "rw"
    silent: bool = False
    fence: bool = False
    defer: bool = False

    def encode(self) -> Encoded:
        read, write = _amounts.parse_rights(self.remote, "remote")
        _expect(self.window, WindowBase, "window", "a MemoryWindow")
        _expect(self.part, (RegionBase, RegionPart), "part", "a Region or a part of one")
        flags = _flags(self) | (_REMOTE_READ if read else 0) | (_REMOTE_WRITE if write else 0)
        region = self.part.region if isinstance(self.part, RegionPart) else self.part
        return Encoded(
            _BIND,
            flags,
            target=region.id,
            window=self.window.id,
            address=self.part.address,
            length=len(self.part),
        )


def part_of(remote: RemoteRegion, offset: Any) -> RemoteRegion:
    """`remote` from byte `offset`. Errors: InvalidArgument."""
    _expect(remote, RemoteRegion, "remote", "a RemoteRegion")
    return remote if type(offset) is int and offset == 0 else remote[offset:]


def _expect(value: Any, kinds: Any, field: str, wanted: str) -> None:
    if not isinstance(value, kinds):
        raise wrong_type(field, wanted, value)


def _flags(request: Union[Send, Write, Read, FastRegister, Invalidate, Bind]) -> int:
    return (_SILENT if request.silent else 0) | (_FENCE if request.fence else 0) | (_DEFER if request.defer else 0)


def _pieces(local: Local) -> List[Piece]:
    if isinstance(local, (RegionBase, RegionPart, Sge)):
        return [local]
    for piece in local if isinstance(local, (list, tuple)) else [local]:
        _expect(piece, (RegionBase, RegionPart, Sge), "local", "a Region, a part of one, an Sge, or a list of these")
    return list(local)


def _sges(local: Local, check: Optional[Callable[[RegionBase], None]] = None) -> List[Tuple[int, int, int]]:
    made = []
    for piece in _pieces(local):
        if len(piece) > _SGE_BYTES_MAX:
            raise invalid("TRANSFER_TOO_LONG", "local", "a piece of a transfer is below 4 GiB", limit=_SGE_BYTES_MAX)
        if isinstance(piece, Sge):
            token = piece.token
        else:
            region = piece.region if isinstance(piece, RegionPart) else piece
            if check is not None:
                check(region)
            token = region.local_token
        made.append((piece.address, len(piece), token))
    return made


def _payload(payload: Payload) -> Tuple[List[Tuple[int, int, int]], Optional[bytes], int]:
    """SGEs of a payload, its bytes if they travel inside the request, and the flag that says so."""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        inline = bytes(payload)
        return [(0, len(inline), 0)], inline, _INLINE
    return _sges(payload), None, 0


def _sink(local: Local) -> List[Tuple[int, int, int]]:
    return _sges(local, _check_writable)


def _check_writable(region: RegionBase) -> None:
    if not region._flags & _amounts.LOCAL_WRITE:
        raise invalid("REGION_RIGHTS_INSUFFICIENT", "local", "the region was registered with local_write=False")


def _check_fits(sges: List[Tuple[int, int, int]], remote: RemoteRegion) -> None:
    _expect(remote, RemoteRegion, "remote", "a RemoteRegion")
    length = sum(sge[1] for sge in sges)
    if length > remote.length:
        message = f"{length} bytes do not fit into the peer's {remote.length}"
        raise invalid("FIELD_OUT_OF_RANGE", "remote", message, limit=remote.length, requested=length)
