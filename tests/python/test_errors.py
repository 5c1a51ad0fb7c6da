"""What a failure tells."""

from __future__ import annotations

import pickle

import grpc
import pytest
import rnicd
from rnicd import _events, _failures
from rnicd._proto import error_pb2, session_service_pb2

from daemon import Daemon

PAGE = 4096


def test_a_refusal_has_reason_status_and_field(session):
    with pytest.raises(rnicd.InvalidArgument) as caught:
        session.allocate(5)
    refused = caught.value
    assert isinstance(refused, (rnicd.Refused, ValueError))
    assert (refused.reason, refused.ntstatus_name, refused.field) == (
        "MEMORY_SIZE_UNALIGNED",
        "STATUS_INVALID_PARAMETER",
        "size",
    )
    assert refused.ntstatus == 0xC000000D
    assert "MEMORY_SIZE_UNALIGNED, STATUS_INVALID_PARAMETER, field size" in str(refused)


def test_a_quota_is_a_memory_error_with_amounts(folder):
    daemon = Daemon(folder, session_limits=f"memory_bytes: {4 * PAGE}")
    try:
        with rnicd.connect(daemon.socket_dir) as session:
            session.allocate(PAGE).close()
            kept = session.allocate(PAGE)
            with pytest.raises(MemoryError) as caught:
                session.allocate(4 * PAGE)
            quota = caught.value
            assert isinstance(quota, rnicd.QuotaExceeded)
            assert (quota.reason, quota.limit, quota.used, quota.requested) == (
                "QUOTA_MEMORY_BYTES",
                4 * PAGE,
                PAGE,
                4 * PAGE,
            )
            assert len(kept) == PAGE
    finally:
        daemon.stop()


def test_no_daemon_is_unavailable(folder):
    with pytest.raises(rnicd.Unavailable) as caught:
        rnicd.connect(str(folder / "nowhere"))
    assert isinstance(caught.value, ConnectionError)


def test_a_path_is_a_path_and_no_uri(folder):
    strange = folder / "a#b?c%20d"
    strange.mkdir()
    daemon = Daemon(strange)
    try:
        with rnicd.connect(f"{daemon.socket_dir}/./") as session:
            assert len(session.allocate(PAGE)) == PAGE
    finally:
        daemon.stop()


def test_a_path_that_is_too_long_is_refused():
    with pytest.raises(rnicd.InvalidArgument):
        rnicd.connect("/" + "x" * 200)


def test_an_unknown_card_is_not_found_and_leaves_no_session(daemon):
    with pytest.raises(rnicd.NotFound) as caught:
        rnicd.connect(adapter="none")
    assert caught.value.reason == "ADAPTER_NOT_FOUND"
    daemon.wait_until_empty()


def test_a_wrong_grant_is_denied(daemon):
    with pytest.raises(rnicd.Denied) as caught:
        rnicd.connect(grant="00" * 32)
    assert caught.value.reason == "GRANT_REFUSED"


def test_an_eviction_says_so(session, daemon):
    causes = []
    session.on_lost(lambda lost: causes.append(lost.cause))
    memory = session.allocate(PAGE)
    assert daemon.ask("evict", str(session.id)).returncode == 0
    with pytest.raises(rnicd.SessionLost) as caught:
        session.allocate(PAGE)
    assert caught.value.cause == "evicted" and session.lost is not None
    assert causes == ["evicted"]
    memory[0] = 1
    memory.close()
    session.close()


def test_a_daemon_that_stops_says_so(session, daemon):
    memory = session.allocate(PAGE)
    daemon.stop()
    with pytest.raises(rnicd.SessionLost) as caught:
        session.usage()
    assert caught.value.cause == "daemon_stopping"
    memory[0] = 1
    memory.close()


def test_a_new_daemon_does_not_know_the_session(session, daemon):
    daemon.stop()
    daemon.start()
    with pytest.raises(rnicd.SessionLost):
        session.usage()
    with rnicd.connect() as again:
        assert len(again.allocate(PAGE)) == PAGE


def test_calls_after_close_say_so(daemon):
    session = rnicd.connect()
    memory = session.allocate(PAGE)
    memory.register()
    taken = session.close()
    assert taken is not None and (taken.regions, taken.memory_bytes) == (1, PAGE)
    assert session.close() is None
    with pytest.raises(rnicd.SessionLost) as caught:
        session.allocate(PAGE)
    assert caught.value.cause == "closed"
    memory.close()


def test_exceptions_survive_pickling():
    detail = error_pb2.ErrorDetail(reason=error_pb2.ERROR_REASON_QUOTA_REGIONS, ntstatus=0xC000009A, limit=3, used=2)
    for failure in (
        _failures.of_detail(detail),
        rnicd.TransferFailed("PEER_LOST", 0xC00000B5, "STATUS_IO_TIMEOUT", "write", 0, "gone"),
        rnicd.SessionLost("evicted"),
        rnicd.Unavailable("no"),
    ):
        again = pickle.loads(pickle.dumps(failure))
        assert type(again) is type(failure) and str(again) == str(failure)


def test_every_reason_has_a_sentence_and_a_class():
    for number in error_pb2.ErrorReason.values():
        failure = _failures.of_detail(error_pb2.ErrorDetail(reason=number))
        assert isinstance(failure, rnicd.Error)
        if number:
            assert "newer" not in str(failure)


def test_reasons_in_shared_memory_have_the_status_of_calls():
    names = {"CQ_OVERRUN": "STATUS_BUFFER_OVERFLOW", "RINGS_UNAVAILABLE": "STATUS_INSUFFICIENT_RESOURCES"}
    for reason, status in names.items():
        failure = _failures.of_reason(reason)
        assert isinstance(failure, rnicd.Refused) and (failure.reason, failure.ntstatus_name) == (reason, status)


def test_numbers_of_a_newer_daemon_are_shown():
    failure = _failures.of_detail(error_pb2.ErrorDetail(reason=99_999, ntstatus=0xC0FFEE00))
    assert isinstance(failure, rnicd.Refused)
    assert (failure.reason, failure.ntstatus_name) == ("REASON_99999", "0xc0ffee00")


def test_a_failure_without_detail_is_grpcs_own():
    class NoAnswer:
        def trailing_metadata(self):
            return None

        def code(self):
            return grpc.StatusCode.DEADLINE_EXCEEDED

    failure = _failures.of_rpc_error(NoAnswer())
    assert isinstance(failure, rnicd.TimedOut) and isinstance(failure, TimeoutError)


def test_a_removed_card_is_told_once_also_to_the_late():
    router, told = _events.Router(), []
    router.on_adapter_removed(lambda: told.append("early"))
    for _ in range(2):
        removed = session_service_pb2.AdapterRemovedEvent(adapter_id=1)
        router.dispatch(session_service_pb2.WatchEventsResponse(adapter_removed=removed))
    router.on_adapter_removed(lambda: told.append("late"))
    assert told == ["early", "late"]
