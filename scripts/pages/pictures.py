"""Runs a busy node under a real Prometheus and takes the pictures of docs/: the dashboard's panels, the status page.

usage: pictures.py --rnicd PROGRAM --rnicctl PROGRAM --prometheus PROGRAM --source FOLDER --seconds N
"""

import argparse
import pathlib
import tempfile
import time

import busy_node
import dashboard_picture
from prometheus_run import Prometheus

# Found through the path that busy_node added for the stage.
from devtools import Chromium
from page import Page

# Height of the status page's picture: the most informative part, because the list of failures is long.
_PICTURE_HEIGHT = 1200
_WARM_UP_SECONDS = 15
_ROWS = "[...document.querySelectorAll('#sessions tr.opens')]"


def status_page(address, folder, picture):
    """The current page, with one session open."""
    profile = pathlib.Path(folder) / "profile"
    profile.mkdir()
    browser = Chromium("/usr/bin/chromium", str(profile))
    try:
        page = Page(browser)
        page.size(1440, 900)
        page.prefer("light")
        page.go(f"http://{address}/")
        page.await_true(f"{_ROWS}.length >= 4", "sessions are listed")
        page.click(f"{_ROWS}.find((row) => row.textContent.includes('trainer rank 1'))")
        page.await_true("document.querySelectorAll('.regions tbody tr').length > 0", "its regions are shown")
        page.picture(picture, height=_PICTURE_HEIGHT)
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("rnicd", "rnicctl", "prometheus"):
        parser.add_argument(f"--{program}", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=180)
    options = parser.parse_args()
    docs, dashboard = options.source / "docs", options.source / "deploy" / "grafana" / "dashboard.json"
    with tempfile.TemporaryDirectory(prefix="rnicd-pictures-", ignore_cleanup_errors=True) as folder:
        node = busy_node.BusyNode(options.rnicd, options.rnicctl, folder)
        with node.stage:
            address = node.start()
            with Prometheus(options.prometheus, folder, address) as prometheus:
                # Rates need a history.
                node.work(_WARM_UP_SECONDS)
                begin = time.time()
                node.work(options.seconds)
                end = time.time()
                (docs / "dashboard.svg").write_text(dashboard_picture.make(dashboard, prometheus, begin, end))
                print("pictures: wrote docs/dashboard.svg")
                status_page(address, folder, docs / "status-page.png")
                print("pictures: wrote docs/status-page.png")


if __name__ == "__main__":
    main()
