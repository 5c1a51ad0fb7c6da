"""Registers pages through a ring and reads the completion from shared memory; all else by gRPC. See docs/RINGS.md.

Python has no atomics. So this client always rings the doorbell, and always waits with the pipe; both are right on x86.
"""

import mmap
import os
import platform
import select
import struct
import sys

import fd_socket
from fast_register import Queue, logical_pages
from register_memory import attach, main

_PAGE = 4096
_BASE = 1 << 32
_DEPTH = 16
_ENTRY_BYTES = 64
# Any number; it returns with the completion, and shows whose it is.
_CONTEXT = 7
# A wake-up that is missed costs this time at most.
_WAIT_SECONDS = 1

# The layouts of docs/RINGS.md. "<" means little-endian and without gaps, "x" a byte that is 0.
_DESCRIPTION = struct.Struct("<8sIIIIIII4x")
_SUBMISSION = struct.Struct("<QHHIQQIIIII12x")
_OUTCOME = struct.Struct("<QIIHHIIIIIQQQ")
_REQUEST = struct.Struct("<QIBBHQQQQIIQ")
_RESULT = struct.Struct("<IIHHIQQI28x")
_POST, _FAST_REGISTER = 1, 6

# Words of the headers: offsets from the start of the file.
_SUBMISSION_TAIL, _END_REASON = 128, 268
_COMPLETION_TAIL, _COMPLETION_HEAD, _COMPLETION_WAKEUP = 384, 512, 516
_QUEUE_TAIL, _QUEUE_STATUS, _QUEUE_HEAD, _QUEUE_WAKEUP = 128, 136, 256, 260
_WAKE_BY_PIPE = 2


class SharedFile:
    """The memory of a ring or of a mapped queue, and the pipe in which the daemon says that there is news."""

    def __init__(self, fetch, magic, file_bytes, memory_ticket, pipe_ticket):
        descriptor = fetch(memory_ticket)
        try:
            self.bytes = mmap.mmap(descriptor, file_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(descriptor)
        self._pipe = fetch(pipe_ticket)
        # The words of the header are read and written through this view, which copies the 4 bytes at once. struct may
        # copy them one by one, and the daemon could see an index that is half new and half old.
        self._words = memoryview(self.bytes).cast("I")
        (found, version, _, self.submission_offset, self.completion_offset, self.entries, self.payload_offset,
         self.payload_bytes) = _DESCRIPTION.unpack_from(self.bytes, 0)
        if (found, version) != (magic, 1):
            raise ConnectionError(f"not a file of this kind and version: {found}, {version}")

    def load(self, offset):
        return self._words[offset // 4]

    def store(self, offset, value):
        # Indices run through all 32 bits and then begin at 0 again.
        self._words[offset // 4] = value & 0xFFFFFFFF

    def slot(self, number):
        """Where in its array the entry of this number is: there are as many slots as a power of two."""
        return (number & (self.entries - 1)) * _ENTRY_BYTES

    def wait(self, wakeup, has_news):
        """Sleeps until has_news(). The order is what matters: say how to be woken, then look, and only then sleep.

        The daemon does the same the other way round: it writes its news, and then looks how to wake us. So either we
        see the news, or it sees that we want to be woken.
        """
        self.store(wakeup, _WAKE_BY_PIPE)
        while True:
            # Reading takes out the bytes of earlier news. It is also the barrier between store and load.
            daemon_is_there = self._empty_pipe()
            if has_news():
                break
            if not daemon_is_there:
                raise ConnectionError("the daemon has let go of the ring or queue")
            select.select([self._pipe], [], [], _WAIT_SECONDS)
        self.store(wakeup, 0)

    def _empty_pipe(self):
        """False when the other end is closed: reading gives 0 bytes then."""
        try:
            while os.read(self._pipe, 64):
                pass
        except BlockingIOError:
            return True
        return False


class Ring:
    """A ring with one request at a time, so that its payload can always be at the start of the payload area."""

    def __init__(self, connection, fetch):
        opened = connection.call("Ring", "OpenRing")
        self.ring_id = opened.ring_id
        self._file = SharedFile(fetch, b"RNIDRING", opened.file_bytes, opened.memory_ticket, opened.pipe_ticket)
        self._doorbell = fetch(opened.doorbell_ticket)
        self._submitted = self._read = 0
        print(f"ring: {self._file.entries} entries, {self._file.payload_bytes} bytes of payload")

    def post(self, qp_id, request):
        """Posts one work request. Returns the outcome's status, its reason, and the token that was issued."""
        file = self._file
        # 1. The payload, and behind it 8 bytes of room for the token.
        file.bytes[file.payload_offset:file.payload_offset + len(request)] = request
        # 2. The entry, in the slot of its number.
        _SUBMISSION.pack_into(file.bytes, file.submission_offset + file.slot(self._submitted),
                              self._submitted, _POST, 0, 1, qp_id, 0, 0, 0, len(request), len(request), 8)
        # 3. Only then the tail, which tells the daemon that the entry is there.
        self._submitted += 1
        file.store(_SUBMISSION_TAIL, self._submitted)
        # 4. The doorbell: any 8-byte number. With atomics we would look first whether the daemon needs it.
        os.write(self._doorbell, struct.pack("<Q", 1))
        return self._outcome(len(request))

    def _outcome(self, result_offset):
        file = self._file
        file.wait(_COMPLETION_WAKEUP,
                  lambda: file.load(_COMPLETION_TAIL) != self._read & 0xFFFFFFFF or file.load(_END_REASON))
        if file.load(_COMPLETION_TAIL) == self._read & 0xFFFFFFFF:
            raise ConnectionError(f"the ring has ended: reason {file.load(_END_REASON)} of docs/ERRORS.md")
        outcome = _OUTCOME.unpack_from(file.bytes, file.completion_offset + file.slot(self._read))
        token, = struct.unpack_from("<I", file.bytes, file.payload_offset + result_offset)
        # Now the daemon may use the slot of the outcome again, and we those of the request.
        self._read += 1
        file.store(_COMPLETION_HEAD, self._read)
        return outcome[1], outcome[2], token


class MappedQueue:
    """A completion queue in shared memory: nothing is called to read it."""

    def __init__(self, connection, fetch, adapter_id):
        created = connection.call("Queue", "CreateCq", adapter_id=adapter_id, cq_depth=_DEPTH, mapped=True)
        self.cq_id = created.cq_id
        mapped = created.mapped
        self._file = SharedFile(fetch, b"RNIDCOM ", mapped.file_bytes, mapped.memory_ticket, mapped.pipe_ticket)
        self._read = 0

    def poll(self):
        """Waits for the next completion. Returns its status, its reason and its context."""
        file = self._file
        file.wait(_QUEUE_WAKEUP, lambda: file.load(_QUEUE_TAIL) != self._read & 0xFFFFFFFF or file.load(_QUEUE_STATUS))
        if file.load(_QUEUE_STATUS):
            raise ConnectionError(f"the queue has failed: NTSTATUS {file.load(_QUEUE_STATUS):#x}")
        status, reason, _, _, _, _, context, _ = _RESULT.unpack_from(
            file.bytes, file.completion_offset + file.slot(self._read))
        self._read += 1
        file.store(_QUEUE_HEAD, self._read)
        return status, reason, context


def fast_register(mr_id, pages, flags):
    """A record of a work request, and behind it the pages: 8 bytes each."""
    record = _REQUEST.pack(_CONTEXT, flags, _FAST_REGISTER, 0, len(pages), mr_id, 0, _BASE, len(pages) * _PAGE, 0, 0, 0)
    return record + struct.pack(f"<{len(pages)}Q", *pages)


def run(connection, socket_dir, size):
    if platform.machine() != "x86_64":
        raise OSError("without atomics a ring can be used on x86 only; use fast_register.py")
    messages = connection.messages
    flag, work = messages.work_request.OpFlag, messages.work_request.WorkRequest
    session = connection.call("Session", "OpenSession", label="python-ring")
    fd_path = f"{socket_dir}/{session.fd_socket_name}"

    def fetch(ticket):
        return fd_socket.fetch(fd_path, ticket, messages)

    # Setup by calls, as in fast_register.py: memory, a region of the fast kind, two connected queue pairs.
    memory_id, mapping = attach(connection, fd_path, size)
    adapter_id = connection.call("Adapter", "OpenAdapter").adapter_id
    pd_id = connection.call("Memory", "CreatePd", adapter_id=adapter_id).pd_id
    mr_id = connection.call("Memory", "CreateMr", pd_id=pd_id, fast_register=True).mr_id
    connection.call("Memory", "InitializeFastRegisterMr", mr_id=mr_id, adapter_page_count=size // _PAGE,
                    remote_access=True)
    pages = logical_pages(connection, adapter_id, memory_id, size)
    queue = MappedQueue(connection, fetch, adapter_id)
    pair = connection.call("Queue", "CreateQp", pd_id=pd_id, receive_cq_id=queue.cq_id, initiator_cq_id=queue.cq_id,
                           initiator_queue_depth=_DEPTH)
    peer = Queue(connection, adapter_id, pd_id)
    connection.call("Queue", "ConnectQp", qp_id=pair.qp_id, peer_address=peer.address)
    peer.connect(pair.address)

    # From here on, no call: the request goes through the ring, its completion comes through the mapped queue.
    ring = Ring(connection, fetch)
    status, reason, token = ring.post(pair.qp_id, fast_register(mr_id, pages, flag.OP_FLAG_ALLOW_REMOTE_WRITE))
    print(f"posted: status {status:#x}, token {token:#010x}")
    status, reason, context = queue.poll()
    print(f"completed: status {status:#x}, context {context}")

    # The token works: the peer writes with it, by a call of its own.
    sge = messages.work_request.Sge(length=5, inline_data=b"hello")
    peer.run(write=work.Write(sges=[sge], remote_address=_BASE, remote_token=token), flags=flag.OP_FLAG_INLINE)
    print(f"the peer wrote {mapping[:5]}")

    # A refusal is an outcome like any other.
    status, reason, _ = ring.post(0, fast_register(mr_id, pages, 0))
    print(f"refused: status {status:#x}, {messages.error.ErrorReason.Name(reason)}")
    connection.call("Ring", "CloseRing", ring_id=ring.ring_id)
    connection.call("Session", "CloseSession")


if __name__ == "__main__":
    sys.exit(main(run, __doc__))
