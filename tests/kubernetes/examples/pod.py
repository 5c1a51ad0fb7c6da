#!/usr/bin/python3
"""Runs the pod of a manifest with bubblewrap: its containers share a network, and each has files of its own.

usage: pod.py CONTAINERS.json   (in the pod's namespaces: runs the containers, and prints how they ended)

A field that is not carried out here is an error, except the image, which is this machine's programs, the seccomp
profile, and the amounts of processor and memory.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "deploy"))
import pod_security

# Folder of a container for what the image has besides this machine's programs.
IMAGE = "/opt/image"
_ROOT = ("--perms", "0755", "--tmpfs", "/", "--perms", "1777", "--tmpfs", "/tmp", "--perms", "0755", "--dir", "/run",
         "--perms", "0755", "--dir", "/opt", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys",
         "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin", "--symlink",
         "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64")
_POD = ("restartPolicy", "automountServiceAccountToken", "securityContext", "containers", "volumes")
_POD_CONTEXT = {"runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile"}
_CONTAINER = {"name", "image", "imagePullPolicy", "command", "resources", "securityContext", "volumeMounts"}
_IS_ROOT = os.geteuid() == 0


def _expect(thing, what, fields):
    """Raises ValueError for fields that do not exist, and for those that nobody carries out."""
    if unknown := sorted(set(thing) - set(fields)):
        raise ValueError(f"{what}: {', '.join(unknown)}")
    return thing


def _bind(source, target, read_only):
    return ["--ro-bind" if read_only else "--bind", str(source), target]


class Pod:
    """The pod of a manifest, admitted to its namespace, which enforces the level "restricted"."""

    def __init__(self, manifest, folder):
        """The folder is for its volumes and logs."""
        self._folder = folder
        things = {thing["kind"]: thing for thing in yaml.safe_load_all(manifest)}
        self._config_map = things["ConfigMap"]
        self.namespace, self.name = (things["Pod"]["metadata"][key] for key in ("namespace", "name"))
        level = things["Namespace"]["metadata"]["labels"].get("pod-security.kubernetes.io/enforce")
        if (things["Namespace"]["metadata"]["name"], level) != (self.namespace, "restricted"):
            raise ValueError("its namespace does not enforce \"restricted\"")
        spec = _expect(things["Pod"]["spec"], "spec", _POD)
        if violations := pod_security.violations(spec):
            raise ValueError("; ".join(violations))
        if (spec["restartPolicy"], spec["automountServiceAccountToken"]) != ("Never", False):
            raise ValueError("restarts and accounts are not carried out")
        self._context = _expect(spec["securityContext"], "securityContext of the pod", _POD_CONTEXT)
        self._containers = {container["name"]: self._admit(container) for container in spec["containers"]}
        self._volumes = {volume["name"]: self._make(volume) for volume in spec["volumes"]}

    def devices(self):
        """{container: {resource: units}} of those that have any."""
        found = {name: {resource: int(units) for resource, units in container["resources"]["limits"].items()
                        if "/" in resource} for name, container in self._containers.items()}
        return {name: units for name, units in found.items() if units}

    def start(self, allocated, image, environment):
        """Starts all containers, with the image's folder and environment, and with what was allocated to each."""
        plan = self._folder / "containers.json"
        plan.write_text(json.dumps({name: self._command(name, allocated.get(name, {"env": {}, "mounts": []}), image,
                                                        environment) for name in self._containers}))
        return subprocess.Popen(
            ["prlimit", "--memlock=0", "bwrap", *self._user_namespace(), "--unshare-net", "--unshare-ipc",
             "--unshare-uts", "--hostname", self.name, "--die-with-parent", "--bind", "/", "/", "--dev", "/dev",
             sys.executable, __file__, plan], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def logs(self):
        """{container: output}"""
        return {name: (self._folder / f"{name}.log").read_text() for name in self._containers}

    @staticmethod
    def _admit(container):
        name = container["name"]
        _expect(container, name, _CONTAINER)
        _expect(container["securityContext"], name, {"allowPrivilegeEscalation", "capabilities"})
        for mount in container["volumeMounts"]:
            _expect(mount, name, {"name", "mountPath"})
        return container

    def _make(self, volume):
        """The volume's folder on the node, and whether containers may only read it."""
        _expect(volume, "volume", {"name", "emptyDir", "configMap"})
        folder = self._folder / volume["name"]
        folder.mkdir()
        if "emptyDir" in volume:
            _expect(volume["emptyDir"], "emptyDir", {"sizeLimit"})
            folder.chmod(0o777)
            return folder, False
        source = _expect(volume["configMap"], "configMap", {"name", "defaultMode"})
        if source["name"] != self._config_map["metadata"]["name"]:
            raise ValueError(f"there is no ConfigMap {source['name']}")
        for name, text in self._config_map["data"].items():
            (folder / name).write_text(text)
            (folder / name).chmod(source["defaultMode"])
        return folder, True

    # Root makes containers like a real runtime, and becomes the pod's user in each. Another tester is the pod's user in
    # namespaces only.
    def _user_namespace(self):
        return [] if _IS_ROOT else ["--unshare-user", "--uid", str(self._context["runAsUser"]), "--gid",
                                    str(self._context["runAsGroup"])]

    def _pods_user(self):
        return ["setpriv", f"--reuid={self._context['runAsUser']}", f"--regid={self._context['runAsGroup']}",
                "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"] if _IS_ROOT else []

    def _command(self, name, allocated, image, environment):
        container = self._containers[name]
        mounts = _bind(image, IMAGE, True)
        for mount in container["volumeMounts"]:
            folder, read_only = self._volumes[mount["name"]]
            mounts += _bind(folder, mount["mountPath"], read_only)
        for mount in allocated["mounts"]:
            mounts += _bind(mount["host_path"], mount["container_path"], mount["read_only"])
        variables = [part for variable in {**environment, **allocated["env"]}.items()
                     for part in ("--setenv", *variable)]
        return ["bwrap", *self._user_namespace(), "--unshare-pid", "--die-with-parent", *_ROOT, *mounts,
                "--remount-ro", "/", "--clearenv", *variables, *self._pods_user(), *container["command"]]


def main():
    plan = Path(sys.argv[1])
    running = {}
    for name, command in json.loads(plan.read_text()).items():
        with open(plan.parent / f"{name}.log", "wb") as log:
            running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    print(json.dumps({name: child.wait() for name, child in running.items()}))


if __name__ == "__main__":
    main()
