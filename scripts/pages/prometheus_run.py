"""A real Prometheus for some minutes: scrapes one address each second, and is then queried."""

import json
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: rnicd
    static_configs: [{{targets: ["{address}"]}}]
    relabel_configs: [{{target_label: instance, replacement: "node-7"}}]
"""


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Prometheus:
    def __init__(self, program, folder, address):
        folder = pathlib.Path(folder)
        (folder / "prometheus.yaml").write_text(_CONFIG.format(address=address))
        self._url = f"http://127.0.0.1:{_free_port()}"
        with open(folder / "prometheus.log", "wb") as log:
            self._process = subprocess.Popen(
                [program, f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
                 f"--web.listen-address={self._url.removeprefix('http://')}"], stdout=log, stderr=log)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self._url + "/-/ready", timeout=5).close()
                return self
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError("Prometheus does not start")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def ask(self, kind, **parameters):
        """kind: "query" or "query_range". Returns the series: (labels, [(time, value), ...])."""
        url = f"{self._url}/api/v1/{kind}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                result = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{parameters['query']}: {error.read().decode()}") from error
        return [(one["metric"], [(float(when), float(value)) for when, value in one.get("values", [one.get("value")])])
                for one in result]
