"""The cases of cases.txt below gRPC: what curl, h2load and a plain HTTP/2 library (python3-h2) see.

usage: http2_tools.py SOCKET DESCRIPTORS
"""

import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

import h2.config
import h2.connection
import h2.errors
import h2.events

from run_cases import run_cases

_TIMEOUT_S = 30
_LIST_ADAPTERS = "/rnicd.v1.AdapterService/ListAdapters"
_GRPC_HEADERS = {"content-type": "application/grpc", "te": "trailers"}
_MIB = 1 << 20
# gRPC's codes.
_INVALID_ARGUMENT, _DEADLINE_EXCEEDED, _RESOURCE_EXHAUSTED = "3", "4", "8"


def check_equal(seen, expected):
    if seen != expected:
        raise AssertionError(f"{seen} instead of {expected}")


def message(size):
    """The prefix of a message of so many bytes."""
    return struct.pack(">BI", 0, size)


class Wire:
    """An HTTP/2 connection without gRPC. Its requests end when a case says so."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_TIMEOUT_S)
        self._socket.connect(path)
        self._http2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._http2.initiate_connection()
        self._events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def post(self, path, body=b"", ends=True, **headers):
        """Begins a request, and returns its stream."""
        stream = self._http2.get_next_available_stream_id()
        fields = {":method": "POST", ":scheme": "http", ":authority": "localhost", ":path": path, **_GRPC_HEADERS,
                  **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._http2.send_headers(stream, list(fields.items()))
        self._http2.send_data(stream, body, end_stream=ends)
        self._send()
        return stream

    def ping(self, data):
        self._http2.ping(data)
        self._send()
        while not any(isinstance(event, h2.events.PingAckReceived) and event.ping_data == data
                      for event in self._events):
            self._receive()
        self._events.clear()

    def await_event(self, stream, kind):
        """The stream's next event of this kind; those before it are dropped."""
        while True:
            while not self._events:
                self._receive()
            event = self._events.pop(0)
            if isinstance(event, h2.events.ConnectionTerminated):
                raise AssertionError(f"the daemon ended the connection: {event}")
            if getattr(event, "stream_id", None) == stream and isinstance(event, kind):
                return event

    def await_trailers(self, stream):
        """The headers with grpc-status, which are the first ones when there is no message."""
        while True:
            event = self.await_event(stream, (h2.events.ResponseReceived, h2.events.TrailersReceived,
                                              h2.events.StreamReset))
            if isinstance(event, h2.events.StreamReset):
                raise AssertionError(f"reset before its trailers: {event}")
            headers = dict(event.headers)
            if "grpc-status" in headers:
                return headers

    def _receive(self):
        data = self._socket.recv(65536)
        if not data:
            raise AssertionError("the daemon closed the connection")
        self._events += self._http2.receive_data(data)
        self._send()

    def _send(self):
        self._socket.sendall(self._http2.data_to_send())


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


class Cases:
    """A method for each case of the table."""

    def __init__(self, path):
        self._path = path
        # h2load maps what it sends.
        self._request = tempfile.NamedTemporaryFile()
        self._request.write(message(0))
        self._request.flush()

    def not_a_post(self):
        check_equal(self._curl("--http2-prior-knowledge").stdout, "405")

    def not_grpc(self):
        check_equal(self._curl("--http2-prior-knowledge", "--header", "content-type: application/json",
                               "--data", "{}").stdout, "415")

    def http1(self):
        # What a client of HTTP/1.1 gets is an HTTP/2 farewell, or nothing.
        check_equal(self._curl("--http1.1").stdout, "000")
        self.not_a_post()

    def no_message(self):
        self._expect(_INVALID_ARGUMENT, b"")

    def two_messages(self):
        self._expect(_INVALID_ARGUMENT, message(0) + message(0))

    def timeout_malformed(self):
        self._expect(_INVALID_ARGUMENT, message(0), grpc_timeout="soon")

    def deadline_of_the_server(self):
        with Wire(self._path) as wire:
            opened = wire.post("/rnicd.v1.SessionService/OpenSession", message(0))
            check_equal(wire.await_trailers(opened)["grpc-status"], "0")
            began = time.monotonic()
            stream = wire.post("/rnicd.v1.SessionService/WatchEvents", message(0), grpc_timeout="300m")
            check_equal(wire.await_trailers(stream)["grpc-status"], _DEADLINE_EXCEEDED)
            check_equal(time.monotonic() - began >= 0.3, True)

    def refused_before_the_request_ends(self):
        with Wire(self._path) as wire:
            for _ in range(3):
                stream = wire.post(_LIST_ADAPTERS, message(5 * _MIB), ends=False)
                check_equal(wire.await_trailers(stream)["grpc-status"], _RESOURCE_EXHAUSTED)
                reset = wire.await_event(stream, h2.events.StreamReset)
                check_equal(reset.error_code, h2.errors.ErrorCodes.NO_ERROR)
            check_equal(wire.await_trailers(wire.post(_LIST_ADAPTERS, message(0)))["grpc-status"], "0")

    def pings(self):
        with Wire(self._path) as wire:
            for number in range(100):
                wire.ping(struct.pack(">Q", number))

    def headers_too_large(self):
        with Wire(self._path) as wire:
            stream = wire.post(_LIST_ADAPTERS, message(0), x_large="a" * 16384)
            reset = wire.await_event(stream, h2.events.StreamReset)
            check_equal(reset.error_code, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            check_equal(wire.await_trailers(wire.post(_LIST_ADAPTERS, message(0)))["grpc-status"], "0")

    def windows_of_one_byte(self):
        self._load("--requests=100", "--window-bits=1", "--connection-window-bits=1")

    def a_thousand_streams(self):
        self._load("--requests=20000", "--max-concurrent-streams=1000")

    def many_connections(self):
        self._load("--requests=20000", "--clients=100", "--max-concurrent-streams=10")

    def goaway_under_load(self):
        command = self._h2load("--requests=10000000", "--clients=10", "--max-concurrent-streams=100")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            # h2load says so when a connection has begun.
            for line in load.stdout:
                if line.startswith("Application protocol"):
                    print("stop the daemon", flush=True)
                elif told := re.match(r"requests: (\d+) total, .* (\d+) succeeded", line):
                    total, succeeded = int(told[1]), int(told[2])
        # None at all, where the daemon stops before it has answered.
        check_equal((load.returncode, succeeded < total), (0, True))

    def _curl(self, *options):
        return run("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--unix-socket",
                   self._path, *options, f"http://localhost{_LIST_ADAPTERS}")

    def _expect(self, code, body, **headers):
        with Wire(self._path) as wire:
            trailers = wire.await_trailers(wire.post(_LIST_ADAPTERS, body, **headers))
            check_equal((trailers["grpc-status"], "grpc-status-details-bin" in trailers), (code, True))

    def _h2load(self, *options):
        headers = [f"--header={name}: {value}" for name, value in _GRPC_HEADERS.items()]
        return ["h2load", *headers, f"--data={self._request.name}", f"--base-uri=unix:{self._path}", *options,
                f"http://localhost{_LIST_ADAPTERS}"]

    def _load(self, *options):
        done = run(*self._h2load(*options))
        told = re.search(r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded", done.stdout)
        if told is None or told[1] != told[2]:
            raise AssertionError(done)


if __name__ == "__main__":
    sys.exit(run_cases(Cases(sys.argv[1])))
