"""A headless Chromium, driven over the pipe of its DevTools protocol: a JSON message, a NUL, and so on."""

import fcntl
import json
import os
import select
import subprocess
import time

_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-dev-shm-usage", "--remote-debugging-pipe", "--force-color-profile=srgb", "--lang=en",
]
# The protocol fixes these descriptors: the browser reads commands from the first and writes to the second.
_COMMANDS_FD, _ANSWERS_FD = 3, 4
# A busy machine may take long to start a browser.
TIMEOUT_S = 60


class DevToolsError(Exception):
    """The browser refused a command, exited, or did not respond in time."""


def _high(descriptor):
    """The same pipe under a descriptor that does not collide with the protocol's."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


class Chromium:
    """The process and its pipe. `events` collects the browser's events."""

    def __init__(self, program, profile):
        commands_out, self._commands = map(_high, os.pipe())
        self._answers, answers_in = map(_high, os.pipe())

        def give_pipes():
            os.dup2(commands_out, _COMMANDS_FD)
            os.dup2(answers_in, _ANSWERS_FD)

        with open(os.path.join(profile, "chromium.log"), "wb") as log:
            self._process = subprocess.Popen(
                [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=give_pipes, pass_fds=(_COMMANDS_FD, _ANSWERS_FD))
        os.close(commands_out)
        os.close(answers_in)
        self._buffer = b""
        self._last_id = 0
        self._results = {}
        self.events = []

    def close(self):
        """Closes the browser, and kills it if that fails."""
        try:
            self.command("Browser.close")
        except (DevToolsError, OSError):
            self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def command(self, method, params=None, session=None):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while self._last_id not in self._results:
            if not self.listen(deadline - time.monotonic()):
                raise DevToolsError(f"no answer to {method}")
        answer = self._results.pop(self._last_id)
        if "error" in answer:
            raise DevToolsError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def listen(self, seconds):
        """Reads the browser's messages within this time; false if there were none."""
        if not select.select([self._answers], [], [], max(0, seconds))[0]:
            return False
        data = os.read(self._answers, 1 << 20)
        if not data:
            raise DevToolsError("the browser is gone")
        *whole, self._buffer = (self._buffer + data).split(b"\0")
        for text in whole:
            message = json.loads(text)
            if "id" in message:
                self._results[message["id"]] = message
            else:
                self.events.append(message)
        return True
