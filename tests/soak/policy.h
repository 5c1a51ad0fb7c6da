#pragma once

namespace rnicd::soak {

// The daemon's policy for the clients' users; crowd.cc assigns users to roles. The good clients' limits suffice, so
// that a refusal is a bug in the daemon or in its isolation of tenants.
inline constexpr char kPolicy[] = R"(
tenant {
  name: "good"
  match { uid: 60001 }
  limits { pinned_bytes: 1073741824 memory_bytes: 1073741824 regions: 65536 sessions: 512 }
}
tenant {
  name: "crashing"
  match { uid: 60002 }
  limits { pinned_bytes: 536870912 memory_bytes: 536870912 regions: 8192 sessions: 256 queue_pairs: 512 }
}
tenant {
  name: "flood"
  match { uid: 60003 }
  limits { sessions: 64 requests_per_second: 200 }
}
tenant {
  name: "small"
  match { uid: 60004 }
  limits { pinned_bytes: 8388608 memory_bytes: 16777216 regions: 200 sessions: 64 }
  session_limits { regions: 100 memory_bytes: 8388608 }
}
tenant {
  name: "liars"
  match { uid: 60005 }
  limits { memory_bytes: 67108864 sessions: 64 }
}
tenant {
  name: "guests"
  sharing: SHARING_EACH_UID
  limits { pinned_bytes: 268435456 memory_bytes: 268435456 regions: 4096 sessions: 256 requests_per_second: 5000 }
}
default_tenant: "guests"
)";

}  // namespace rnicd::soak
