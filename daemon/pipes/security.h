#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/pipes/door.h"

namespace rnicd::pipes {

// Rights of a client of the workloads' pipe: to read, to write and to set its own mode. GENERIC_WRITE has one more, to
// create another instance of the pipe, with which a client would receive the messages of others.
inline constexpr uint32_t kClientRights = 0x12019b;

// The rights to the pipe of this door, in the language of security descriptors (SDDL). The workloads' may be opened by
// every authenticated user, the operators' by SYSTEM, administrators and `daemon_sid`, the daemon's user.
std::string DescriptorText(Door door, const std::string& daemon_sid);

// A security descriptor of Windows.
// Threads: safe.
class SecurityDescriptor {
 public:
  // Errors: WindowsStatus of the conversion.
  static absl::StatusOr<SecurityDescriptor> Parse(const std::string& text);
  void* get() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  explicit SecurityDescriptor(void* memory) : memory_(memory) {}

  std::unique_ptr<void, Free> memory_;
};

}  // namespace rnicd::pipes
