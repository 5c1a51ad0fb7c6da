"""The only module that posts requests and collects completions: by calls.

A daemon with rings in shared memory would be served here; nothing else in the package knows how requests travel.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence

from . import _failures, errors
from ._effects import Call, Steps
from ._proto import queue_service_pb2 as messages
from .completion import Completion

RESULTS_MAX = 1024
"""Completions collected at a time."""
_MARGIN_SECONDS = 15.0
"""The daemon stops waiting this long before the call times out: a late response is lost with its completions."""


class Posted(NamedTuple):
    """What became of a chain."""

    accepted: int
    """Requests that were accepted, from the first."""
    refusal: Optional[errors.Error]
    """Why the next was not; None when all were."""
    tokens: "dict[int, int]"
    """Remote tokens of FastRegister and Bind, by the request's place in the chain."""


def post(qp_id: int, requests: Sequence[Any]) -> Steps[Posted]:
    """Posts encoded requests, in order."""
    answer = yield Call("Queue", "Post", messages.PostRequest(qp_id=qp_id, requests=requests))
    refusal = _failures.of_detail(answer.failure) if answer.HasField("failure") else None
    return Posted(answer.posted, refusal, {one.request_index: one.remote_token for one in answer.issued_tokens})


def poll(cq_id: int, most: int, wait_seconds: float) -> Call:
    """The call that removes completions; the daemon waits for the first of them, up to a minute."""
    wait_ms = min(60_000, max(0, round(wait_seconds * 1000)))
    request = messages.GetCqResultsExRequest(cq_id=cq_id, max_results=most, wait_ms=wait_ms)
    return Call("Queue", "GetCqResultsEx", request, wait_ms / 1000 + _MARGIN_SECONDS)


def collected(answer: Any) -> List[Completion]:
    """The completions in the answer to `poll`, oldest first."""
    return [Completion.of_wire(result) for result in answer.results]
