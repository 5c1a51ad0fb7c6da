"""Work requests and MDL chains as the payload of a ring; docs/RINGS.md has the layouts."""

from __future__ import annotations

import struct
from typing import Any, Optional, Sequence

from ._effects import Encoded, Submit

POST, REGISTER, GET_REMOTE_TOKEN, ARM = 1, 2, 4, 5
"""Opcodes."""
REQUESTS_MAX = 1024
"""Of a chain."""
_REQUEST = struct.Struct("<QIBBHQQQQIIQ")
_SGE = struct.Struct("<QII")
_MDL = struct.Struct("<QQQQ")


def post(qp_id: int, requests: Sequence[Encoded], contexts: Sequence[int]) -> Optional[Submit]:
    """A chain. None for one that only a call can carry, or refuse as calls do."""
    if not 0 < len(requests) <= REQUESTS_MAX:
        return None
    try:
        payload = b"".join(map(_record, requests, contexts))
    except struct.error:
        return None
    return Submit(POST, qp_id, len(requests), payload=payload, tokens=len(requests))


def register(request: Any, seconds: float) -> Submit:
    """A RegisterMrRequest."""
    payload = b"".join(
        _MDL.pack(one.memory_id, one.byte_offset, one.byte_count, one.virtual_address) for one in request.mdl_chain
    )
    count = len(request.mdl_chain)
    return Submit(REGISTER, request.mr_id, count, request.length, request.flags, payload, seconds=seconds)


def _record(request: Encoded, context: int) -> bytes:
    """A record, and behind it SGEs, inline bytes or pages."""
    behind = [_SGE.pack(*sge) for sge in request.sges]
    if request.inline:
        behind.append(request.inline + bytes(-len(request.inline) % 8))
    if request.pages:
        behind.append(struct.pack(f"<{len(request.pages)}Q", *request.pages))
    record = _REQUEST.pack(
        context,
        request.flags,
        request.operation,
        0,
        len(request.sges) or len(request.pages),
        request.target,
        request.window,
        request.address,
        request.length,
        request.token,
        request.fbo,
        0,
    )
    return record + b"".join(behind)
