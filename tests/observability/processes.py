"""The daemon and Prometheus as child processes, with their files in one temporary folder."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from polling import wait_for

TIMEOUT_S = 60
# No proxy for this machine's own ports, whatever the environment says.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# All clients are one tenant with every kind of limit that the dashboard shows.
POLICY = """\
tenant {
  name: "everyone"
  limits {
    pinned_bytes: 67108864
    registered_bytes: 268435456
    memory_bytes: 268435456
    regions: 1024
    sessions: 64
    requests_per_second: 100000
  }
}
default_tenant: "everyone"
"""
SOFT = ("--provider=soft", "--soft_adapters=2")
CONFIGURATION = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: rnicd, static_configs: [{{targets: ["{target}"]}}]}}]
"""


class ProcessError(AssertionError):
    """A process exited or failed."""


def fetch(url, form=None):
    data = urllib.parse.urlencode(form).encode() if form else None
    with _OPENER.open(url, data, timeout=20) as answer:
        return answer.read().decode()


class Process:
    """A child whose output goes to its own file. All children are recorded, so that none is left running."""

    started = []

    def __init__(self, folder, name, command):
        self.name, self.log = name, folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=subprocess.STDOUT)
        Process.started.append(self)

    def must_live(self):
        if self.child.poll() is not None:
            raise ProcessError(f"{self.name} ended with {self.child.returncode}:\n{self.log.read_text()[-3000:]}")

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    @classmethod
    def end_all(cls):
        """Ends the newest first."""
        while cls.started:
            cls.started.pop().end()

    def kill(self):
        self.child.kill()
        self.child.wait()


class Daemon(Process):
    def __init__(self, folder, rnicd, rnicctl, *flags, provider=SOFT, wrapper=()):
        self.folder, self.rnicctl = folder, rnicctl
        policy = folder / "policy.textproto"
        policy.write_text(POLICY)
        os.chmod(policy, 0o644)
        super().__init__(folder, "rnicd", [
            *wrapper, rnicd, *provider, f"--socket_dir={folder}/s", f"--admin_socket_dir={folder}/a",
            "--metrics_address=127.0.0.1:0", f"--policy_file={policy}", f"--audit_log={folder}/audit.jsonl",
            f"--max_pinned_bytes={1 << 30}", f"--max_memory_bytes={1 << 30}", "--max_connections_per_uid=48",
            "--memory_pool=4KiB:1MiBx2", *flags])
        self.page = wait_for("the daemon", self._page)

    def _page(self):
        self.must_live()
        address = re.search(r" metrics_address=(\S+)", self.log.read_text())
        return f"http://{address[1]}/metrics" if address else None

    def command(self, *arguments, door=None):
        return [self.rnicctl, *arguments, f"--socket-dir={door or self.folder / 's'}",
                f"--admin-socket-dir={self.folder}/a"]

    def ctl(self, *arguments):
        return subprocess.run([str(part) for part in self.command(*arguments)], capture_output=True, text=True,
        check=False,
                              timeout=TIMEOUT_S)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Prometheus(Process):
    """Scrapes and evaluates every second."""

    def __init__(self, folder, page, rules):
        target = urllib.parse.urlsplit(page).netloc
        configuration = folder / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(rules=json.dumps(str(rules)), target=target))
        self.address = f"http://127.0.0.1:{free_port()}"
        super().__init__(folder, "prometheus", [
            "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address={urllib.parse.urlsplit(self.address).netloc}", "--log.level=warn"])
        wait_for("Prometheus", self._is_ready)

    def _is_ready(self):
        self.must_live()
        try:
            return fetch(self.address + "/-/ready")
        except (urllib.error.URLError, ConnectionError):
            return None

    def query(self, expression):
        """The series of an instant query. Raises ProcessError with Prometheus's error text on a refusal."""
        try:
            answer = json.loads(fetch(self.address + "/api/v1/query", {"query": expression}))
        except urllib.error.HTTPError as refused:
            raise ProcessError(json.loads(refused.read())["error"]) from refused
        result = answer["data"]
        return [([], result["result"])] if result["resultType"] == "scalar" else [
            (series["metric"], series["value"]) for series in result["result"]]

    def rule_problems(self):
        """Errors from the evaluation of the rules."""
        groups = json.loads(fetch(self.address + "/api/v1/rules"))["data"]["groups"]
        return [f"{rule['name']}: {rule['lastError']}" for group in groups for rule in group["rules"]
                if rule["health"] == "err"]
