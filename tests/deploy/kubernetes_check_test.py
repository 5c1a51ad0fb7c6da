"""kubernetes_check.py finds planted mistakes, each in a copy of what the repository deploys.

usage: kubernetes_check_test.py --rnicd PROGRAM --plugin PROGRAM [--source REPOSITORY]
"""

import argparse
import copy
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import kubernetes_objects as objects
import pod_security
from kubernetes_check import Checker
from planted import SOURCE, PlantedCopy

PROGRAMS = {}
PARTS = ("deploy/kubernetes", "deploy/grafana", "deploy/prometheus", "CMakeLists.txt", "Dockerfile",
         "client/kubernetes/node/cluster.cc")
BASE = "deploy/kubernetes/base/"
DAEMON_SET = BASE + "daemonset.yaml"
PLUGIN_SET = BASE + "device-plugin.yaml"
SOFT = "deploy/kubernetes/overlays/soft/"
VERBS = "deploy/kubernetes/overlays/verbs/"
EXAMPLE = "deploy/kubernetes/examples/workload.yaml"


class Planted(PlantedCopy):
    parts = PARTS

    def assert_found(self, part, check):
        found = []
        getattr(Checker(self.repo, PROGRAMS, found.append), check)()
        self.assertIn(part, "\n".join(found))


    def edit(self, name, old, new):
        """Edits a file of base/ and makes the overlays from it."""
        super().edit(name, old, new)
        if name.startswith(BASE):
            subprocess.run([sys.executable, self.repo / "deploy/kubernetes/make_overlays.py"], check=True,
                           capture_output=True, timeout=60)


class TheRepository(Planted):
    def test_has_no_finding(self):
        found = []
        Checker(self.repo, PROGRAMS, found.append).check_all()
        self.assertEqual(found, [])


class AnOverlay(Planted):
    def test_that_does_not_render(self):
        self.edit(SOFT + "kustomization.yaml", "rbac.yaml", "rbacc.yaml")
        found = []
        Checker(self.repo, PROGRAMS, found.append)
        self.assertIn("soft does not render", "\n".join(found))

    def test_that_lost_an_object(self):
        self.edit(VERBS + "kustomization.yaml", "  - rbac.yaml\n", "")
        self.assert_found("verbs: its objects are ConfigMap, DaemonSet, DaemonSet, Namespace", "check_kinds")

    def test_with_a_field_that_is_deprecated(self):
        self.edit(SOFT + "kustomization.yaml", "resources:", "patchesStrategicMerge:\n  - daemonset.yaml\nresources:")
        found = []
        Checker(self.repo, PROGRAMS, found.append).check_kustomizations_suit_every_kubectl()
        self.assertIn("patchesStrategicMerge", "\n".join(found))

    def test_with_a_field_that_is_too_new(self):
        self.edit(SOFT + "kustomization.yaml", "resources:", "patches: []\nresources:")
        self.assert_found("patches is unknown", "check_kustomizations_suit_every_kubectl")

    def test_with_another_folder(self):
        self.edit(SOFT + "kustomization.yaml", "  - rbac.yaml", "  - ../verbs/rbac.yaml")
        self.assert_found("../verbs/rbac.yaml is not a file beside it", "check_kustomizations_suit_every_kubectl")

    def test_that_was_edited_by_hand(self):
        self.edit(SOFT + "rnicd.flags", "--metrics_address", "--metrics_addres")
        self.assert_found("overlays/soft/rnicd.flags", "check_overlays_are_current")

    def test_with_another_image(self):
        self.edit(EXAMPLE, "rnicd:0.1.0", "rnicd:latest")
        self.assert_found("rnicd:latest", "check_images")

    def test_of_another_version_than_the_image(self):
        self.edit("Dockerfile", "ARG VERSION=", "ARG VERSION=9.")
        self.assert_found("Dockerfile", "check_images")

    def test_with_another_image_on_the_page(self):
        self.edit("deploy/kubernetes/README.md", "push registry.example.org/rnicd:0.1.0",
                  "push registry.example.org/rnicd:latest")
        self.assert_found("the image's tag", "check_images")


class Configuration(Planted):
    def test_with_an_unknown_flag_of_the_daemon(self):
        self.edit(BASE + "rnicd.flags", "--metrics_address", "--metrics_addres")
        self.assert_found("metrics_addres", "check_flags")

    def test_with_an_unknown_flag_of_the_plugin(self):
        self.edit(BASE + "device-plugin.flags", "--state_dir", "--state_folder")
        self.assert_found("state_folder", "check_flags")

    def test_with_an_unknown_argument_of_an_overlay(self):
        self.edit(DAEMON_SET, "--provider=verbs", "--providers=verbs")
        self.assert_found("verbs, rnicd", "check_flags")

    def test_with_a_policy_that_the_daemon_refuses(self):
        self.edit(BASE + "policy.textproto", "gid: 65532", "gid: 4294967295")
        self.assert_found("policy.textproto:", "check_policy")

    def test_with_a_policy_that_makes_the_plugin_an_operator(self):
        self.edit(BASE + "policy.textproto", "gid: 65532", "gid: 65533")
        self.assert_found("no rule of the policy", "check_policy_names_the_plugin")


class Paths(Planted):
    def test_of_the_doors_that_differ(self):
        self.edit(BASE + "device-plugin.flags", "--door_dir=/run/rnicd-doors", "--door_dir=/run/doors")
        self.assert_found("the directory of doors on the node: /run/rnicd-doors and /run/doors differ", "check_paths")

    def test_of_the_doors_that_end_with_the_pod(self):
        self.edit(DAEMON_SET, "            - name: doors\n              mountPath: /run/rnicd-doors\n", "")
        self.assert_found("the directory of doors on the node: None", "check_paths")

    def test_of_the_kubelet_that_differ(self):
        self.edit(PLUGIN_SET, "path: /var/lib/kubelet/pod-resources", "path: /var/lib/kubelet/pods")
        self.assert_found("--pod_resources_socket on the node", "check_paths")

    def test_of_the_operator_that_differ(self):
        self.edit(BASE + "device-plugin.flags", "admin_socket_dir=/run/rnicd-admin/sockets", "admin_socket_dir=/run/a")
        self.assert_found("--admin_socket_dir of both programs", "check_paths")

    def test_of_the_operator_where_anybody_may_write(self):
        for name in (BASE + "device-plugin.flags", BASE + "rnicd.flags", DAEMON_SET):
            self.edit(name, "/run/rnicd-admin/sockets", "/run/rnicd-admin")
        self.assert_found("inside of the node's", "check_paths")

    def test_of_a_probe_that_asks_elsewhere(self):
        self.edit(DAEMON_SET, "[/usr/bin/rnicctl, health, --same-container, --admin-socket-dir, /run/rnicd-admin/sockets]",
                  "[/usr/bin/rnicctl, health, --same-container]")
        self.assert_found("does not ask in /run/rnicd-admin/sockets", "check_paths")

    def test_of_the_modules_device_that_is_not_mounted(self):
        self.edit(DAEMON_SET, "mountPath: /dev/rnicd_fr", "mountPath: /opt/rnicd_fr")
        self.assert_found("verbs-fr, rnicd: devices", "check_devices")

    def test_of_the_modules_device_that_is_another_on_the_node(self):
        self.edit(DAEMON_SET, "path: /dev/rnicd_fr\n            type", "path: /dev/rnicd\n            type")
        self.assert_found("device on the node: /dev/rnicd and /dev/rnicd_fr differ", "check_devices")

    def test_of_a_probe_that_another_pod_may_answer(self):
        self.edit(DAEMON_SET, "health, --same-container, --admin", "health, --admin")
        self.assert_found("may be answered by another pod's daemon", "check_paths")

    def test_of_the_handover_that_end_with_the_pod(self):
        self.edit(DAEMON_SET, "            - name: handover\n              mountPath: /run/rnicd-handover\n", "")
        self.assert_found("where two daemons meet: None", "check_rollout")

    def test_of_the_handover_that_the_plugin_sees(self):
        self.edit(PLUGIN_SET, "mountPath: /run/rnicd-admin\n", "mountPath: /run\n")
        self.assert_found("the device plugin's view of it", "check_rollout")

    def test_of_a_volume_that_nothing_mounts(self):
        self.edit(PLUGIN_SET, "            - name: state\n              mountPath: /var/lib/rnicd-device-plugin\n", "")
        self.assert_found("volumes and mounts", "check_paths")


class Security(Planted):
    def test_of_a_workload_that_is_not_restricted(self):
        self.edit(EXAMPLE, "runAsNonRoot: true", "runAsNonRoot: false")
        self.assert_found("runAsNonRoot is not true", "check_workloads_are_restricted")

    def test_of_a_namespace_that_enforces_nothing(self):
        self.edit(EXAMPLE, "enforce: restricted", "enforce: baseline")
        self.assert_found("does not enforce", "check_workloads_are_restricted")

    def test_of_a_container_with_capabilities(self):
        self.edit(PLUGIN_SET, "drop: [ALL]", "drop: [NET_RAW]")
        self.assert_found("soft, device-plugin: it keeps capabilities", "check_containers_are_tight")

    def test_of_a_container_that_is_privileged_without_need(self):
        self.edit(DAEMON_SET, "drop: [ALL]", "drop: [ALL]\n            privileged: true")
        self.assert_found("soft, rnicd: privileged", "check_containers_are_tight")

    def test_of_a_container_that_may_get_privileges(self):
        self.edit(DAEMON_SET, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true")
        self.assert_found("soft, rnicd: it keeps capabilities or may get new ones", "check_containers_are_tight")

    def test_of_a_container_whose_files_are_writable(self):
        self.edit(DAEMON_SET, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")
        self.assert_found("soft, rnicd: its root file system is writable", "check_containers_are_tight")

    def test_of_a_pod_whose_system_calls_are_not_filtered(self):
        self.edit(PLUGIN_SET, "          type: RuntimeDefault", "          type: Unconfined")
        self.assert_found("verbs, device-plugin: the container engine does not filter", "check_containers_are_tight")

    def test_of_a_container_whose_system_calls_are_not_filtered(self):
        self.edit(DAEMON_SET, "            readOnlyRootFilesystem: true\n            #if soft",
                  "            readOnlyRootFilesystem: true\n            seccompProfile: {type: Unconfined}\n"
                  "            #if soft")
        self.assert_found("soft, rnicd: the container engine does not filter", "check_containers_are_tight")

    def test_of_a_container_that_ends_without_a_word(self):
        self.edit(DAEMON_SET, "          # The reason why a container ended is then in `kubectl describe pod`.\n"
                  "          terminationMessagePolicy: FallbackToLogsOnError\n", "")
        self.assert_found("soft, rnicd: the reason of its end is in its log only", "check_reasons_are_shown")

    def test_of_a_daemon_that_a_limit_would_kill(self):
        self.edit(DAEMON_SET, "              memory: 5888Mi", "              memory: 4096Mi")
        self.assert_found("limit of memory", "check_memory_limit")

    def test_with_flags_that_its_memory_limit_does_not_follow(self):
        self.edit(BASE + "rnicd.flags", "--max_heap_bytes=1073741824", "--max_heap_bytes=2147483648")
        self.assert_found("6912Mi", "check_memory_limit")

    def test_of_rights_that_are_too_many(self):
        self.edit(BASE + "rbac.yaml", "verbs: [list]", "verbs: [list, watch]")
        self.assert_found("watch", "check_rights")

    def test_of_rights_for_another_account(self):
        self.edit(BASE + "rbac.yaml", "ServiceAccount\n    name: rnicd", "ServiceAccount\n    name: other")
        self.assert_found("who has the role", "check_rights")

    def test_of_a_question_that_nobody_may_ask(self):
        self.edit("client/kubernetes/node/cluster.cc", '"/api/v1/pods?', '"/api/v1/nodes?')
        self.assert_found("nodes", "check_rights_are_used")


class TheOthers(Planted):
    def test_with_a_port_that_prometheus_does_not_scrape(self):
        self.edit(BASE + "rnicd.flags", "metrics_address=[::]:9747", "metrics_address=[::]:9748")
        self.assert_found("--metrics_address", "check_monitoring")

    def test_with_a_port_that_is_the_nodes(self):
        self.edit(DAEMON_SET, "          livenessProbe:", "          ports: [{containerPort: 9747}]\n          livenessProbe:")
        self.assert_found("a port that a second pod on the node cannot have", "check_rollout")

    def test_with_a_daemon_that_ends_before_the_next_has_taken_over(self):
        self.edit(DAEMON_SET, "      maxSurge: 1\n      maxUnavailable: 0", "      maxUnavailable: 1")
        self.assert_found("soft, rnicd: its rollout", "check_rollout")

    def test_with_two_device_plugins_on_a_node(self):
        self.edit(PLUGIN_SET, "      maxSurge: 0\n      maxUnavailable: 1", "      maxSurge: 1\n      maxUnavailable: 0")
        self.assert_found("soft, device-plugin: its rollout", "check_rollout")

    def test_with_a_dashboard_that_grafana_does_not_find(self):
        self.edit("deploy/grafana/kustomization.yaml", 'grafana_dashboard: "1"', 'grafana_dashboard: "0"')
        self.assert_found("the dashboard: its label", "check_monitoring")

    def test_with_an_example_that_asks_for_less_than_it_uses(self):
        self.edit(EXAMPLE, 'rnicd.io/memory-64mi: "4"', 'rnicd.io/memory-64mi: "3"')
        self.assert_found("--size=192MiB", "check_example_asks_for_what_is_offered")

    def test_with_an_example_that_asks_for_what_nobody_offers(self):
        self.edit("deploy/kubernetes/examples/mpi.yaml", "rnicd.io/memory-64mi", "rnicd.io/memory-32mi")
        self.assert_found("nobody offers rnicd.io/memory-32mi", "check_example_asks_for_what_is_offered")


class Restricted(unittest.TestCase):
    """Each rule of pod_security.py finds a violation."""

    def setUp(self):
        self.spec = copy.deepcopy(objects.pod_spec(objects.of_kind(objects.parse(PlantedCopy.source / EXAMPLE), "Pod")[0]))
        self.container = self.spec["containers"][0]

    def violated(self, part):
        self.assertIn(part, "\n".join(pod_security.violations(self.spec)))

    def test_holds_for_the_example(self):
        self.assertEqual(pod_security.violations(self.spec), [])

    def test_knows_the_pods_own_settings(self):
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            self.spec[key] = True
            self.violated(f"{key} is set")
        self.spec["volumes"] = [{"name": "v", "hostPath": {"path": "/"}}]
        self.violated("volume v is a hostPath")
        self.spec["securityContext"]["sysctls"] = [{"name": "kernel.msgmax", "value": "1"}]
        self.violated("sysctl kernel.msgmax")

    def test_knows_settings_of_pods_and_containers(self):
        for context in (self.spec["securityContext"], self.container["securityContext"]):
            context.update(runAsUser=0, seLinuxOptions={"type": "spc_t", "user": "u"},
                           appArmorProfile={"type": "Unconfined"}, windowsOptions={"hostProcess": True})
        for where in ("pod", "container workload"):
            for what in ("it runs as user 0", "its SELinux", "it sets the SELinux", "its AppArmor", "hostProcess"):
                self.violated(f"{where}: {what}")

    def test_knows_the_containers_own_settings(self):
        self.container["securityContext"] = {"privileged": True, "procMount": "Unmasked", "runAsNonRoot": False,
                                             "seccompProfile": {"type": "Unconfined"},
                                             "capabilities": {"add": ["CHOWN"]}}
        self.container["ports"] = [{"containerPort": 1, "hostPort": 1}]
        for what in ("it is privileged", "allowPrivilegeEscalation", "procMount", "runAsNonRoot", "seccomp profile",
                     "does not drop all", "it adds capabilities", "a port of the host"):
            self.violated(what)

    def test_looks_at_every_container(self):
        self.spec["initContainers"] = [{"name": "early", "securityContext": {}}]
        self.violated("container early: it does not drop all capabilities")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--rnicd", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    PlantedCopy.source = arguments.source.resolve()
    PROGRAMS.update({"rnicd": arguments.rnicd.resolve(), "device-plugin": arguments.plugin.resolve()})
    unittest.main(argv=[__file__, *rest], verbosity=2)
