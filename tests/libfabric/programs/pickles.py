"""A rank of mpi4py: passes objects around, with gRPC in the same process, and starts processes in the middle.

usage: pickles.py before | after: when grpc is imported
"""

import os
import subprocess
import sys

if sys.argv[1] == "before":
    import grpc
import mpi4py

# RxM loses parts of large messages that are received by their handle: with tcp, too.
mpi4py.rc.recv_mprobe = False
from mpi4py import MPI

if sys.argv[1] == "after":
    import grpc

world = MPI.COMM_WORLD


def pass_around(size):
    """Sends to the next rank, and checks what the one before sends."""
    content = {"rank": world.rank, "bytes": bytes([world.rank]) * size, "channel": grpc.__name__}
    request = world.isend(content, (world.rank + 1) % world.size)
    before = (world.rank - 1) % world.size
    received = world.recv(bytearray(size + 4096), before)
    request.wait()
    assert received["rank"] == before and received["bytes"] == bytes([before]) * size


for size in (0, 1000, 100_000):
    pass_around(size)
child = os.fork()
if child == 0:
    os._exit(sum(range(1000)) % 2)
pass_around(300_000)
assert os.waitpid(child, 0)[1] == 0
assert subprocess.run(["echo", "well"], stdout=subprocess.PIPE, check=True).stdout == b"well\n"
grpc.insecure_channel("unix:/nowhere").close()
assert world.allreduce(world.rank) == sum(range(world.size))
pass_around(100_000)
if world.rank == 0:
    print("all is well")
