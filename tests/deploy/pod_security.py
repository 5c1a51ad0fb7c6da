"""Finds violations of the level "restricted" of Kubernetes' Pod Security Standards, as far as it applies to Linux.

Source: kubernetes.io/docs/concepts/security/pod-security-standards, as of Kubernetes 1.30.
"""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SECCOMP = {"RuntimeDefault", "Localhost"}
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
SYSCTLS = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
           "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
           "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
           "net.ipv4.tcp_keepalive_probes"}
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def containers(spec):
    return [container for kind in CONTAINERS for container in spec.get(kind) or []]


def _context(spec):
    return spec.get("securityContext") or {}


def _of_the_pod(spec):
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield f"{key} is set"
    for volume in spec.get("volumes") or []:
        for kind in set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is a {kind}"
    for sysctl in _context(spec).get("sysctls") or []:
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']} is set"


def _of_both(context):
    """Violations that apply to the security context of a pod and of a container."""
    if "type" in context.get("seLinuxOptions", {}) and context["seLinuxOptions"]["type"] not in SELINUX_TYPES:
        yield "its SELinux type is not one of containers"
    if {"user", "role"} & set(context.get("seLinuxOptions", {})):
        yield "it sets the SELinux user or role"
    if context.get("appArmorProfile", {}).get("type") == "Unconfined":
        yield "its AppArmor profile is Unconfined"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "hostProcess is set"
    if context.get("runAsUser") == 0:
        yield "it runs as user 0"


def _of_a_container(container, pod_context):
    context = _context(container)
    if context.get("privileged"):
        yield "it is privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if context.get("procMount", "Default") != "Default":
        yield "its procMount is not Default"
    if context.get("runAsNonRoot", pod_context.get("runAsNonRoot")) is not True:
        yield "runAsNonRoot is not true"
    profile = context.get("seccompProfile", pod_context.get("seccompProfile")) or {}
    if profile.get("type") not in SECCOMP:
        yield "its seccomp profile is neither RuntimeDefault nor Localhost"
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield "it does not drop all capabilities"
    if set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
        yield "it adds capabilities"
    if any(port.get("hostPort") for port in container.get("ports") or []):
        yield "it uses a port of the host"


def violations(spec):
    """Descriptions of the parts of a pod's spec that violate the level."""
    context = _context(spec)
    found = [*_of_the_pod(spec), *(f"pod: {what}" for what in _of_both(context))]
    for container in containers(spec):
        for what in [*_of_both(_context(container)), *_of_a_container(container, context)]:
            found.append(f"container {container['name']}: {what}")
    return found
