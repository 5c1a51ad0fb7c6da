"""Starts and stops the daemon under test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from polling import wait_for

_TIMEOUT_S = 60


class Daemon:
    """The real daemon, with its sockets in a folder of its own. Its card is the soft one, unless
    RNICD_TEST_DAEMON_FLAGS says otherwise. With session_limits, the fields of a policy, each uid is a tenant whose
    sessions have these limits.
    """

    def __init__(self, folder: Path, *flags: str, session_limits: str = "") -> None:
        self.socket_dir = str(folder / "s")
        self._log = folder / "rnicd.log"
        self._flags = (*os.environ.get("RNICD_TEST_DAEMON_FLAGS", "").split(), *flags)
        if session_limits:
            policy = folder / "policy.textproto"
            tenant = f'name: "uid" sharing: SHARING_EACH_UID session_limits {{ {session_limits} }}'
            policy.write_text(f'tenant {{ {tenant} }} default_tenant: "uid"')
            self._flags += (f"--policy_file={policy}",)
        self.start()

    def start(self) -> None:
        """Starts it and waits until it serves."""
        with open(self._log, "ab") as log:
            self._child = subprocess.Popen(
                [os.environ["RNICD_PROGRAM"], f"--socket_dir={self.socket_dir}", "--metrics_address=", *self._flags],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for("the daemon", lambda: self._serves() or self._child.poll() is not None)
        assert self._child.poll() is None, f"the daemon does not serve: {self._log.read_text()}"

    def _serves(self) -> bool:
        # The socket first: a program that is started for nothing costs a second on an emulated machine.
        return os.path.exists(f"{self.socket_dir}/rpc.sock") and self.ask("status").returncode == 0

    def ask(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Runs rnicctl."""
        return subprocess.run(
            [os.environ["RNICCTL_PROGRAM"], *command, f"--socket-dir={self.socket_dir}"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def status(self) -> Any:
        """GetStatus as a dict."""
        return json.loads(self.ask("status", "--json").stdout)

    def wait_until_empty(self) -> None:
        """Waits until no session is left."""
        wait_for("the end of all sessions", self._is_empty)

    def _is_empty(self) -> bool:
        status = self.status()
        return not status["sessions"] and not status["sessions_ending"]

    def pause(self) -> None:
        """Stops all its threads, until `resume` or `kill`."""
        self._child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """Ends `pause`."""
        self._child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends it without a goodbye to its clients."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> int:
        """Returns the daemon's exit code."""
        if self._child.poll() is None:
            self._child.terminate()
        try:
            return self._child.wait(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()
