"""Clients of every kind, so that every series of the daemon moves."""

import json
import os
import re
import socket
from pathlib import Path

from processes import TIMEOUT_S, ProcessError, Process, fetch, wait_for

# More than --max_connections_per_uid allows.
CONNECTIONS = 64


class Workload:
    def __init__(self, folder, daemon):
        self.folder, self.daemon = folder, daemon
        self.shared, self.door = folder / "s", None

    def _must(self, *arguments):
        result = self.daemon.ctl(*arguments)
        if result.returncode != 0:
            raise ProcessError(f"rnicctl {' '.join(arguments)}: {result.stderr}")
        return result.stdout

    def _must_fail(self, *arguments):
        if self.daemon.ctl(*arguments).returncode != 1:
            raise ProcessError(f"rnicctl {' '.join(arguments)} was not refused")

    def hold(self, label, *arguments, door=None):
        """A client that keeps its memory until it is ended, with a session of that label."""
        client = Process(self.folder, label, self.daemon.command("register", "--hold=forever", f"--label={label}",
                                                                 *arguments, door=door))
        return client, wait_for(f"the client {label}", lambda: self._session(client, label))

    def _session(self, client, label):
        client.must_live()
        for session in json.loads(self._must("sessions", "--json"))["sessions"]:
            if session["label"] == label and session["resources"]["pinned_bytes"]["used"] > 0:
                return session["session_id"]
        return None

    def begin(self):
        """Clients that stay, one that dies, one that is evicted, one with a grant's secret, one behind a grant's door."""
        self.hold("stays", "--size=16MiB", "--regions=4")
        dies, _ = self.hold("dies", "--size=1MiB")
        dies.kill()
        _, session = self.hold("is-evicted", "--size=64KiB")
        self._must("evict", session)
        secret = self._must("grant", "create", "--name=job", "--pinned=4MiB", "--regions=8", "--secret-only").strip()
        self.hold("has-a-grant", "--size=2MiB", f"--grant={secret}")
        created = json.loads(self._must("grant", "create", "--name=pod", "--pinned=4MiB", "--door", "--json"))
        self.door = Path(created["socket_dir"])
        self.hold("has-a-door", "--size=2MiB", door=self.door)

    def turn(self):
        """Short-lived work, successful and failing."""
        self._must("demo", "fast-register", "--pages=64", "--seed=1")
        for size in ("4KiB", "512KiB", "8MiB"):
            self.register(size)
        self._must_fail("register", "--size=65MiB")
        # A registration goes through a ring, so it is no call that fails.
        self._must_fail("evict", "1")
        self.flood(self.shared)
        self.flood(self.door)

    def register(self, size):
        self._must("register", f"--size={size}")

    def flood(self, door):
        """Connections above the limit: the daemon closes them at once."""
        refused = self._refused()
        connections = [socket.socket(socket.AF_UNIX) for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.settimeout(TIMEOUT_S)
            connection.connect(os.fspath(door / "rpc.sock"))
        # The daemon must accept or close each of them before the first one is closed; otherwise few connections could
        # also mean that most of the flood is still waiting.
        wait_for("the flood", lambda: self._connections() + self._refused() - refused >= CONNECTIONS)
        for connection in connections:
            connection.close()
        # The next client is accepted again.
        wait_for("the end of the flood", lambda: self._connections() < CONNECTIONS / 4)

    def _connections(self):
        return self._sum("rnicd_connections")

    def _refused(self):
        return self._sum("rnicd_connections_refused_total")

    def _sum(self, metric):
        page = fetch(self.daemon.page)
        return sum(float(value) for value in re.findall(rf"^{metric}(?:\{{.*\}})? (\S+)$", page, re.MULTILINE))
