"""Registers memory with rnicd using only gRPC and a Unix socket, and prints what a peer needs."""

import argparse
import ctypes
import mmap
import os
import pathlib
import sys

import fd_socket
import grpc
import rnicd_rpc

_PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
_STATUS_PENDING = 0x103


def attach(connection, fd_path, size):
    """Allocates memory in the daemon, maps and seals it. Returns its id and the mapping."""
    memory = connection.call("Memory", "AllocateMemory", size=size)
    descriptor = fd_socket.fetch(fd_path, memory.fd_ticket, connection.messages)
    try:
        # Before SealMemory: no new writable mapping can be created after it.
        mapping = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(descriptor)
    connection.call("Memory", "SealMemory", memory_id=memory.memory_id)
    return memory.memory_id, mapping


def register(connection, events, mr_id, memory_id, mapping):
    """Registers the whole mapping. The daemon completes at once, or returns STATUS_PENDING and sends an event."""
    flag = connection.messages.types.MrFlag
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    entry = connection.messages.types.MdlEntry(memory_id=memory_id, byte_offset=0, byte_count=len(mapping),
                                               virtual_address=address)
    answer = connection.call("Memory", "RegisterMr", mr_id=mr_id, mdl_chain=[entry], length=len(mapping),
                             flags=flag.MR_FLAG_ALLOW_REMOTE_READ | flag.MR_FLAG_ALLOW_REMOTE_WRITE,
                             allow_pending=True)
    if answer.ntstatus != _STATUS_PENDING:
        return answer.registration
    print("pending: the daemon registers it and will say so")
    completed = await_event(events, "request_completed")
    if completed.HasField("error"):
        raise connection.messages.refusal(completed.error)
    return completed.registration


def await_event(events, kind):
    """The next event of the kind. With several pending requests, match them by their request_context."""
    for event in events:
        if event.HasField(kind):
            return getattr(event, kind)
    raise ConnectionError(f"the event stream ended without {kind}")


def run(connection, socket_dir, size):
    session = connection.call("Session", "OpenSession", label="python-example",
                              grant=os.environ.get("RNICD_GRANT", ""))
    print(f"session {session.session_id} of tenant {session.tenant}")
    events = connection.stream("Session", "WatchEvents")

    memory_id, mapping = attach(connection, f"{socket_dir}/{session.fd_socket_name}", size)
    mapping[:5] = b"hello"

    adapter = connection.call("Adapter", "OpenAdapter")
    pd_id = connection.call("Memory", "CreatePd", adapter_id=adapter.adapter_id).pd_id
    mr_id = connection.call("Memory", "CreateMr", pd_id=pd_id).mr_id
    region = register(connection, events, mr_id, memory_id, mapping)
    print(f"{region.length} bytes at {region.base_virtual_address:#x} on {adapter.adapter_name}")
    print(f"local token {region.local_token:#010x}, remote token {region.remote_token:#010x}")

    # Children before parents; the tokens are invalid after the first line.
    connection.call("Memory", "DeregisterMr", mr_id=mr_id)
    connection.call("Memory", "CloseMr", mr_id=mr_id)
    connection.call("Memory", "ClosePd", pd_id=pd_id)
    connection.call("Adapter", "CloseAdapter", adapter_id=adapter.adapter_id)
    connection.call("Memory", "ReleaseMemory", memory_id=memory_id)
    connection.call("Session", "CloseSession")
    print("the session ended:", await_event(events, "session_ending").cause)


def main(story, description):
    """Runs the story on a connection of its own, with the program's arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=int, default=1 << 20, help="bytes, whole pages of 4096")
    parser.add_argument("socket_dir", nargs="?", default=os.environ.get("RNICD_SOCKET_DIR", "/run/rnicd"))
    options = parser.parse_args()
    connection = rnicd_rpc.Connection(options.socket_dir, rnicd_rpc.Messages(_PROTO))
    try:
        story(connection, options.socket_dir, options.size)
    except rnicd_rpc.Refused as refused:
        print(f"refused: {refused}", file=sys.stderr)
        return 1
    except grpc.RpcError as failure:
        print(f"no answer: {failure.code().name}, {failure.details()}", file=sys.stderr)
        return 1
    except OSError as failure:
        print(f"no answer: {failure}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(run, __doc__))
