"""Registers scattered pages by a work request, lets a peer write into them, and takes the right back: gRPC only."""

import sys

import rnicd_rpc
from register_memory import attach, main

_PAGE = 4096
# The region's address for peers: any whole number of pages but 0.
_BASE = 1 << 32
_CQ_DEPTH = 16
_INLINE_BYTES = 64
# Less than the deadline of a call: completions in a response that comes too late are lost.
_WAIT_MS = 10_000


class Queue:
    """A queue pair with a completion queue of its own."""

    def __init__(self, connection, adapter_id, pd_id):
        self._connection = connection
        self._cq_id = connection.call("Queue", "CreateCq", adapter_id=adapter_id, cq_depth=_CQ_DEPTH).cq_id
        created = connection.call("Queue", "CreateQp", pd_id=pd_id, receive_cq_id=self._cq_id,
                                  initiator_cq_id=self._cq_id, initiator_queue_depth=_CQ_DEPTH,
                                  max_initiator_request_sge=1, inline_data_size=_INLINE_BYTES)
        self._qp_id, self.address = created.qp_id, created.address

    def connect(self, peer_address):
        self._connection.call("Queue", "ConnectQp", qp_id=self._qp_id, peer_address=peer_address)

    def run(self, **request):
        """Posts one work request and waits until it is complete. Returns the token that it issued, or 0."""
        messages = self._connection.messages
        answer = self._connection.call("Queue", "Post", qp_id=self._qp_id,
                                       requests=[messages.work_request.WorkRequest(**request)])
        if answer.HasField("failure"):
            raise messages.refusal(answer.failure)
        completion = self.poll()
        if completion.ntstatus:
            raise messages.failed(completion)
        return answer.issued_tokens[0].remote_token if answer.issued_tokens else 0

    def poll(self):
        """The next completion. The daemon waits for it: nothing is armed, and no event has to be read."""
        answer = self._connection.call("Queue", "GetCqResults", cq_id=self._cq_id, max_results=1, wait_ms=_WAIT_MS)
        if not answer.results:
            raise TimeoutError("no completion came")
        return answer.results[0]


def logical_pages(connection, adapter_id, memory_id, size):
    """The pages of a memory, each as an address that FastRegister understands."""
    entry = connection.messages.types.MdlEntry(memory_id=memory_id, byte_count=size, virtual_address=_BASE)
    return connection.call("Memory", "BuildLam", adapter_id=adapter_id, mdl_chain=[entry],
                           length=size).adapter_page_array


def run(connection, socket_dir, size):
    messages = connection.messages
    flag, work = messages.work_request.OpFlag, messages.work_request.WorkRequest
    session = connection.call("Session", "OpenSession", label="python-queues")
    memory_id, mapping = attach(connection, f"{socket_dir}/{session.fd_socket_name}", size)
    adapter_id = connection.call("Adapter", "OpenAdapter").adapter_id
    pd_id = connection.call("Memory", "CreatePd", adapter_id=adapter_id).pd_id

    # The region for the pages, and two queue pairs: the owner's, and one in the place of the peer's.
    mr_id = connection.call("Memory", "CreateMr", pd_id=pd_id, fast_register=True).mr_id
    connection.call("Memory", "InitializeFastRegisterMr", mr_id=mr_id, adapter_page_count=size // _PAGE,
                    remote_access=True)
    owner, peer = (Queue(connection, adapter_id, pd_id) for _ in range(2))
    owner.connect(peer.address)
    peer.connect(owner.address)

    # The pages may be in any order; here it is reversed. The token is new with each FastRegister.
    pages = list(reversed(logical_pages(connection, adapter_id, memory_id, size)))
    token = owner.run(fast_register=work.FastRegister(mr_id=mr_id, adapter_page_array=pages, length=size,
                                                      base_virtual_address=_BASE),
                      flags=flag.OP_FLAG_ALLOW_REMOTE_WRITE)
    sge = messages.work_request.Sge(length=5, inline_data=b"hello")
    write = work.Write(sges=[sge], remote_address=_BASE, remote_token=token)
    peer.run(write=write, flags=flag.OP_FLAG_INLINE)
    print(f"token {token:#010x}, the last page begins with {mapping[-_PAGE:-_PAGE + 5]}")

    owner.run(invalidate=work.Invalidate(mr_id=mr_id))
    try:
        peer.run(write=write, flags=flag.OP_FLAG_INLINE)
    except rnicd_rpc.Failed as failed:
        print("after the invalidation:", failed)
    connection.call("Session", "CloseSession")


if __name__ == "__main__":
    sys.exit(main(run, __doc__))
