"""How requests reach the daemon and completions come back: through shared memory, or by calls.

The other modules do not know. docs/RINGS.md describes the shared memory.
"""

from __future__ import annotations

import os
from typing import Any, Generator, List, NamedTuple, Optional, Sequence

from . import _failures, _messages, _records, _ring_path, errors
from ._effects import Call, Encoded, Steps, Submit
from ._proto import memory_service_pb2 as memory_messages
from ._proto import queue_service_pb2 as messages
from ._ring import Reply
from ._shared_file import SUPPORTED
from .completion import Completion

RESULTS_MAX = 1024
"""Completions collected at a time."""
_MARGIN_SECONDS = 15.0
"""The daemon stops waiting this long before the call times out: a late response is lost with its completions."""
_PATHS = ("automatic", "calls", "rings")


def choose(wanted: str) -> str:
    """The data path of a session: what its program says, or else RNICD_DATA_PATH. Errors: InvalidArgument, Refused."""
    path, source = wanted, "data_path"
    if wanted == "automatic":
        path, source = os.environ.get("RNICD_DATA_PATH") or wanted, "RNICD_DATA_PATH"
    if path not in _PATHS:
        raise _failures.invalid("FIELD_OUT_OF_RANGE", source, f'{source} is "automatic", "calls" or "rings"')
    if path == "rings" and not SUPPORTED:
        raise _failures.of_reason("RINGS_UNAVAILABLE", source)
    return path if SUPPORTED else "calls"


class Posted(NamedTuple):
    """What became of a chain."""

    accepted: int
    """Requests that were accepted, from the first."""
    refusal: Optional[errors.Error]
    """Why the next was not; None when all were."""
    tokens: "dict[int, int]"
    """Remote tokens of FastRegister and Bind, by the request's place in the chain."""


def post(link: Any, qp_id: int, requests: Sequence[Encoded], contexts: Sequence[int]) -> Steps[Posted]:
    """Posts the requests, in order."""
    if link.data_path != "calls":
        submit = _records.post(qp_id, requests, contexts)
        reply = None if submit is None else (yield submit)
        if reply is not None:
            return _posted(reply)
    encoded = list(map(_messages.of_request, requests, contexts))
    answer = yield Call("Queue", "Post", messages.PostRequest(qp_id=qp_id, requests=encoded))
    refusal = _failures.of_detail(answer.failure) if answer.HasField("failure") else None
    return Posted(answer.posted, refusal, {one.request_index: one.remote_token for one in answer.issued_tokens})


def register(link: Any, request: Any, seconds: float) -> Steps[Any]:
    """RegisterMr. Returns what has the fields of its registration."""
    if link.data_path != "calls":
        reply = yield _records.register(request, seconds)
        if reply is not None:
            outcome = _ring_path.checked(reply)
            return memory_messages.RegisterMrResponse(
                registration={
                    "base_virtual_address": outcome.base_or_limit,
                    "length": outcome.length_or_used,
                    "local_token": outcome.local_token,
                    "remote_token": outcome.remote_token,
                }
            )
    return (yield Call("Memory", "RegisterMr", request, seconds))


def remote_token(link: Any, region_id: int) -> Steps[int]:
    """GetRemoteToken of a region."""
    reply = yield from _submit(link, Submit(_records.GET_REMOTE_TOKEN, region_id))
    if reply is not None:
        return _ring_path.checked(reply).remote_token
    answer = yield Call("Memory", "GetRemoteToken", memory_messages.GetRemoteTokenRequest(mr_id=region_id))
    return int(answer.remote_token)


def arm(link: Any, cq_id: int, kind: Any) -> Steps[None]:
    """ArmCq with a CqNotifyType."""
    reply = yield from _submit(link, Submit(_records.ARM, cq_id, argument=kind))
    if reply is None:
        yield Call("Queue", "ArmCq", messages.ArmCqRequest(cq_id=cq_id, type=kind))
    else:
        _ring_path.checked(reply)


def poll(cq_id: int, most: int, wait_seconds: float) -> Call:
    """The call that removes completions; the daemon waits for the first of them, up to a minute."""
    wait_ms = min(60_000, max(0, round(wait_seconds * 1000)))
    request = messages.GetCqResultsExRequest(cq_id=cq_id, max_results=most, wait_ms=wait_ms)
    return Call("Queue", "GetCqResultsEx", request, wait_ms / 1000 + _MARGIN_SECONDS)


def collected(answer: Any) -> List[Completion]:
    """The completions in the answer to `poll`, oldest first."""
    return [Completion.of_wire(result) for result in answer.results]


def _submit(link: Any, wanted: Submit) -> Generator[Submit, Optional[Reply], Optional[Reply]]:
    """The reply, or None: the call is to be made instead."""
    return None if link.data_path == "calls" else (yield wanted)


def _posted(reply: Reply) -> Posted:
    """The outcome of a chain. Refusals of one request name it; any other refused the whole chain, as a call is."""
    refusal = _ring_path.failure_of(reply)
    accepted = reply.outcome.posted
    if refusal is not None and not accepted and not reply.field.startswith("requests["):
        raise refusal
    return Posted(accepted, refusal, {index: token for index, token in enumerate(reply.tokens) if token})
