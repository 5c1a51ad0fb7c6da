"""Converts deploy/kubernetes to manifests for podman 4.3: the same pods, on a node whose root is a folder.

usage: podman_pods.py node --root FOLDER < RENDERED.yaml > PODS.yaml
       podman_pods.py probes < RENDERED.yaml              lines of POD-CONTAINER PROBE COMMAND...
       podman_pods.py workload --root FOLDER --answer FILE.json < WORKLOAD.yaml > PODS.yaml
  --root     every host path of the manifests, and of the device plugin's response, is below this folder
  --answer   the device plugin's responses to Allocate, as written by the stand-in of the kubelet: environment and
             mounts, which a kubelet adds to each container
Needs python3-yaml.
"""

import argparse
import json
import pathlib
import sys

import yaml

# Fields that podman does not support and the kubelet would handle: scripts/container-test runs the probes itself.
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
# Values of the downward API's fields of a pod: its name, its namespace, its node.
NODE = "node"


def pod_of(thing):
    """A Pod with the object's name: podman does not play DaemonSets."""
    if thing["kind"] == "Pod":
        return thing
    template = thing["spec"]["template"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": thing["metadata"]["name"]},
            "spec": template["spec"]}


def adapt_volumes(spec, root):
    """Moves host paths below the root, and removes volumes of the API server, which does not exist here. Podman would
    give an emptyDir the owner of the folder in the image, while a kubelet lets everyone write: a folder replaces it."""
    kept = []
    for volume in spec.get("volumes", []):
        if "projected" in volume:
            continue
        if "hostPath" in volume:
            volume["hostPath"]["path"] = root + volume["hostPath"]["path"]
        if "emptyDir" in volume:
            folder = pathlib.Path(root) / "empty" / volume["name"]
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o777)
            volume = {"name": volume["name"], "hostPath": {"path": str(folder), "type": "Directory"}}
        kept.append(volume)
    spec["volumes"] = kept
    names = {volume["name"] for volume in kept}
    for container in spec["containers"]:
        container["volumeMounts"] = [mount for mount in container.get("volumeMounts", []) if mount["name"] in names]


def adapt_container(container, spec):
    # Ports require a network.
    for key in (*PROBES, "ports"):
        container.pop(key, None)
    # Podman supports neither the downward API nor variables in arguments.
    arguments = container.get("args", [])
    for variable in container.get("env", []):
        if "fieldRef" in variable.get("valueFrom", {}):
            del variable["valueFrom"]
            variable["value"] = NODE
            arguments = [argument.replace(f"$({variable['name']})", NODE) for argument in arguments]
    container["args"] = arguments
    # Only the kubelet handles extended resources.
    for amounts in container.get("resources", {}).values():
        for name in [name for name in amounts if "/" in name]:
            del amounts[name]
    # Podman takes user and group from the container only.
    context = container.setdefault("securityContext", {})
    for key in ("runAsUser", "runAsGroup"):
        if key in spec.get("securityContext", {}):
            context.setdefault(key, spec["securityContext"][key])


def adapt(pod, root):
    spec = pod["spec"]
    adapt_volumes(spec, root)
    for container in spec["containers"]:
        adapt_container(container, spec)
    # Podman ignores or refuses these.
    for key in ("hostPID", "nodeSelector", "tolerations", "priorityClassName", "serviceAccountName"):
        spec.pop(key, None)
    # Podman must not restart containers that the test kills.
    spec["restartPolicy"] = "Never"
    return pod


def give(container, spec, answer, root):
    """Adds what the kubelet adds to a container with devices."""
    container.setdefault("env", []).extend({"name": name, "value": value}
                                           for name, value in sorted(answer["env"].items()))
    for index, mount in enumerate(answer["mounts"]):
        name = f"given-{index}"
        container.setdefault("volumeMounts", []).append(
            {"name": name, "mountPath": mount["container_path"], "readOnly": mount["read_only"]})
        spec.setdefault("volumes", []).append(
            {"name": name, "hostPath": {"path": root + mount["host_path"], "type": "Directory"}})


def probes(things):
    for thing in things:
        for container in pod_of(thing)["spec"]["containers"] if thing["kind"] == "DaemonSet" else []:
            for probe in PROBES:
                if probe in container:
                    yield " ".join([thing["metadata"]["name"] + "-" + container["name"], probe, *container[probe]["exec"]["command"]])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=("node", "probes", "workload"))
    parser.add_argument("--root", default="")
    parser.add_argument("--answer", type=pathlib.Path)
    arguments = parser.parse_args()
    things = [thing for thing in yaml.safe_load_all(sys.stdin) if thing]
    if arguments.what == "probes":
        print("\n".join(probes(things)))
        return
    pods = [adapt(pod_of(thing), arguments.root) for thing in things if thing["kind"] in ("Pod", "DaemonSet")]
    if arguments.what == "workload":
        answer = json.loads(arguments.answer.read_text())
        for pod in pods:
            for container in pod["spec"]["containers"]:
                give(container, pod["spec"], answer[container["name"]], arguments.root)
    maps = [thing for thing in things if thing["kind"] == "ConfigMap"]
    yaml.safe_dump_all([*maps, *pods], sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
