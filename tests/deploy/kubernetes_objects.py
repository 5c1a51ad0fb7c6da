"""Reads deploy/kubernetes and the objects that it renders."""

import shlex
import subprocess

import yaml

PLUGIN_GROUP = 65532


def render(folder):
    """The objects that kubectl renders from a kustomization. Raises ValueError with kubectl's error or warning."""
    result = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False,
                            timeout=120)
    if result.returncode != 0 or result.stderr.strip():
        raise ValueError(result.stderr.strip())
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def parse(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def of_kind(objects, kind):
    return [thing for thing in objects if thing["kind"] == kind]


def pod_spec(thing):
    """The spec of the pods that an object creates; None if it creates none."""
    if thing["kind"] == "Pod":
        return thing["spec"]
    return thing["spec"].get("template", {}).get("spec") if "spec" in thing else None


def pod_specs(objects):
    return [(thing, pod_spec(thing)) for thing in objects if pod_spec(thing)]


def flags_of(text):
    """{name: value} of a flag file or of arguments, one per line."""
    lines = [line.strip() for line in text.splitlines()]
    return dict(line.removeprefix("--").partition("=")[::2] for line in lines if line.startswith("--"))


class Node:
    """The DaemonSets of an overlay, with their configuration."""

    def __init__(self, objects):
        # {container: its DaemonSet}
        self.sets = {container["name"]: thing for thing in of_kind(objects, "DaemonSet")
                     for container in pod_spec(thing)["containers"]}
        self.containers = {container["name"]: container for thing in self.sets.values()
                           for container in pod_spec(thing)["containers"]}
        name = self.volumes("rnicd")["config"]["configMap"]["name"]
        self.config = next((thing["data"] for thing in of_kind(objects, "ConfigMap")
                            if thing["metadata"]["name"] == name), {})

    def spec(self, container):
        """The spec of the pods that have the container."""
        return pod_spec(self.sets[container])

    def volumes(self, container):
        """{name: volume} of these pods."""
        return {volume["name"]: volume for volume in self.spec(container)["volumes"]}

    def arguments(self, container):
        """The container's own arguments, with $(NODE_NAME) replaced as by the kubelet."""
        return [argument.replace("$(NODE_NAME)", "node") for argument in self.containers[container].get("args", [])]

    def flag_file(self, container):
        """The text of the ConfigMap's file that --flagfile names; empty if there is none."""
        name = flags_of("\n".join(self.arguments(container))).get("flagfile", "")
        key = name.removeprefix("/etc/rnicd/")
        return self.config.get(key, "")

    def flags(self, container):
        """{name: value} of the flag file and the arguments."""
        return flags_of(self.flag_file(container) + "\n" + "\n".join(self.arguments(container)))

    def mount_of(self, container, path):
        """The innermost mount that contains a path of the container; None if there is none."""
        mounts = [mount for mount in self.containers[container].get("volumeMounts", [])
                  if path == mount["mountPath"] or path.startswith(mount["mountPath"] + "/")]
        return max(mounts, key=lambda mount: len(mount["mountPath"]), default=None)

    def host_path(self, container, path):
        """The path on the node of a path in the container; None if it is not on the node."""
        mount = self.mount_of(container, path)
        volume = self.volumes(container).get(mount["name"], {}) if mount else {}
        if "hostPath" not in volume:
            return None
        return volume["hostPath"]["path"] + path.removeprefix(mount["mountPath"])


def commands(container):
    """Every command line in a container's manifest: its own and its probes'."""
    yield container.get("command", []) + container.get("args", [])
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            yield container[probe]["exec"]["command"]


def shown(command):
    return " ".join(shlex.quote(part) for part in command)
