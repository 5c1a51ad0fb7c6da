"""Checks that the overlays of deploy/kubernetes render and match the programs, the policy, the image and each other.

usage: kubernetes_check.py --rnicd PROGRAM --plugin PROGRAM [--source REPOSITORY]

Prints each finding and fails if there is one. Needs kubectl. Types of fields are `scripts/lint manifests`'.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from polling import wait_for

import kubernetes_objects as objects
import pod_security

NODE_KINDS = ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "DaemonSet", "Namespace", "ServiceAccount"]
# What examples call an image that the reader makes.
READERS_IMAGE = "registry.example.org/"
KINDS = {"soft": NODE_KINDS, "verbs": NODE_KINDS, "verbs-fr": NODE_KINDS,
         "monitoring": ["ConfigMap", "PodMonitor", "PrometheusRule"]}
# Kustomizations whose objects are checked together as "monitoring".
MONITORING = ("deploy/prometheus", "deploy/grafana")
# What kubectl 1.20 knows and a recent one does not call deprecated.
KUSTOMIZATION_FIELDS = {"apiVersion", "kind", "namespace", "resources", "configMapGenerator", "generatorOptions",
                        "images"}
PRIVILEGED = {("verbs", "rnicd"), ("verbs-fr", "rnicd")}
# Devices of the node, by overlay: what the daemon's container has, and nobody else's.
DEVICES = {"soft": set(), "verbs": {"/dev/infiniband"}, "verbs-fr": {"/dev/infiniband", "/dev/rnicd_fr"}}
# The program, its connections, and messages on the way (docs/OPERATING.md, "What the daemon may take").
DAEMONS_OWN = 768 << 20
SIZES = {"MiB": 1 << 20, "GiB": 1 << 30}


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=60)


class Checker:
    """All checks over one repository. `report` gets a line for each finding."""

    def __init__(self, repo, programs, report):
        self.repo, self.programs, self.report = repo, programs, report
        self.folder = repo / "deploy/kubernetes"
        self.rendered = {}
        self.kustomizations = [(overlay.name, overlay) for overlay in sorted((self.folder / "overlays").iterdir())]
        self.kustomizations += [("monitoring", repo / folder) for folder in MONITORING]
        for name, folder in self.kustomizations:
            try:
                self.rendered[name] = self.rendered.get(name, []) + objects.render(folder)
            except ValueError as error:
                self.report(f"{name} does not render: {error}")
        self.examples = [thing for path in sorted((self.folder / "examples").glob("*.yaml"))
                         for thing in objects.parse(path)]
        self.nodes = {name: objects.Node(things) for name, things in self.rendered.items()
                      if objects.of_kind(things, "DaemonSet")}

    def check_kinds(self):
        for name, expected in KINDS.items():
            found = sorted(thing["kind"] for thing in self.rendered.get(name, []))
            if found != expected:
                self.report(f"{name}: its objects are {', '.join(found)}")
        for name in set(self.rendered) - set(KINDS):
            self.report(f"{name}: an overlay that this check does not know")

    def check_kustomizations_suit_every_kubectl(self):
        for _, folder in self.kustomizations:
            kustomization = objects.parse(folder / "kustomization.yaml")[0]
            for field in sorted(set(kustomization) - KUSTOMIZATION_FIELDS):
                self.report(f"{folder.name}/kustomization.yaml: {field} is unknown to some kubectl, or deprecated")
            for resource in kustomization.get("resources", []):
                if not (folder / resource).is_file() or "/" in resource:
                    self.report(f"{folder.name}/kustomization.yaml: {resource} is not a file beside it")

    def check_overlays_are_current(self):
        said = run(sys.executable, self.folder / "make_overlays.py", "--check")
        if said.returncode != 0:
            self.report(f"stale, run deploy/kubernetes/make_overlays.py: {said.stdout.strip()} {said.stderr.strip()}")

    def check_images(self):
        version = re.search(r"project\(rnicd VERSION ([0-9.]+)", (self.repo / "CMakeLists.txt").read_text())[1]
        for things in [*self.rendered.values(), self.examples]:
            for thing, spec in objects.pod_specs(things):
                for container in pod_security.containers(spec):
                    is_readers = things is self.examples and container["image"].startswith(READERS_IMAGE)
                    if container["image"] != f"rnicd:{version}" and not is_readers:
                        self.report(f"{thing['metadata']['name']}: its image is {container['image']}, not rnicd:{version}")
        if f"ARG VERSION={version}\n" not in (self.repo / "Dockerfile").read_text():
            self.report(f"Dockerfile: its VERSION is not {version}")
        tags = set(re.findall(r"/rnicd:(\S+)", (self.repo / "deploy/kubernetes/README.md").read_text()))
        self._equal("deploy/kubernetes/README.md", "the image's tag", tags, {version})

    # --- configuration ----------------------------------------------------------------------------------------------

    def check_flags(self):
        for name, node in self.nodes.items():
            for container, program in self.programs.items():
                self._check_flags_of(f"{name}, {container}", node, container, program)

    def _check_flags_of(self, where, node, container, program):
        text = node.flag_file(container)
        if not text:
            self.report(f"{where}: its flag file is not in the ConfigMap")
            return
        with tempfile.NamedTemporaryFile("w", suffix=".flags") as file:
            file.write(text)
            file.flush()
            lines = [command[1:] for command in objects.commands(node.containers[container])
                     if command and command[0].endswith("/" + program.name)]
            for arguments in lines:
                said = run(program, *(f"--flagfile={file.name}" if argument.startswith("--flagfile=") else argument
                                      for argument in arguments), "--version")
                if said.returncode != 0 or said.stderr:
                    self.report(f"{where}: {objects.shown(arguments)}: {said.stderr.strip()}")

    def check_policy(self):
        """The daemon starts with the policy; otherwise its output is a finding."""
        for text in {node.config.get("policy.textproto", "") for node in self.nodes.values()}:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "policy.textproto"
                path.write_text(text)
                path.chmod(0o444)
                self._start_with(path)

    def _start_with(self, policy):
        folder = policy.parent
        daemon = subprocess.Popen(
            [self.programs["rnicd"], "--provider=soft", f"--policy_file={policy}", f"--socket_dir={folder}/run",
             f"--admin_socket_dir={folder}/admin", "--metrics_address="], stderr=subprocess.PIPE, text=True)
        wait_for("the daemon", lambda: daemon.poll() is not None or (folder / "admin/admin.sock").exists())
        serves = daemon.poll() is None
        daemon.terminate()
        told = daemon.communicate(timeout=60)[1]
        if not serves:
            self.report(f"policy.textproto: the daemon does not start with it: {told[-1000:]}")

    def check_policy_names_the_plugin(self):
        for name, node in self.nodes.items():
            context = node.containers["device-plugin"]["securityContext"]
            user = node.spec("device-plugin")["securityContext"]["runAsUser"]
            rule = rf"match {{ uid: {user} gid: {context.get('runAsGroup')} }}\s+role: CALLER_ROLE_DEVICE_PLUGIN"
            if not re.search(rule, node.config.get("policy.textproto", "")):
                self.report(f"{name}: no rule of the policy makes uid {user}, gid {context.get('runAsGroup')} the plugin")

    # --- paths ------------------------------------------------------------------------------------------------------

    def check_paths(self):
        for name, node in self.nodes.items():
            daemon, plugin = node.flags("rnicd"), node.flags("device-plugin")
            doors = daemon.get("door_dir", daemon["socket_dir"] + "-doors")
            self._equal(name, "the directory of doors on the node", node.host_path("rnicd", doors), plugin["door_dir"])
            self._equal(name, "doors that the plugin sees", node.host_path("device-plugin", plugin["door_dir"]), None)
            for flag in ("kubelet_dir", "pod_resources_socket", "state_dir"):
                self._equal(name, f"--{flag} on the node", node.host_path("device-plugin", plugin[flag]), plugin[flag])
            self._check_admin(name, node, daemon["admin_socket_dir"], plugin["admin_socket_dir"])
            self._check_config_files(name, node, daemon["policy_file"])
            self._check_volumes(name, node)

    def _equal(self, where, what, one, other):
        if one != other:
            self.report(f"{where}: {what}: {one} and {other} differ")

    def _check_admin(self, where, node, daemon, plugin):
        self._equal(where, "--admin_socket_dir of both programs", daemon, plugin)
        places = {node.host_path(container, daemon) for container in ("rnicd", "device-plugin")}
        if None in places or len(places) != 1:
            self.report(f"{where}: {daemon} is not one directory of the node in both containers")
        elif node.mount_of("rnicd", daemon)["mountPath"] == daemon:
            self.report(f"{where}: {daemon} must be the daemon's own directory inside of the node's")
        for command in objects.commands(node.containers["rnicd"]):
            if command[0].endswith("/rnicctl") and command[-2:] != ["--admin-socket-dir", daemon]:
                self.report(f"{where}: {objects.shown(command)} does not ask in {daemon}")
            if command[0].endswith("/rnicctl") and "--same-container" not in command:
                self.report(f"{where}: {objects.shown(command)} may be answered by another pod's daemon")

    def check_rollout(self):
        """Two daemons may meet on a node, and only they; two plugins may not."""
        for name, node in self.nodes.items():
            for container, surge in (("rnicd", 1), ("device-plugin", 0)):
                strategy = node.sets[container]["spec"]["updateStrategy"]["rollingUpdate"]
                self._equal(f"{name}, {container}", "its rollout", strategy,
                            {"maxSurge": surge, "maxUnavailable": 1 - surge})
            if any(container.get("ports") for container in node.containers.values()):
                self.report(f"{name}: a port that a second pod on the node cannot have")
            handover = node.flags("rnicd")["socket_dir"] + "-handover"
            self._equal(name, "where two daemons meet", node.host_path("rnicd", handover), handover)
            self._equal(name, "the device plugin's view of it", node.host_path("device-plugin", handover), None)

    def _check_config_files(self, where, node, policy):
        for container in ("rnicd", "device-plugin"):
            if node.volumes(container)["config"]["configMap"].get("defaultMode", 0o644) & 0o022:
                self.report(f"{where}: group or others may write the policy, so the daemon refuses it")
            mount = node.mount_of(container, "/etc/rnicd/x")
            if not mount or mount["name"] != "config" or not mount.get("readOnly"):
                self.report(f"{where}: {container} has no read-only /etc/rnicd from the ConfigMap")
        if policy.removeprefix("/etc/rnicd/") not in node.config:
            self.report(f"{where}: --policy_file={policy} is not in the ConfigMap")

    def _check_volumes(self, where, node):
        for name, container in node.containers.items():
            volumes = node.volumes(name)
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            self._equal(f"{where}, {name}", "volumes and mounts", sorted(volumes), sorted(mounted))
            for volume in volumes.values():
                if "hostPath" in volume and "type" not in volume["hostPath"]:
                    self.report(f"{where}: host path {volume['name']} has no type")

    def check_devices(self):
        for name, node in self.nodes.items():
            for container, spec in node.containers.items():
                found = {mount["mountPath"] for mount in spec["volumeMounts"] if mount["mountPath"].startswith("/dev/")}
                expected = DEVICES.get(name, set()) if container == "rnicd" else set()
                self._equal(f"{name}, {container}", "devices", sorted(found), sorted(expected))
                for path in sorted(found):
                    self._equal(f"{name}, {container}", "device on the node", node.host_path(container, path), path)

    # --- security ---------------------------------------------------------------------------------------------------

    def check_workloads_are_restricted(self):
        levels = {thing["metadata"]["name"]: thing["metadata"]["labels"].get("pod-security.kubernetes.io/enforce")
                  for thing in objects.of_kind(self.examples, "Namespace")}
        for thing, spec in objects.pod_specs(self.examples):
            if levels.get(thing["metadata"]["namespace"]) != "restricted":
                self.report(f"example {thing['metadata']['name']}: its namespace does not enforce \"restricted\"")
            for what in pod_security.violations(spec):
                self.report(f"example {thing['metadata']['name']}: {what}")

    def check_containers_are_tight(self):
        for overlay, node in self.nodes.items():
            for name, container in node.containers.items():
                context, where = container["securityContext"], f"{overlay}, {name}"
                if not context.get("readOnlyRootFilesystem"):
                    self.report(f"{where}: its root file system is writable")
                privileged = bool(context.get("privileged"))
                self._equal(where, "privileged, and whether it must be", privileged, (overlay, name) in PRIVILEGED)
                tight = context.get("allowPrivilegeEscalation") is False and \
                    context.get("capabilities") == {"drop": ["ALL"]}
                if not privileged and not tight:
                    self.report(f"{where}: it keeps capabilities or may get new ones")
                # A privileged container has none, whatever the manifest says.
                profile = context.get("seccompProfile", node.spec(name)["securityContext"].get("seccompProfile"))
                if not privileged and profile != {"type": "RuntimeDefault"}:
                    self.report(f"{where}: the container engine does not filter its system calls")

    def check_reasons_are_shown(self):
        """Flags that are wrong end a container; operators look at the pod before they look at logs."""
        for overlay, node in self.nodes.items():
            for name, container in node.containers.items():
                if container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
                    self.report(f"{overlay}, {name}: the reason of its end is in its log only")

    def check_memory_limit(self):
        """A lower limit would end the daemon when workloads use what they were granted."""
        for overlay, node in self.nodes.items():
            flags = node.flags("rnicd")
            needed = sum(int(flags.get(name, 0)) for name in ("max_memory_bytes", "max_heap_bytes")) + DAEMONS_OWN
            limit = node.containers["rnicd"]["resources"].get("limits", {}).get("memory", "none")
            self._equal(overlay, "limit of memory, and the sum of what the daemon may take", limit,
                        f"{needed >> 20}Mi")

    def check_rights(self):
        for overlay in self.nodes:
            things = self.rendered[overlay]
            rules = objects.of_kind(things, "ClusterRole")[0]["rules"]
            self._equal(overlay, "rights", rules, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
            binding = objects.of_kind(things, "ClusterRoleBinding")[0]
            self._equal(overlay, "the role", binding["roleRef"]["name"],
                        objects.of_kind(things, "ClusterRole")[0]["metadata"]["name"])
            account = objects.of_kind(things, "ServiceAccount")[0]["metadata"]
            subject = {"kind": "ServiceAccount", "name": self.nodes[overlay].spec("device-plugin")["serviceAccountName"],
                       "namespace": account["namespace"]}
            self._equal(overlay, "who has the role", binding["subjects"], [subject])
            self._equal(overlay, "the account", account["name"], subject["name"])

    def check_rights_are_used(self):
        asked = set(re.findall(r'"/api/v1/(\w+)\?', (self.repo / "client/kubernetes/node/cluster.cc").read_text()))
        self._equal("client/kubernetes/node/cluster.cc", "what is listed, and what may be", asked, {"pods"})

    # --- other checks -------------------------------------------------------------------------------------------------

    def check_monitoring(self):
        things = self.rendered.get("monitoring", [])
        for node in self.nodes.values():
            labels = {name: thing["spec"]["template"]["metadata"]["labels"] for name, thing in node.sets.items()}
            for monitor in objects.of_kind(things, "PodMonitor"):
                selected = monitor["spec"]["selector"]["matchLabels"].items()
                self._equal("PodMonitor", "the pods that it selects",
                            [name for name in labels if selected <= labels[name].items()], ["rnicd"])
                address = node.flags("rnicd")["metrics_address"]
                self._equal("PodMonitor", "the ports and --metrics_address",
                            {f"[::]:{rule['replacement'].rpartition(':')[2]}"
                             for rule in monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]
                             if rule.get("targetLabel") == "__address__"}, {address})
                self._equal("PodMonitor", "its namespace and the pods'", monitor["metadata"].get("namespace"),
                            node.sets["rnicd"]["metadata"]["namespace"])
        for board in objects.of_kind(things, "ConfigMap"):
            self._equal("the dashboard", "its label", board["metadata"].get("labels", {}).get("grafana_dashboard"), "1")
            if board["data"].get("dashboard.json") != (self.repo / "deploy/grafana/dashboard.json").read_text():
                self.report("the dashboard's ConfigMap is not deploy/grafana/dashboard.json")

    def check_example_asks_for_what_is_offered(self):
        for name, node in self.nodes.items():
            resource, unit = re.fullmatch(r"([\w./-]+)=(\w+)", node.flags("device-plugin")["resources"]).groups()
            number, suffix = re.fullmatch(r"(\d+)(\w+)", unit).groups()
            unit_mib = int(number) * SIZES[suffix] >> 20
            for thing, spec in objects.pod_specs(self.examples):
                for container in spec["containers"]:
                    where = f"{name}: {thing['metadata']['name']}, {container['name']}"
                    self._check_request(where, container, resource, unit_mib)

    def _check_request(self, where, container, offered, unit_mib):
        for resource in container["resources"]["limits"]:
            if "/" in resource and resource != offered:
                self.report(f"{where}: nobody offers {resource}")
        units = int(container["resources"]["limits"].get(offered, 0))
        size = f"--size={units * unit_mib}MiB"
        if container["command"] == ["/usr/bin/rnicctl"] and size not in container["args"]:
            self.report(f"{where}: asks for {units} units, and does not say {size}")

    def check_all(self):
        for check in sorted(name for name in dir(self) if name.startswith("check_") and name != "check_all"):
            getattr(self, check)()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--rnicd", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, required=True)
    arguments = parser.parse_args()
    findings = []
    programs = {"rnicd": arguments.rnicd.resolve(), "device-plugin": arguments.plugin.resolve()}
    checker = Checker(arguments.source.resolve(), programs, findings.append)
    checker.check_all()
    count = sum(len(things) for things in checker.rendered.values())
    print("\n".join(findings) or f"{len(checker.rendered)} overlays, {count} objects: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
