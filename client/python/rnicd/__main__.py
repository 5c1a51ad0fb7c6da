"""`python3 -m rnicd`: checks step by step what a program needs, and says in plain words what is missing.

usage: python3 -m rnicd [--socket-dir FOLDER] [--size SIZE]

The exit status is 0 if everything works.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import socket
import stat
import sys
import time
from importlib import metadata
from typing import Callable, List

import rnicd

from ._amounts import parse_size
from ._link import DEFAULT_SOCKET_DIR

_ADVICE = {
    "RATE_LIMITED": "This pod, container or user has more calls or connections than it may have now: try again later.",
    "TENANT_REFUSED": "The node's policy has no tenant for this process. Ask the operator for a rule, or for a grant, "
    "and put its secret into RNICD_GRANT.",
    "GRANT_REFUSED": "The secret in RNICD_GRANT is not valid here: it has expired, was revoked, or belongs to another "
    "pod. Ask the operator for a new grant.",
    "ADAPTER_NOT_FOUND": "The daemon has no card. Ask the operator to look at `rnicctl adapters`.",
    "QUOTA_SESSIONS": "The tenant has all the sessions that it may have. Close one, or ask the operator for more.",
    "QUOTA_MEMORY_BYTES": "The limit on memory is too low for the test: try a smaller --size, or ask for more.",
    "QUOTA_PINNED_BYTES": "The limit on pinned memory is too low for the test: try a smaller --size, or ask for more.",
    "MEMORY_PAGES_UNAVAILABLE": "The node, or the daemon's control group, has no memory left.",
    "DEVICE_MEMLOCK_LIMIT": "The daemon may not pin more memory: its own memlock limit is too low.",
}


_LISTENER_SECONDS = 5.0
_LISTENER_ADVICE = {
    "none": "Nothing listens on the socket: the daemon was stopped, or is another one's. systemctl status 'rnicd@*'",
    "refuses": "A daemon listens, and closes this connection at once: too many connections, or it cannot identify this "
    "process. docs/ERRORS.md explains `connection refused`.",
    "hangs": "A daemon listens, but does not answer: is it overloaded, or stopped with SIGSTOP? "
    "systemctl status 'rnicd@*'",
    "answers": "A daemon listens, and answers now: try again. It may have been overloaded, or just started.",
}


class Missing(Exception):
    """A step failed: its words, and what to do."""

    def __init__(self, words: str, advice: str) -> None:
        super().__init__(words)
        self.advice = advice


def version_of(package: str) -> str:
    """The installed version of a Python package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def check_versions() -> str:
    """Versions of what the package runs on."""
    return (
        f"rnicd {rnicd.__version__}, Python {platform.python_version()}, grpcio {version_of('grpcio')}, "
        f"protobuf {version_of('protobuf')}, Linux {platform.release()}"
    )


def check_sockets(folder: str) -> str:
    """That the directory and rpc.sock are there and may be used."""
    path = os.path.join(folder, "rpc.sock")
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        if not os.path.isdir(folder):
            raise Missing(
                f"there is no directory {folder}",
                "Mount the daemon's socket directory there, or name it in RNICD_SOCKET_DIR. On the node itself: is "
                "rnicd installed and running?",
            ) from None
        raise Missing(f"{folder} has no rpc.sock", "The daemon does not run: systemctl status 'rnicd@*'") from None
    except PermissionError:
        raise Missing(
            f"this user may not look into {folder}", "Join the group that owns it, or ask the operator."
        ) from None
    except NotADirectoryError:
        raise Missing(
            f"{folder} is not a directory", "RNICD_SOCKET_DIR names the directory of rpc.sock, not the socket itself."
        ) from None
    except OSError as failure:
        raise Missing(f"{path} cannot be reached: {failure.strerror}", "Correct RNICD_SOCKET_DIR.") from None
    if not stat.S_ISSOCK(kind):
        raise Missing(
            f"{path} is not a socket", "Something else is mounted there: mount the daemon's socket directory."
        )
    if not os.access(path, os.W_OK):
        raise Missing(f"this user may not write to {path}", "Join the group that owns it, or ask the operator.")
    return path


def grant_words() -> str:
    """Where the permission comes from, without the secret."""
    secret = os.environ.get("RNICD_GRANT", "")
    return "RNICD_GRANT is set" if secret else "RNICD_GRANT is not set: the node's policy decides"


def advice_for(failure: rnicd.Error, folder: str) -> str:
    """What to do about a failure."""
    if isinstance(failure, rnicd.Refused):
        return _ADVICE.get(failure.reason, f"docs/ERRORS.md explains {failure.reason}.")
    if isinstance(failure, rnicd.Unavailable) and failure.detail is not None:
        return "The daemon takes no new sessions for now: try again later, or ask the operator."
    return _LISTENER_ADVICE[listener(folder)]


def listener(folder: str) -> str:
    """What is behind the socket: a key of _LISTENER_ADVICE."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_LISTENER_SECONDS)
        try:
            connection.connect(os.path.join(folder, "rpc.sock"))
            return "answers" if connection.recv(1) else "refuses"
        except (BrokenPipeError, ConnectionResetError):
            return "refuses"
        except socket.timeout:
            return "hangs"
        except OSError:
            return "none"


def transfer(session: rnicd.Session, size: int) -> str:
    """Writes pattern bytes from one half of a memory to the other."""
    with session.allocate(2 * size) as memory, memory.register(remote="rw") as region:
        memory[:size] = bytes(range(256)) * (size // 256)
        with session.queue_pair() as one, session.queue_pair() as other:
            one.connect(other.address)
            other.connect(one.address)
            began = time.perf_counter()
            one.write(region[:size], region.remote, offset=size)
            seconds = time.perf_counter() - began
            path = "through shared memory" if session.data_path == "rings" else "by calls"
            if memory[size:] != memory[:size]:
                raise Missing("the bytes that arrived are not those that were sent", "Report this: it is a bug.")
    return f"{size} bytes written and compared, {seconds * 1e6:.0f} us; requests travel {path}"


class Report:
    """Prints a line for each step."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def step(self, name: str, check: Callable[[], str]) -> bool:
        """Runs a check and prints its outcome; False if it failed."""
        try:
            words = check()
        except Missing as missing:
            return self._fail(name, str(missing), missing.advice)
        except rnicd.Error as failure:
            return self._fail(name, str(failure), advice_for(failure, self._folder))
        print(f"ok       {name:10} {words}")
        return True

    def _fail(self, name: str, words: str, advice: str) -> bool:
        print(f"MISSING  {name:10} {words}\n         {'':10} {advice}")
        return False


def check_all(folder: str, size: int) -> bool:
    """All steps, up to the first that fails."""
    report = Report(folder)
    opened: List[rnicd.Session] = []

    def connect() -> str:
        opened.append(rnicd.connect(folder, label="self test"))
        return f"session {opened[0].id} of tenant {opened[0].tenant}; {grant_words()}"

    def card() -> str:
        info = opened[0].adapter_info()
        return f"{opened[0].adapter}, at most {info.max_registration_size >> 20} MiB in one registration"

    try:
        return (
            report.step("versions", check_versions)
            and report.step("socket", lambda: check_sockets(folder))
            and report.step("session", connect)
            and report.step("card", card)
            and report.step("transfer", lambda: transfer(opened[0], size))
        )
    finally:
        for session in opened:
            with contextlib.suppress(rnicd.Error):
                session.close()


def dashed(argument: str) -> str:
    """The argument; if it is an option, its name has dashes for underscores."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else argument


def main() -> int:
    """The self test; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m rnicd", description="Checks what a program needs to use rnicd.")
    default = os.environ.get("RNICD_SOCKET_DIR") or DEFAULT_SOCKET_DIR
    parser.add_argument("--socket-dir", default=default, help="directory of rpc.sock (default: %(default)s)")
    parser.add_argument("--size", default="64KiB", help="bytes to transfer, whole pages (default: %(default)s)")
    options = parser.parse_args([dashed(argument) for argument in sys.argv[1:]])
    try:
        size = parse_size(options.size)
    except rnicd.InvalidArgument as wrong:
        parser.error(str(wrong))
    if not check_all(options.socket_dir, size):
        return 1
    print("everything works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
