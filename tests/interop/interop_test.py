"""Runs the cases of cases.txt with every client, each against a daemon of its own.

usage: interop_test.py --source REPOSITORY --rnicd PROGRAM --client NAME=COMMAND...
"""

import argparse
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from polling import wait_for

_CLIENT_S = 180
_STOP_S = 30
# Clients of the table's second part.
_HTTP2_CLIENTS = ("tools",)
# The line with which a client asks for the daemon's SIGTERM.
_STOP_LINE = "stop the daemon"
given = argparse.Namespace()


def read_cases(path, part):
    text = re.search(rf"^\[{part}\]\n(.*?)(?=^\[|\Z)", path.read_text(), re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^(\w+): \S", text, re.MULTILINE)


class Daemon:
    """The real daemon with the soft card, in a separate folder."""

    def __init__(self, folder):
        self.socket = f"{folder}/s/rpc.sock"
        self._log = Path(folder) / "rnicd.log"
        with open(self._log, "wb") as log:
            self._child = subprocess.Popen([given.rnicd, f"--socket_dir={folder}/s", "--metrics_address="],
                                           stdout=log, stderr=subprocess.STDOUT)
        wait_for("the daemon", lambda: Path(self.socket).is_socket() or self._child.poll() is not None)
        if self._child.poll() is not None:
            raise RuntimeError(f"the daemon does not serve: {self.log()}")

    def log(self):
        return self._log.read_text(errors="replace")

    def terminate(self):
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    def stop(self):
        """Returns the daemon's exit status."""
        self.terminate()
        try:
            return self._child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()


class ClientRun:
    """One client's run: its report, and what is wrong with it."""

    def __init__(self, name, command, cases):
        self._name, self._command, self._cases = name, command, cases
        self._reported, self.problems = [], []

    def run(self, folder):
        daemon = Daemon(folder)
        try:
            self._run_client(daemon)
        finally:
            status = daemon.stop()
        if status != 0:
            self.problems.append(f"the daemon exited with {status}")
        if self._reported != self._cases:
            self.problems.append(f"reported {self._reported}, which are not the cases of cases.txt")
        if self.problems:
            print("--- the daemon's log", *daemon.log().splitlines()[-20:], sep="\n    ")

    def _run_client(self, daemon):
        client = subprocess.Popen([*shlex.split(self._command), daemon.socket, f"{given.descriptors}"],
                                  stdout=subprocess.PIPE, text=True, errors="replace")
        watchdog = threading.Timer(_CLIENT_S, client.kill)
        watchdog.start()
        try:
            for line in client.stdout:
                self._take(line.rstrip("\n"), daemon)
            status = client.wait()
        finally:
            watchdog.cancel()
            client.kill()
        if status != 0:
            self.problems.append(f"the client exited with {status}, after {self._reported[-1:] or 'nothing'}")

    def _take(self, line, daemon):
        if line == _STOP_LINE:
            daemon.terminate()
            return
        print(f"{self._name}: {line}", flush=True)
        case, _, result = line.partition(" ")
        self._reported.append(case)
        if result != "ok":
            self.problems.append(line)


def make_descriptors(folder):
    given.descriptors = Path(folder) / "rnicd.descriptors"
    protos = given.source / "proto"
    subprocess.run(["protoc", f"--proto_path={protos}", "--include_imports",
                    f"--descriptor_set_out={given.descriptors}", *map(str, sorted(protos.glob("rnicd/v1/*.proto")))],
                   check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--rnicd", required=True)
    parser.add_argument("--client", action="append", default=[], required=True)
    parser.parse_args(namespace=given)
    problems = []
    with tempfile.TemporaryDirectory(prefix="rnicd-") as folder:
        make_descriptors(folder)
        for name, command in (client.split("=", 1) for client in given.client):
            part = "http2" if name in _HTTP2_CLIENTS else "grpc"
            run = ClientRun(name, command, read_cases(Path(__file__).parent / "cases.txt", part))
            began = time.monotonic()
            own_folder = Path(folder) / name
            own_folder.mkdir()
            run.run(own_folder)
            print(f"{name}: {'FAILED' if run.problems else 'all cases ok'}, {time.monotonic() - began:.0f} s\n")
            problems += [f"{name}: {problem}" for problem in run.problems]
    if problems:
        print("not as the table says:", *problems, sep="\n  ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
