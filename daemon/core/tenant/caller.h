#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rnicd::core {

class Tenant;

// Identifies one process permanently, even when its pid is reused: the inode of its pidfd where the kernel numbers
// those uniquely, else pid and start time. Made by a front door, compared everywhere.
struct ProcessKey {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

// A process whose exit can be checked.
// Threads: safe.
class ProcessHandle {
 public:
  virtual ~ProcessHandle() = default;
  // True as soon as the process has exited. Waits at most `wait` for that; after a wait, a process that has begun to
  // exit counts as exited too.
  virtual bool HasExited(std::chrono::milliseconds wait) const = 0;
};

// What a caller may do. Decided by the socket or pipe of its connection and, on the operator's socket, also by the
// policy.
enum class Role : uint8_t {
  kWorkload,
  kOperator,
  // May see everything and hand out grants, but neither evict nor drain.
  kDevicePlugin,
};

// The container a process runs in, according to its control groups. Both fields are empty outside of a container.
struct Container {
  // UID of the pod, in the form that IsPodUid (base/pod_uid.h) accepts.
  std::string pod_uid;
  // ID of the container: 64 hexadecimal digits.
  std::string id;

  friend bool operator==(const Container&, const Container&) = default;
};

// In place of a uid or gid on Windows, which has none. No rule of a policy names it.
inline constexpr uint32_t kNoUser = UINT32_MAX;

// The calling process, as the kernel described it when the connection was accepted, and the way that it took. No field
// comes from the client.
struct Caller {
  ProcessKey process;
  // Process ID in the daemon's pid namespace; 0 when the client's namespace is not visible. For display only, never
  // compared.
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Security identifier of the process's user on Windows, as "S-1-5-18"; empty on Linux. There uid and gid are
  // kNoUser.
  std::string sid;
  // Those of the groups that the process's token has enabled; null on Linux.
  std::shared_ptr<const std::vector<std::string>> group_sids;
  Role role = Role::kWorkload;
  Container container;
  std::shared_ptr<const ProcessHandle> handle;
  // The grant whose door the connection came through; null at the sockets that all share.
  std::shared_ptr<Tenant> door;
};

// Names what a caller's connections and lines of the audit log count for: the grant of its door, else its pod, else its
// container, else its user. Pods commonly run with the same uid, and one of them must not use up what the others need.
std::string OwnerOf(const Caller& caller);

}  // namespace rnicd::core

template <>
struct std::hash<rnicd::core::ProcessKey> {
  size_t operator()(const rnicd::core::ProcessKey& key) const noexcept {
    return std::hash<uint64_t>{}(key.high ^ (key.low << 1));
  }
};
