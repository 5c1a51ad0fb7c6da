"""`python3 -m rnicd`, and the package as it is installed."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import rnicd
from rnicd import __main__ as _main

from daemon import Daemon

_REPOSITORY = Path(__file__).resolve().parents[2]


def self_test(*options):
    return subprocess.run(
        [sys.executable, "-m", "rnicd", *options], capture_output=True, text=True, timeout=60, check=False
    )


def test_says_that_everything_works(daemon):
    done = self_test("--socket-dir", daemon.socket_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("everything works\n") and "MISSING" not in done.stdout
    assert "grpcio" in done.stdout and "soft0" in done.stdout


def test_takes_the_daemons_spelling_of_an_option(daemon):
    assert self_test(f"--socket_dir={daemon.socket_dir}").returncode == 0


def test_says_how_requests_travel(daemon, monkeypatch):
    assert "requests travel through shared memory" in self_test("--socket-dir", daemon.socket_dir).stdout
    monkeypatch.setenv("RNICD_DATA_PATH", "calls")
    assert "requests travel by calls" in self_test("--socket-dir", daemon.socket_dir).stdout


def test_names_a_directory_that_is_not_there(folder):
    done = self_test("--socket-dir", str(folder / "nowhere"))
    assert done.returncode == 1 and "there is no directory" in done.stdout and "RNICD_SOCKET_DIR" in done.stdout


def test_names_a_daemon_that_does_not_run(folder):
    done = self_test("--socket-dir", str(folder))
    assert done.returncode == 1 and "has no rpc.sock" in done.stdout
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(folder / "rpc.sock"))
    done = self_test("--socket-dir", str(folder))
    assert done.returncode == 1 and "Nothing listens on the socket" in done.stdout


def test_names_a_daemon_that_hangs_or_refuses(folder):
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(folder / "rpc.sock"))
        busy.listen()
        assert "does not answer" in _main.advice_for(rnicd.Unavailable("late"), str(folder))

        def refuse():
            while True:
                try:
                    busy.accept()[0].close()
                except OSError:
                    return

        refusing = threading.Thread(target=refuse)
        refusing.start()
        done = self_test("--socket-dir", str(folder))
        busy.shutdown(socket.SHUT_RDWR)
        refusing.join()
    assert done.returncode == 1 and "closes this connection at once" in done.stdout
    assert "Nothing listens" not in done.stdout and done.stderr == ""


def test_names_a_path_that_is_no_directory(daemon, folder):
    for wrong in (folder / "s" / "rpc.sock", folder / "rnicd.log" / "deeper", "/" + 300 * "x"):
        done = self_test("--socket-dir", str(wrong))
        assert (done.returncode, done.stderr) == (1, ""), done
        assert "RNICD_SOCKET_DIR" in done.stdout


def test_an_obsolete_poller_of_grpc_is_replaced_in_words(daemon, monkeypatch):
    for obsolete in ("epollsig", "", "EPOLL1"):
        monkeypatch.setenv("GRPC_POLL_STRATEGY", obsolete)
        done = self_test("--socket-dir", daemon.socket_dir)
        assert done.returncode == 0 and f'GRPC_POLL_STRATEGY="{obsolete}" names no poller' in done.stderr, done


def test_names_a_file_that_is_not_a_socket(folder):
    (folder / "rpc.sock").write_text("")
    done = self_test("--socket-dir", str(folder))
    assert done.returncode == 1 and "is not a socket" in done.stdout


def test_names_a_grant_that_is_not_valid(daemon, monkeypatch):
    monkeypatch.setenv("RNICD_GRANT", "00" * 32)
    done = self_test("--socket-dir", daemon.socket_dir)
    assert done.returncode == 1 and "RNICD_GRANT" in done.stdout and "GRANT_REFUSED" in done.stdout
    assert "00" * 32 not in done.stdout


def test_names_a_limit_that_is_too_low(folder):
    daemon = Daemon(folder, session_limits="memory_bytes: 4096")
    try:
        done = self_test("--socket-dir", daemon.socket_dir)
        assert done.returncode == 1 and "QUOTA_MEMORY_BYTES" in done.stdout and "smaller --size" in done.stdout
        assert self_test("--socket-dir", daemon.socket_dir, "--size", "some").returncode == 2
    finally:
        daemon.stop()


def test_the_version_is_the_projects():
    project = (_REPOSITORY / "CMakeLists.txt").read_text()
    assert re.search(r"project\(rnicd VERSION (\S+)", project)[1] == rnicd.__version__


def test_importing_loads_neither_numpy_nor_torch():
    program = "import rnicd, rnicd.aio, sys; sys.exit(any(name in sys.modules for name in ('numpy', 'torch')))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
