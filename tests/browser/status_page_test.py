"""The status page in a real browser: an operator looks, clicks and types, and sees the daemon's state.

usage: status_page_test.py --rnicd PROGRAM --rnicctl PROGRAM --package FOLDER --pictures FOLDER [--chromium PROGRAM]

One scenario, run in order on one page, because starting a browser takes long. Each step prints the claim that held.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import urllib.request

from devtools import Chromium
from page import Page
from stage import Stage, wait_for

# Clients choose their labels; this one tries to become an element.
MARKUP = "<img src=x onerror=alert(1)>"

TEXT = "document.body.innerText"
SESSION_ROWS = "[...document.querySelectorAll('#sessions tr.opens')]"
FAILURE_ROWS = "[...document.querySelectorAll('#failures tbody tr')]"


def session_row(label):
    return f"{SESSION_ROWS}.find((row) => row.textContent.includes({label!r}))"


class Scenario:
    def __init__(self, stage, page, pictures):
        self.stage, self.page, self.pictures = stage, page, pictures
        self.tokens = []
        self.address = ""

    def run(self):
        for step in (self.set_up, self.shows_what_is_held, self.label_is_text, self.shows_refusals,
                     self.click_opens_a_session, self.sorts, self.filters, self.toggles_theme, self.walks_by_keyboard,
                     self.new_session_appears, self.pauses, self.pictures_are_taken, self.fits_a_narrow_screen,
                     self.shows_a_listener, self.only_the_daemon_was_asked, self.no_token_is_shown, self.daemon_goes_and_comes_back):
            step()
            print(f"holds: {step.__name__.replace('_', ' ')}", flush=True)

    def register(self, label, size, *options):
        printed, process = self.stage.client(label, size, *options)
        for region in printed["regions"]:
            self.tokens += [region["local_token"], region["remote_token"]]
        return process

    def set_up(self):
        self.address = self.stage.start_daemon()
        self.register("training-7", "48MiB", "--regions", "12")
        self.register(MARKUP, "4MiB")
        for _ in range(3):
            self.stage.refused("--size", "4KiB", "--adapter", "no-such-card")
        self.stage.refused("--size", "64MiB", "--label", "too-much")
        self.page.size(1440, 1000)
        self.page.prefer("light")
        self.page.go(f"http://{self.address}/")
        self.page.await_true(f"{SESSION_ROWS}.length === 2", "both sessions are listed")

    def shows_what_is_held(self):
        text = self.page.look(TEXT)
        for wanted in ("Healthy", "52 MiB of 64 MiB", "near its limit", "training-7", "soft provider", "soft0"):
            assert wanted in text, f"{wanted!r} is not on the page: {text}"
        assert self.page.look("document.querySelectorAll('.spark svg').length") == 4

    def label_is_text(self):
        assert MARKUP in self.page.look(TEXT), "the label is not shown as it is"
        assert self.page.look("document.querySelectorAll('main img').length") == 0, "a label became an element"

    def shows_refusals(self):
        text = self.page.look("document.getElementById('failures').innerText")
        for wanted in ("ADAPTER_NOT_FOUND", "QUOTA_PINNED_BYTES", "the node has no adapter with this name"):
            assert wanted in text, f"{wanted!r} is not among the failures: {text}"

    def click_opens_a_session(self):
        self.page.click(session_row("training-7"))
        self.page.await_true("document.querySelectorAll('.regions tbody tr').length === 12", "its regions are shown")
        assert self.page.look(f"{session_row('training-7')}.querySelector('button').ariaExpanded") == "true"
        assert "remote write" in self.page.look("document.querySelector('.regions').innerText")
        # The row stays open, and stays the same element, during some refreshes.
        self.page.look("document.querySelector('.regions').marked = true")
        before = self.page.look("document.getElementById('updated').textContent")
        self.page.await_true(f"document.getElementById('updated').textContent !== {before!r}", "it refreshes itself")
        assert self.page.look("document.querySelector('.regions').marked"), "a refresh drew the regions anew"

    def sorts(self):
        head = ("[...document.querySelectorAll('#sessions th')]"
                ".find((cell) => cell.textContent.startsWith('Pinned'))")
        for order, first in (("descending", "training-7"), ("ascending", "onerror")):
            self.page.click(f"{head}.querySelector('button')")
            self.page.await_true(f"{head}.ariaSort === {order!r}", "the head says the order")
            assert first in self.page.look(f"{SESSION_ROWS}[0].textContent"), f"{order}: {first} is not first"

    def filters(self):
        self.page.press("/")
        self.page.await_true("document.activeElement.id === 'filter'", "the slash goes to the filter")
        self.page.write("training-")
        self.page.await_true(f"{SESSION_ROWS}.length === 1", "the filter hides the other session")
        assert self.page.look("document.querySelector('#sessions .count').textContent") == "1 of 2"
        self.page.press("Escape")
        self.page.await_true(f"{SESSION_ROWS}.length === 2", "Esc brings it back")
        self.page.press("Escape")

    def toggles_theme(self):
        back = "getComputedStyle(document.body).backgroundColor"
        light = self.page.look(back)
        for theme in ("light", "dark"):
            self.page.click("document.getElementById('theme')")
            assert self.page.look("document.documentElement.dataset.theme") == theme
        assert self.page.look(back) != light, "dark looks as light does"
        self.page.go(f"http://{self.address}/")
        self.page.await_true("document.documentElement.dataset.theme === 'dark'", "the theme is remembered")
        self.page.await_true(f"{SESSION_ROWS}.length === 2", "the page is there again")
        self.page.press("t")
        self.page.await_true("document.documentElement.dataset.theme === 'auto'", "the key goes on to auto")

    def walks_by_keyboard(self):
        self.page.look("document.activeElement.blur()")
        self.page.press("Tab")
        assert self.page.look("document.activeElement.className") == "skip", "the first stop is the skip link"
        self.page.press("Enter")
        self.page.await_true("document.activeElement.id === 'main'", "the skip link goes to the tables")
        for _ in range(60):
            self.page.press("Tab")
            if self.page.look("document.activeElement.className") == "opener":
                break
        assert self.page.look("document.activeElement.matches(':focus-visible')"), "a keyboard's focus is not seen"
        self.page.press("Enter")
        self.page.await_true("document.activeElement.ariaExpanded === 'true'", "Enter opens a session")
        self.page.press(" ")
        self.page.await_true("document.activeElement.ariaExpanded === 'false'", "Space closes it")
        self.page.press("?", shift=True)
        self.page.await_true("document.getElementById('keys').open", "the question mark shows the keys")
        self.page.press("Escape")
        self.page.await_true("!document.getElementById('keys').open", "Esc closes them")
        self.page.click("document.getElementById('help')")
        self.page.await_true("document.getElementById('keys').open", "the button shows them as well")
        self.page.click("document.getElementById('keys-close')")
        self.page.await_true("!document.getElementById('keys').open", "its button closes them")

    def new_session_appears(self):
        focused = "document.activeElement.textContent"
        self.page.look(f"{session_row('training-7')}.querySelector('button').focus()")
        before = self.page.look(focused)
        newcomer = self.register("newcomer", "1MiB")
        self.page.await_true(f"{SESSION_ROWS}.length === 3", "it appears by itself")
        assert self.page.look(focused) == before, "the newcomer took the focus"
        newcomer.kill()
        newcomer.wait()
        self.page.await_true(f"{SESSION_ROWS}.length === 2", "it goes when its process dies")

    def ask_for_status(self):
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"http://{self.address}/status.json") as response:
            return response.read()

    def pauses(self):
        self.page.press("p")
        self.page.await_true("!document.getElementById('paused').hidden", "it says that it is paused")
        self.register("while-paused", "1MiB")
        # The daemon caches responses, and that may be older than the session.
        wait_for("the session", lambda: b"while-paused" in self.ask_for_status())
        asked = len(self.page.requests())
        self.page.press("r")
        self.page.await_true(f"{SESSION_ROWS}.length === 3", "the key r refreshes once")
        assert len(self.page.requests()) == asked + 1, "a paused page asked by itself"
        self.page.click("document.getElementById('pause')")
        self.page.await_true("document.getElementById('paused').hidden", "it goes on")

    def pictures_are_taken(self):
        self.page.click(session_row("training-7"))
        self.page.await_true("document.querySelectorAll('.regions tbody tr').length === 12", "the regions are shown")
        # A line needs two points.
        self.page.await_true("document.querySelector('.stroke').getAttribute('d') !== ''", "there is a line")
        self.page.look("document.activeElement.blur()")
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            self.page.picture(self.pictures / f"status-page-{scheme}.png")

    def fits_a_narrow_screen(self):
        for width in (360, 1600):
            self.page.size(width, 800)
            self.page.await_true(f"innerWidth === {width}", "the window has its size")
            assert self.page.look("document.documentElement.scrollWidth") <= width, f"{width}: it is cut off"
            if width == 360:
                self.page.prefer("light")
                self.page.picture(self.pictures / "status-page-narrow.png")

    def shows_a_listener(self):
        listener = self.stage.listener("meets", "array")
        self.page.await_true(f"{session_row('meets')} !== undefined", "its session is listed")
        self.page.click(session_row("meets"))
        listening = "document.querySelector('.ends tbody tr')?.innerText"
        self.page.await_true(f"{listening}?.includes('training/array')", "its name is shown")
        for wanted in ("listening", "198.18.0.1:", "0 reported, 0 refused"):
            assert wanted in self.page.look(listening), f"{wanted!r} is not in {self.page.look(listening)}"
        listener.kill()
        self.page.await_true(f"{SESSION_ROWS}.length === 3", "it goes with its session")

    def only_the_daemon_was_asked(self):
        strangers = [url for url in self.page.requests()
                     if not url.startswith((f"http://{self.address}/", "about:", "data:"))]
        assert not strangers, f"the page asked others: {strangers}"
        assert not self.page.console_errors(), f"the browser console has errors: {self.page.console_errors()}"

    def no_token_is_shown(self):
        assert len(self.tokens) >= 28, "the clients printed no tokens"
        page = self.page.look("document.documentElement.outerHTML")
        words = set(re.findall(r"[0-9a-fx]+", page.lower()))
        for token in self.tokens:
            forms = {str(token), f"{token:x}", f"{token:08x}", f"0x{token:x}", f"0x{token:08x}"}
            assert not forms & words, "a token is on the page"

    def daemon_goes_and_comes_back(self):
        self.stage.kill_daemon()
        self.page.await_true("!document.getElementById('banner').hidden", "the banner says that nobody answers")
        banner = self.page.look("document.getElementById('banner').textContent")
        assert re.search(r"No answer since \d\d:\d\d:\d\d", banner), banner
        assert self.page.look(f"{SESSION_ROWS}.length") == 3, "what was known is gone"
        self.stage.start_daemon(self.address)
        self.page.await_true("document.getElementById('banner').hidden", "the page recovers by itself")
        self.page.await_true(f"{SESSION_ROWS}.length === 0", "a new daemon knows no session")
        assert "No session yet" in self.page.look(TEXT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rnicd", required=True, type=pathlib.Path)
    parser.add_argument("--rnicctl", required=True, type=pathlib.Path)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--pictures", required=True, type=pathlib.Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rnicd-page-", ignore_cleanup_errors=True) as folder:
        profile = pathlib.Path(folder) / "profile"
        profile.mkdir()
        with Stage(options.rnicd, options.rnicctl, folder, package=options.package) as stage:
            browser = Chromium(options.chromium, str(profile))
            page = None
            try:
                page = Page(browser)
                Scenario(stage, page, options.pictures).run()
            except AssertionError as failure:
                if page is not None:
                    page.picture(options.pictures / "status-page-failed.png")
                print(f"FAILED: {failure}\nThe daemon said: {stage.log()[-2000:]}", file=sys.stderr)
                return 1
            finally:
                browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
