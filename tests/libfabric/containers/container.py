#!/usr/bin/python3
"""Runs a rank of a job in a container of its own: without network, device or capability.

usage: container.py FOLDER PROGRAM ARGUMENT...   (by mpirun)

The container sees of FOLDER run/rnicd, the daemon's sockets; bin; peers, where ranks find each other; and job, where
Open MPI keeps its files. It sees this machine's programs, and can write nowhere but in the last two.

The container has only a loopback device of its own. Open MPI's launcher, which listens on that of the machine, is
reached through a Unix socket in job: what comes to its port in here is passed on.
"""

import os
import re
import socket
import sys
from threading import Thread

_LAUNCHER = "PMIX_SERVER_URI2"


def pump(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def relay(listening, family, address):
    """A process that passes one connection on, and ends with it."""
    if os.fork() != 0:
        listening.close()
        return
    accepted, _ = listening.accept()
    onward = socket.socket(family)
    onward.connect(address)
    Thread(target=pump, args=(onward, accepted)).start()
    pump(accepted, onward)


def listen(family, address):
    listening = socket.socket(family)
    listening.bind(address)
    listening.listen()
    return listening


def outside(folder, *command):
    port = int(re.search(r":(\d+)$", os.environ[_LAUNCHER])[1])
    door = f"{folder}/job/launcher.{os.environ['PMIX_RANK']}"
    relay(listen(socket.AF_UNIX, door), socket.AF_INET, ("127.0.0.1", port))
    os.execvp("bwrap", [
        "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc",
        "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--ro-bind", f"{folder}/run/rnicd", "/run/rnicd",
        "--bind", f"{folder}/peers", "/run/peers", "--bind", f"{folder}/job", f"{folder}/job",
        "--ro-bind", f"{folder}/bin", f"{folder}/bin", "--setenv", "RNICD_SOCKET_DIR", "/run/rnicd",
        "--setenv", "FI_RNICD_SOCKET_DIR", "/run/peers", "--ro-bind", __file__, "/run/container.py",
        sys.executable, "/run/container.py", "--inside", str(port), door, *command])


def inside(port, door, *command):
    relay(listen(socket.AF_INET, ("127.0.0.1", int(port))), socket.AF_UNIX, door)
    os.execvp(command[0], command)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(*sys.argv[2:])
    else:
        outside(*sys.argv[1:])
