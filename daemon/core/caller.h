#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rnicd::core {

// Names one process for ever, even when its pid is used again: the inode of its pidfd where the kernel numbers those
// uniquely, else pid and start time. Made by transport/, compared everywhere.
struct ProcessKey {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

// A process that can be asked whether it is still there. Threads: safe.
class ProcessHandle {
 public:
  virtual ~ProcessHandle() = default;
  // True as soon as the process has ended; waits for that at most so long, and then also takes one that has begun to
  // end.
  virtual bool HasExited(std::chrono::milliseconds wait) const = 0;
};

// What a caller may do. The socket it came in by decides, and on the operator's socket also the policy.
enum class Role : uint8_t {
  kWorkload,
  kOperator,
  // May see everything and hand out grants, but neither evict nor drain.
  kDevicePlugin,
};

// The container a process runs in, as its control groups say. Both are empty outside of one.
struct Container {
  // As IsPodUid of base/pod_uid.h.
  std::string pod_uid;
  // 64 hexadecimal digits.
  std::string id;

  friend bool operator==(const Container&, const Container&) = default;
};

// Who is asking, as the kernel said when the connection was accepted. Nothing in it comes from the client.
struct Caller {
  ProcessKey process;
  // As seen from the daemon; 0 when the client's pid namespace is not visible. For people only, never compared.
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  Role role = Role::kWorkload;
  Container container;
  std::shared_ptr<const ProcessHandle> handle;
};

}  // namespace rnicd::core

template <>
struct std::hash<rnicd::core::ProcessKey> {
  size_t operator()(const rnicd::core::ProcessKey& key) const noexcept {
    return std::hash<uint64_t>{}(key.high ^ (key.low << 1));
  }
};
