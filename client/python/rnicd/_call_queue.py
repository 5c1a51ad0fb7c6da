"""Collecting completions by calls, for the sync client."""

from __future__ import annotations

import time
from typing import Any, List

import grpc

from . import _data_path, _failures, errors
from ._runner import SyncLink
from .completion import Completion

# A call that waits longer than this runs as a future, which a signal does not end.
_UNINTERRUPTED_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 10.0
# Between polls where the session may not have another waiting call.
_RETRY_SECONDS = 0.002


class CallSource:
    """Completions of a queue that is polled by calls. Its turns make it safe."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._link: SyncLink = queue._link
        self._found: List[Completion] = []
        self._in_flight: Any = None
        self.torn = False
        """Whether a signal interrupted a call, whose completions may be lost."""

    def position(self) -> int:
        return 0

    def read(self) -> bool:
        found, self._found = self._found, []
        self._queue._dispatch(found)
        return bool(found)

    def wait(self, _: int, end: float) -> None:
        try:
            self._found = self._collect(min(_LONGEST_POLL_SECONDS, max(0.0, end - time.monotonic())), end)
        except errors.Error:
            raise
        except BaseException:
            self.torn = True
            raise

    def _collect(self, seconds: float, end: float) -> List[Completion]:
        """One poll. A poll that a signal interrupted is still on its way, and is finished first."""
        if self._in_flight is None:
            short = min(seconds, _UNINTERRUPTED_SECONDS)
            try:
                found = self._poll(short)
            except errors.QuotaExceeded as refused:
                if refused.reason != "QUOTA_PENDING_REQUESTS":
                    raise
                time.sleep(_RETRY_SECONDS)
                return self._poll(0)
            if found or seconds <= short:
                return found
            call = _data_path.poll(self._queue.id, _data_path.RESULTS_MAX, seconds - short)
            self._in_flight = self._link.channel.begin(call, self._link.seconds)
        return self._finish(end)

    def _poll(self, seconds: float) -> List[Completion]:
        call = _data_path.poll(self._queue.id, _data_path.RESULTS_MAX, seconds)
        return _data_path.collected(self._link.run(_one(call)))

    def _finish(self, end: float) -> List[Completion]:
        future = self._in_flight
        try:
            answer = future.result(timeout=max(0.0, end - time.monotonic()) + _UNINTERRUPTED_SECONDS)
        except grpc.FutureTimeoutError:
            return []
        except grpc.RpcError as failure:
            self._in_flight = None
            known = self._link.explain(_failures.of_rpc_error(failure))
            if isinstance(known, errors.QuotaExceeded) and known.reason == "QUOTA_PENDING_REQUESTS":
                return []
            raise known from None
        except grpc.FutureCancelledError:
            self._in_flight = None
            raise self._link.explain(errors.SessionLost("closed")) from None
        self._in_flight = None
        return _data_path.collected(answer)


def _one(call: Any) -> Any:
    return (yield call)
