"""The real daemon with the soft card, and its clients: the content of the page."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from polling import wait_for  # noqa: E402

_TIMEOUT_S = 60
_MIB = 1 << 20
# All clients are one tenant, with a limit that is soon nearly reached.
POLICY = f"""
tenant {{
  name: "training"
  limits {{ pinned_bytes: {64 * _MIB} sessions: 8 regions: 64 }}
  connections {{ listen {{ prefix: "::/0" first_port: 49152 last_port: 65535 }} }}
}}
default_tenant: "training"
"""


class Stage:
    def __init__(self, rnicd, rnicctl, folder, extra_flags=(), package=""):
        self._rnicd, self._rnicctl = str(rnicd), str(rnicctl)
        self._folder = pathlib.Path(folder)
        self._flags = list(extra_flags)
        self._environment = dict(os.environ, RNICD_SOCKET_DIR=str(self._folder / "run"), PYTHONPATH=str(package))
        self._clients = []
        self._daemon = None
        (self._folder / "policy.textproto").write_text(POLICY)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self._clients, self._daemon]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def start_daemon(self, metrics_address="127.0.0.1:0"):
        """Returns host:port of its pages."""
        with open(self._folder / "rnicd.log", "ab") as log:
            self._daemon = subprocess.Popen(
                [self._rnicd, "--provider=soft", f"--socket_dir={self._folder / 'run'}",
                 f"--policy_file={self._folder / 'policy.textproto'}", f"--metrics_address={metrics_address}",
                 *self._flags],
                stdout=log, stderr=log, env=self._environment)
        return wait_for("the daemon", self._pages_address)

    def kill_daemon(self):
        self._daemon.kill()
        self._daemon.wait()

    def log(self):
        return (self._folder / "rnicd.log").read_text(errors="replace")

    def client(self, label, size, *options):
        """Registers memory and holds it; returns its output, including the tokens, and the process."""
        log = self._folder / f"client{len(self._clients)}.json"
        with open(log, "wb") as out:
            process = self.launch(["register", "--json", "--size", size, "--label", label, "--hold", "forever",
                                   *options], out)
        return wait_for(f"the client {label}", lambda: self._printed(log, process)), process

    def launch(self, arguments, out=subprocess.DEVNULL, grant=""):
        """Starts rnicctl and does not wait for it; `grant` is the secret of a grant."""
        environment = dict(self._environment, RNICD_GRANT=grant) if grant else self._environment
        process = subprocess.Popen([self._rnicctl, *arguments], stdout=out, stderr=subprocess.STDOUT, env=environment)
        self._clients.append(process)
        return process

    def listener(self, label, name):
        """A client that listens by the name until it is killed."""
        program = f"import rnicd, signal; s = rnicd.connect(label={label!r}); at = s.listen({name!r}); signal.pause()"
        process = subprocess.Popen(["/usr/bin/python3", "-c", program], env=self._environment)
        self._clients.append(process)
        return process

    def refused(self, *arguments):
        """A client that is refused."""
        done = self.run("register", *arguments)
        if done.returncode != 1:
            raise AssertionError(f"{arguments} was not refused: {done.stdout}")

    def run(self, *arguments):
        return subprocess.run([self._rnicctl, *arguments], env=self._environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=_TIMEOUT_S, check=False)

    def _pages_address(self):
        if self._daemon.poll() is not None:
            raise AssertionError(f"the daemon ended; it said: {self.log()}")
        done = self.run("status", "--json")
        return json.loads(done.stdout)["metrics_address"] if done.returncode == 0 else None

    @staticmethod
    def _printed(log, process):
        if process.poll() is not None:
            raise AssertionError(f"the client ended; it said: {log.read_text()}")
        try:
            return json.loads(log.read_text())
        except ValueError:
            return None
