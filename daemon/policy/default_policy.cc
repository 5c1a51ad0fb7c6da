#include "daemon/policy/default_policy.h"

#include "daemon/policy/policy_file.h"

namespace rnicd::policy {

std::string_view DefaultPolicyText() {
  return R"(# The policy of rnicd without --policy_file. docs/POLICY.md explains every part.
tenant {
  name: "uid"
  # Each uid of each pod is a tenant.
  sharing: SHARING_EACH_UID
  # A limit that is not set is no limit.
  limits {
    sessions: 256
    logical_pages: 16777216  # 64 GiB
    heap_bytes: 268435456    # 256 MiB of the daemon's own memory: fewer than 131072 regions
  }
  # Every tenant that does not set one of these has it as here. Those that are missing have no limit.
  session_limits {
    adapters: 64
    protection_domains: 1024
    memory_objects: 1024
    regions: 1048576
    pending_requests: 4096
    logical_mappings: 65536
    logical_pages: 16777216
    fast_register_pages: 16777216
    completion_queues: 1024
    cq_entries: 4194304
    queue_pairs: 1024
    queue_entries: 262144
    windows: 65536
    posted_pages: 4194304
    rings: 64
    listeners: 1024
    connectors: 4096
  }
  # Processes of one tenant on this node can meet by address, or by name. Nothing else is reached without connect and
  # accept. IPv4 addresses are in "::/0" too, as ::ffff:a.b.c.d.
  connections {
    listen { prefix: "::/0" first_port: 49152 last_port: 65535 }
  }
}
default_tenant: "uid"
)";
}

core::Policy DefaultPolicy() { return *ParsePolicy(DefaultPolicyText(), "default policy"); }

}  // namespace rnicd::policy
