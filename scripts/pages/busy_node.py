"""A busy node, for pictures: tenants whose clients start, register, are refused, die and exit."""

import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "browser"))
from stage import Stage  # noqa: E402

# Name of the grant: its tenant's limits, and how much its clients use.
_TENANTS = {
    "training": (["--pinned", "192MiB", "--sessions", "12"], ["4MiB", "16MiB", "24MiB"]),
    "inference": (["--pinned", "48MiB", "--sessions", "6"], ["1MiB", "2MiB", "8MiB"]),
    "checkpoints": (["--pinned", "64MiB", "--sessions", "4"], ["8MiB", "32MiB"]),
}
_CLIENTS_MOST = 16


class BusyNode:
    """Draws the events from a seed, so that two runs are alike."""

    def __init__(self, rnicd, rnicctl, folder):
        self.stage = Stage(rnicd, rnicctl, folder)
        self._dice = random.Random(7)
        self._grants = {}
        self._running = []

    def start(self):
        """Returns host:port of the daemon's pages."""
        address = self.stage.start_daemon()
        for name, (limits, _) in _TENANTS.items():
            made = self.stage.run("grant", "create", "--name", name, "--secret-only", *limits)
            if made.returncode != 0:
                raise RuntimeError(made.stdout.decode())
            self._grants[name] = made.stdout.decode().strip()
        # Clients that stay to the end.
        self._hold("training", "48MiB", "forever", "trainer rank 0", regions=8)
        self._hold("training", "40MiB", "forever", "trainer rank 1", regions=4)
        self._hold("inference", "24MiB", "forever", "kv cache", regions=16)
        self._hold("checkpoints", "32MiB", "forever", "checkpoint writer", regions=2)
        return address

    def work(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._running = [client for client in self._running if client.poll() is None]
            if len(self._running) < _CLIENTS_MOST:
                self._act()
            time.sleep(self._dice.uniform(0.1, 0.6))

    def _act(self):
        drawn = self._dice.random()
        tenant = self._dice.choice(list(_TENANTS))
        if drawn < 0.06:
            self._launch(tenant, "register", "--size", "64KiB", "--adapter", "mlx5_9")
        elif drawn < 0.12:
            self._launch("inference", "register", "--size", "64MiB", "--label", "too large a cache")
        elif drawn < 0.16:
            self._launch(tenant, "demo", "fast-register", "--pages", "256")
        elif drawn < 0.24 and self._running:
            self._dice.choice(self._running).kill()
        else:
            hold = f"{self._dice.randint(2, 20)}s"
            size = self._dice.choice(_TENANTS[tenant][1])
            self._running.append(self._hold(tenant, size, hold, f"{tenant} step", self._dice.choice([1, 2, 4, 16])))

    def _hold(self, tenant, size, hold, label, regions):
        return self._launch(tenant, "register", "--size", size, "--hold", hold, "--label", label, "--regions",
                            str(regions))

    def _launch(self, tenant, *arguments):
        return self.stage.launch(list(arguments), grant=self._grants[tenant])
