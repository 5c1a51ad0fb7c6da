"""Work requests as messages of calls."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from ._effects import Encoded
from ._proto import work_request_pb2 as messages

_Request = messages.WorkRequest


def of_request(request: Encoded, context: int) -> Any:
    """A WorkRequest message."""
    return _Request(request_context=context, flags=request.flags, **_BODIES[request.operation](request))


def _sges(request: Encoded) -> List[Any]:
    if request.inline is not None:
        return [messages.Sge(length=len(request.inline), inline_data=request.inline)]
    return [messages.Sge(address=address, length=length, token=token) for address, length, token in request.sges]


def _to_peer(kind: Any, request: Encoded) -> Any:
    """The body of a Read or Write."""
    return kind(sges=_sges(request), remote_address=request.address, remote_token=request.token)


def _fast_register(request: Encoded) -> Any:
    return _Request.FastRegister(
        mr_id=request.target,
        adapter_page_array=request.pages,
        fbo=request.fbo,
        length=request.length,
        base_virtual_address=request.address,
    )


def _bind(request: Encoded) -> Any:
    return _Request.Bind(
        mr_id=request.target, mw_id=request.window, virtual_address=request.address, length=request.length
    )


# The message's field and its body, for each operation.
_BODIES: Dict[int, Callable[[Encoded], Dict[str, Any]]] = {
    1: lambda one: {"send": _Request.Send(sges=_sges(one))},
    2: lambda one: {"send_and_invalidate": _Request.SendAndInvalidate(sges=_sges(one), remote_token=one.token)},
    3: lambda one: {"receive": _Request.Receive(sges=_sges(one))},
    4: lambda one: {"read": _to_peer(_Request.Read, one)},
    5: lambda one: {"write": _to_peer(_Request.Write, one)},
    6: lambda one: {"fast_register": _fast_register(one)},
    7: lambda one: {"invalidate": _Request.Invalidate(mr_id=one.target)},
    8: lambda one: {"invalidate": _Request.Invalidate(mw_id=one.target)},
    9: lambda one: {"bind": _bind(one)},
}
