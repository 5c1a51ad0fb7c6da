"""The cases of cases.txt with Python's gRPC (python3-grpcio), which wraps gRPC's C core.

usage: python_client.py SOCKET DESCRIPTORS
"""

import random
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from run_cases import run_cases

_TIMEOUT_S = 30
_MIB = 1 << 20
_STATUS_PENDING = 0x103
_IDLE_S = 3
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
_STORM_THREADS = 4
_STORM_CALLS = 800  # of each thread
_KEEPALIVE = [("grpc.keepalive_time_ms", 500), ("grpc.keepalive_timeout_ms", 20_000),
              ("grpc.http2.max_pings_without_data", 0)]


def check(condition, *values):
    if not condition:
        raise AssertionError(f"unexpected: {values}")


def check_equal(seen, expected):
    check(seen == expected, seen, "instead of", expected)


class Types:
    """Messages by name, from the descriptors of the protos."""

    def __init__(self, path):
        pool = descriptor_pool.DescriptorPool()
        self.methods = []
        with open(path, "rb") as file:
            for proto in descriptor_pb2.FileDescriptorSet.FromString(file.read()).file:
                pool.Add(proto)
                self.methods += [f"{service.name}/{method.name}" for service in proto.service
                                 for method in service.method]
        self._pool, self._factory = pool, message_factory.MessageFactory(pool)

    def message(self, name):
        return self._factory.GetPrototype(self._pool.FindMessageTypeByName(f"rnicd.v1.{name}"))

    def reason(self, number):
        values = self._pool.FindEnumTypeByName("rnicd.v1.ErrorReason").values_by_number
        return values[number].name.removeprefix("ERROR_REASON_")


class Client:
    """One connection to the daemon."""

    def __init__(self, socket, types, options=()):
        self._types = types
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=[*_OPTIONS, *options])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    def method(self, name):
        """A unary method, "AdapterService/ListAdapters"."""
        return self._channel.unary_unary(f"/rnicd.v1.{name}", request_serializer=self._bytes,
                                         response_deserializer=self._reader(name))

    def stream(self, timeout=_TIMEOUT_S):
        name = "SessionService/WatchEvents"
        make = self._channel.unary_stream(f"/rnicd.v1.{name}", request_serializer=self._bytes,
                                          response_deserializer=self._reader(name))
        return make(b"", timeout=timeout)

    def begun_stream(self):
        stream = self.stream()
        stream.initial_metadata()
        return stream

    def request(self, name, **fields):
        return self._types.message(f"{name.split('/')[1]}Request")(**fields)

    def call(self, name, **fields):
        return self.method(name)(self.request(name, **fields), timeout=_TIMEOUT_S)

    def start(self, name, timeout=_TIMEOUT_S, **fields):
        return self.method(name).future(self.request(name, **fields), timeout=timeout)

    def refusal(self, name, request, **options):
        """Code, reason and field with which the daemon refuses."""
        try:
            answer = self.method(name)(request, timeout=_TIMEOUT_S, **options)
        except grpc.RpcError as failure:
            detail = self._detail(failure)
            return failure.code(), self._types.reason(detail.reason), detail.field
        raise AssertionError(f"not refused: {answer}")

    def _detail(self, failure):
        trailers = dict(failure.trailing_metadata() or ())
        check("grpc-status-details-bin" in trailers, failure)
        status = self._types.message("RpcStatus").FromString(trailers["grpc-status-details-bin"])
        check_equal((status.code, status.message), (failure.code().value[0], failure.details()))
        detail = self._types.message("ErrorDetail")()
        check(status.details[0].Unpack(detail), status)
        return detail

    def _bytes(self, request):
        return request if isinstance(request, bytes) else request.SerializeToString()

    def _reader(self, name):
        try:
            return self._types.message(f"{name.split('/')[1]}Response").FromString
        except KeyError:
            return bytes


class Session(Client):
    """A connection with a session and an open adapter."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.call("SessionService/OpenSession", label="interop")
        self._adapter_id = self.call("AdapterService/OpenAdapter").adapter_id

    def busy_pd(self):
        """A protection domain that cannot be closed yet, and the region that is in the way."""
        pd_id = self.call("MemoryService/CreatePd", adapter_id=self._adapter_id).pd_id
        return pd_id, self.call("MemoryService/CreateMr", pd_id=pd_id).mr_id

    def cause_event(self, context):
        pd_id, mr_id = self.busy_pd()
        answer = self.call("MemoryService/ClosePd", pd_id=pd_id, allow_pending=True, request_context=context)
        check_equal(answer.ntstatus, _STATUS_PENDING)
        self.call("MemoryService/CloseMr", mr_id=mr_id)

    def expect_event(self, stream, context):
        event = next(stream)
        check_equal((event.sequence, event.request_completed.request_context), (context, context))

    def expect_alive(self):
        check_equal(len(self.call("AdapterService/ListAdapters").adapters), 1)


class Storm:
    """Calls of random methods, most with an empty request and some with one that fills the socket. All are given up."""

    def __init__(self, session, types):
        self._session = session
        # The one that is left out ends the session.
        self._methods = [name for name in types.methods if name != "SessionService/CloseSession"]

    def run(self, calls_of_thread):
        memory_id = self._session.call("MemoryService/AllocateMemory", size=65536).memory_id
        threads = [threading.Thread(target=calls_of_thread, args=[random.Random(number)])
                   for number in range(_STORM_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._session.call("SessionService/GetSession")
        self._session.call("MemoryService/ReleaseMemory", memory_id=memory_id)

    def cancel(self, dice):
        running = []
        for _ in range(_STORM_CALLS):
            running.append(self._start(dice, _TIMEOUT_S))
            while len(running) > dice.randrange(8):
                running.pop(dice.randrange(len(running))).cancel()
        for call in running:
            call.cancel()

    def pass_deadlines(self, dice):
        for _ in range(_STORM_CALLS):
            self._start(dice, dice.uniform(0.0001, 0.002)).code()

    def _start(self, dice, timeout):
        request = b"x" * _MIB if dice.randrange(64) == 0 else b""
        return self._session.method(dice.choice(self._methods)).future(request, timeout=timeout)


class Cases:
    """A method for each case of the table."""

    def __init__(self, socket, types):
        self._target = (socket, types)

    def empty_unary(self):
        with Client(*self._target) as client:
            check_equal([adapter.name for adapter in client.call("AdapterService/ListAdapters").adapters], ["soft0"])

    def custom_metadata(self):
        with Client(*self._target) as client:
            answer = client.method("AdapterService/ListAdapters")(
                b"", timeout=_TIMEOUT_S, metadata=[("x-interop", "text"), ("x-interop-bin", bytes(range(256)))])
            check_equal(len(answer.adapters), 1)

    def unimplemented_method(self):
        with Client(*self._target) as client:
            check_equal(client.refusal("AdapterService/Nothing", b""),
                        (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN", ""))

    def unimplemented_service(self):
        with Client(*self._target) as client:
            check_equal(client.refusal("NoService/Nothing", b""),
                        (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN", ""))

    def status_with_utf8_and_details(self):
        with Client(*self._target) as client:
            name = "SessionService/OpenSession"
            check_equal(client.refusal(name, client.request(name, label="Grüße, 世界")),
                        (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_OUT_OF_RANGE", "label"))

    def malformed_message(self):
        with Client(*self._target) as client:
            # A label of five bytes, of which one is there.
            check_equal(client.refusal("SessionService/OpenSession", b"\x0a\x05a"),
                        (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_MALFORMED", "label"))

    def compressed_request(self):
        with Client(*self._target) as client:
            name = "SessionService/OpenSession"
            refused = client.refusal(name, client.request(name, label="a" * 1000), compression=grpc.Compression.Gzip)
            check_equal(refused, (grpc.StatusCode.UNIMPLEMENTED, "MESSAGE_COMPRESSED", ""))

    def large_unary(self):
        with Client(*self._target) as client:
            name = "SessionService/OpenSession"
            check_equal(client.refusal(name, client.request(name, label="a" * (4 * _MIB - 100))),
                        (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_OUT_OF_RANGE", "label"))

    def too_large_unary(self):
        with Session(*self._target) as session:
            name = "SessionService/OpenSession"
            for size in (4 * _MIB, 5 * _MIB, 20 * _MIB):
                check_equal(session.refusal(name, session.request(name, label="a" * size)),
                            (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE", ""))
            session.busy_pd()

    def deadline(self):
        with Session(*self._target) as session:
            pd_id, _ = session.busy_pd()
            began = time.monotonic()
            stream, call = session.stream(0.5), session.start("MemoryService/ClosePd", 0.5, pd_id=pd_id)
            check_equal((stream.code(), call.code()), (grpc.StatusCode.DEADLINE_EXCEEDED,) * 2)
            check(0.4 < time.monotonic() - began, time.monotonic() - began)

    def cancel_before_response(self):
        with Session(*self._target) as session:
            pd_id, mr_id = session.busy_pd()
            call = session.start("MemoryService/ClosePd", pd_id=pd_id)
            session.expect_alive()
            check(call.cancel() and call.code() == grpc.StatusCode.CANCELLED, call)
            session.call("MemoryService/CloseMr", mr_id=mr_id)
            session.busy_pd()

    def server_streaming(self):
        with Session(*self._target) as session:
            stream = session.begun_stream()
            for context in (1, 2, 3):
                session.cause_event(context)
                session.expect_event(stream, context)
            session.call("SessionService/CloseSession")
            check_equal([event.session_ending.cause for event in stream], ["closed"])
            check_equal(stream.code(), grpc.StatusCode.OK)

    def cancel_stream_after_begin(self):
        with Session(*self._target) as session:
            for _ in range(20):
                stream = session.begun_stream()
                stream.cancel()
                check_equal(stream.code(), grpc.StatusCode.CANCELLED)
            stream = session.begun_stream()
            session.cause_event(1)
            session.expect_event(stream, 1)

    def cancel_stream_after_first_message(self):
        with Session(*self._target) as session:
            for context in (1, 2, 3):
                stream = session.begun_stream()
                session.cause_event(context)
                session.expect_event(stream, context)
                stream.cancel()
                check_equal(stream.code(), grpc.StatusCode.CANCELLED)

    def cancel_storm(self):
        with Session(*self._target) as session:
            storm = Storm(session, self._target[1])
            storm.run(storm.cancel)

    def deadline_storm(self):
        with Session(*self._target) as session:
            storm = Storm(session, self._target[1])
            storm.run(storm.pass_deadlines)

    def thousand_concurrent_calls(self):
        with Client(*self._target) as client:
            calls = [client.start("AdapterService/ListAdapters") for _ in range(1000)]
            check_equal({call.code() for call in calls}, {grpc.StatusCode.OK})

    def keepalive(self):
        with Session(*self._target, _KEEPALIVE) as session:
            stream = session.begun_stream()
            time.sleep(_IDLE_S)
            session.cause_event(1)
            session.expect_event(stream, 1)

    def goaway_in_the_middle(self):
        with Session(*self._target) as session:
            stream = session.begun_stream()
            calls = [session.start("MemoryService/ClosePd", pd_id=session.busy_pd()[0]) for _ in range(8)]
            session.expect_alive()
            print("stop the daemon", flush=True)
            check_equal([event.session_ending.cause for event in stream], ["daemon_stopping"])
            codes = {call.code() for call in [stream, *calls, self._last_call(session)]}
            check(grpc.StatusCode.DEADLINE_EXCEEDED not in codes, codes)

    def _last_call(self, session):
        while True:
            call = session.start("AdapterService/ListAdapters")
            if call.code() != grpc.StatusCode.OK:
                return call


if __name__ == "__main__":
    sys.exit(run_cases(Cases(sys.argv[1], Types(sys.argv[2]))))
