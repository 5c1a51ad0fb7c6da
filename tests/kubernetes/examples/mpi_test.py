"""The pod of deploy/kubernetes/examples/mpi.yaml, with the real daemon and device plugin below the kubelet's stand-in.

usage: mpi_test.py --rnicd PROGRAM --rnicctl PROGRAM --plugin PROGRAM --kubelet PROGRAM --library FILE... [TEST...]
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
_TESTS = Path(__file__).resolve().parents[2]
sys.path += [str(_TESTS / "support"), str(_TESTS / "python")]
from daemon import Daemon
from pod import IMAGE, Pod
from polling import wait_for

_KUBERNETES = _TESTS.parent / "deploy/kubernetes"
_EXAMPLE = (_KUBERNETES / "examples/mpi.yaml").read_text()
_RANKS = {"rank-0", "rank-1", "rank-2", "rank-3"}
_TIMEOUT_S = 120
# The provider as if its package were in the image. Handlers of one of libfabric's libraries would turn a crash into a
# hang.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/", "FI_PROVIDER_PATH": IMAGE, "LD_LIBRARY_PATH": IMAGE,
                "IPATH_NO_BACKTRACE": "1"}
given = argparse.Namespace()


class MpiExample(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnicd-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # The pod's user goes through it.
        self.folder.chmod(0o755)
        for name in ("kubelet", "state", "pod", "image"):
            (self.folder / name).mkdir()
        for library in given.library:
            shutil.copy(library, self.folder / "image")
        self.daemon = Daemon(self.folder, f"--audit_log={self.folder}/audit.jsonl")
        self.addCleanup(self.daemon.stop)

    def start(self, *command):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.terminate)
        return child

    def admit(self, pod):
        """The kubelet, and what the device plugin allocates to each container."""
        sockets, result = self.folder / "kubelet", self.folder / "allocated.json"
        wanted = [f"{pod.namespace}/{pod.name}/{container}:{resource}={units}"
                  for container, devices in pod.devices().items() for resource, units in devices.items()]
        kubelet = self.start(given.kubelet, f"--folder={sockets}", f"--pod_resources_socket={sockets}/pods.sock",
                             f"--admit={','.join(wanted)}", f"--result={result}")
        self.start(given.plugin, f"--flagfile={_KUBERNETES}/base/device-plugin.flags", "--kubernetes_server=off",
                   f"--admin_socket_dir={self.daemon.socket_dir}-admin", f"--door_dir={self.daemon.socket_dir}-doors",
                   f"--kubelet_dir={sockets}", f"--pod_resources_socket={sockets}/pods.sock",
                   f"--state_dir={self.folder}/state", "--reconcile_interval_ms=100", "--revoke_grace_ms=1000")
        self.assertEqual(kubelet.stdout.readline(), "admitted\n")
        return kubelet, json.loads(result.read_text())

    def grants(self):
        return json.loads(self.daemon.ask("grant", "list", "--json").stdout)["grants"]

    def owners(self):
        """The container that each grant is for, as far as the daemon has been told."""
        return {grant["workload"]["container"] for grant in self.grants() if grant["workload"]}

    def sessions(self):
        """The audit log's lines of sessions that were opened."""
        lines = map(json.loads, (self.folder / "audit.jsonl").read_text().splitlines())
        return [line for line in lines if line["what"] == "SessionService.OpenSession"]

    def run_pod(self, manifest):
        """{container: status} and {container: output} of a pod, of which nothing is left."""
        pod = Pod(manifest, self.folder / "pod")
        kubelet, allocated = self.admit(pod)
        wait_for("owners of the grants", lambda: self.owners() == _RANKS)
        child = pod.start(allocated, self.folder / "image", _ENVIRONMENT)
        try:
            statuses = json.loads(child.communicate(timeout=_TIMEOUT_S)[0])
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            self.fail(f"the pod does not end: {pod.logs()}")
        self.daemon.wait_until_empty()
        self.assertEqual(self.daemon.status()["registered_pages"], 0)
        kubelet.send_signal(signal.SIGUSR1)
        wait_for("the end of all grants", lambda: not self.grants())
        return statuses, pod.logs()

    def test_each_rank_is_its_containers_tenant_and_the_sums_are_right(self):
        statuses, logs = self.run_pod(_EXAMPLE)
        self.assertEqual(statuses, dict.fromkeys(_RANKS | {"launcher"}, 0), logs)
        self.assertIn("\n4 ranks: all of 1048576 sums are 10\n", logs["launcher"])
        sessions = self.sessions()
        self.assertEqual(sorted((line["pod"], line["container"]) for line in sessions),
                         [("mpi", rank) for rank in sorted(_RANKS)])
        self.assertEqual(len({line["tenant"] for line in sessions}), len(_RANKS))

    def test_a_rank_has_no_privilege_and_no_device(self):
        look = "cat /proc/self/status /proc/self/limits /proc/net/dev; ls /dev; exec sh -c"
        _, logs = self.run_pod(_EXAMPLE.replace("exec sh -c", look))
        for rank in _RANKS:
            for pattern in (r"Uid:\t65532\t65532\t65532\t65532$", r"CapPrm:\t0+$", r"CapEff:\t0+$", r"CapAmb:\t0+$",
                            r"NoNewPrivs:\t1$", r"Max locked memory +0 +0 "):
                self.assertRegex(logs[rank], re.compile("^" + pattern, re.MULTILINE))
            self.assertEqual(re.findall(r"^ *(\w+):.* \d+$", logs[rank].partition("Inter-|")[2], re.MULTILINE), ["lo"])
            self.assertNotRegex(logs[rank], r"(?m)^(infiniband|rnicd)")

    def test_a_rank_that_is_killed_ends_the_pod(self):
        kill = "    import os\n    world.rank == 2 and os.kill(os.getppid(), 9)\n    values = "
        statuses, logs = self.run_pod(_EXAMPLE.replace("    values = ", kill))
        self.assertNotEqual(statuses["launcher"], 0, logs)
        self.assertNotIn("sums are", logs["launcher"])

    def test_a_launcher_that_fails_ends_the_pod(self):
        statuses, logs = self.run_pod(_EXAMPLE.replace("exec mpirun", "exec mpirun --none-such"))
        self.assertEqual(statuses, {**dict.fromkeys(_RANKS, 1), "launcher": statuses["launcher"]}, logs)
        self.assertNotEqual(statuses["launcher"], 0)


class Manifest(unittest.TestCase):
    def refused(self, old, new, reason):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(ValueError, reason):
            Pod(_EXAMPLE.replace(old, new), Path(folder)).devices()

    def test_fields_that_do_not_exist_are_refused(self):
        self.refused("restartPolicy", "restartPolcy", "spec: restartPolcy")
        self.refused("sizeLimit", "limit", "emptyDir: limit")
        self.refused("securityContext: &restricted", "securityContext: &restricted\n        memlock: 0", "memlock")

    def test_what_restricted_does_not_allow_is_refused(self):
        self.refused("  restartPolicy", "  hostNetwork: true\n  restartPolicy", "hostNetwork")
        self.refused("drop: [ALL]", "add: [IPC_LOCK]", "capabilities")
        self.refused("emptyDir:\n        sizeLimit: 1Mi", "hostPath:\n        path: /tmp", "hostPath")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("rnicd", "rnicctl", "plugin", "kubelet"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--library", action="append", required=True, help="librnicd.so.0, librnicd-fi.so")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=given)
    os.environ.update(RNICD_PROGRAM=given.rnicd, RNICCTL_PROGRAM=given.rnicctl)
    unittest.main(argv=[sys.argv[0], "--verbose", *given.tests])


if __name__ == "__main__":
    main()
