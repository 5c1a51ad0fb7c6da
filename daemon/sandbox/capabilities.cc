#include "daemon/sandbox/capabilities.h"

#include <linux/securebits.h>
#include <sys/capability.h>

#include <array>
#include <cerrno>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/sandbox/failed_step.h"

namespace rnicd::sandbox {
namespace {

struct CapabilitiesDeleter {
  void operator()(cap_t capabilities) const { cap_free(capabilities); }
};
using Capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, CapabilitiesDeleter>;

// User 0 has no special rights, no change of users adds capabilities, and none is kept or raised; all locked.
constexpr unsigned kSecureBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

bool Holds(const Capabilities& held, cap_value_t capability, cap_flag_t set) {
  cap_flag_value_t value = CAP_CLEAR;
  return cap_get_flag(held.get(), capability, set, &value) == 0 && value == CAP_SET;
}

// The kernel may have more capabilities than the library has names for.
absl::Status EmptyBoundingSet() {
  for (cap_value_t capability = 0;; ++capability) {
    const int bound = cap_get_bound(capability);
    if (bound < 0) {
      return absl::OkStatus();
    }
    if (bound > 0 && cap_drop_bound(capability) != 0) {
      return FailedStep(absl::StrCat("cannot take capability ", capability, " from the bounding set"), errno);
    }
  }
}

// Bits that the process's parent has locked otherwise stay unchanged.
absl::Status LockSecureBits() {
  const unsigned current = cap_get_secbits();
  const unsigned locked = (current & SECURE_ALL_LOCKS) >> 1;
  return cap_set_secbits(current | (kSecureBits & ~locked)) == 0 ? absl::OkStatus()
                                                                 : FailedStep("cannot lock the securebits", errno);
}

}  // namespace

absl::Status DropCapabilities(bool keep_ipc_lock) {
  const Capabilities held(cap_get_proc());
  const Capabilities wanted(cap_init());
  if (held == nullptr || wanted == nullptr) {
    return FailedStep("cannot read the capabilities", errno);
  }
  if (Holds(held, CAP_SETPCAP, CAP_EFFECTIVE)) {
    RNICD_RETURN_IF_ERROR(EmptyBoundingSet());
    RNICD_RETURN_IF_ERROR(LockSecureBits());
  }
  if (cap_reset_ambient() != 0) {
    return FailedStep("cannot empty the ambient set", errno);
  }
  if (keep_ipc_lock && Holds(held, CAP_IPC_LOCK, CAP_PERMITTED)) {
    constexpr std::array<cap_value_t, 1> kKept = {CAP_IPC_LOCK};
    cap_set_flag(wanted.get(), CAP_PERMITTED, kKept.size(), kKept.data(), CAP_SET);
    cap_set_flag(wanted.get(), CAP_EFFECTIVE, kKept.size(), kKept.data(), CAP_SET);
  }
  if (cap_set_proc(wanted.get()) != 0) {
    return FailedStep("cannot drop the capabilities", errno);
  }
  const Capabilities left(cap_get_proc());
  if (left == nullptr || cap_compare(left.get(), wanted.get()) != 0) {
    return absl::InternalError("sandbox: the kernel has not dropped all capabilities");
  }
  return absl::OkStatus();
}

}  // namespace rnicd::sandbox
