#include "daemon/sandbox/system_call_filter.h"

#include <seccomp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/sandbox/failed_step.h"
#include "daemon/sandbox/serving.h"
#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {
namespace {

struct FilterDeleter {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, FilterDeleter>;

// The library returns errors as negative errnos.
absl::Status StatusOf(int result, std::string_view step) {
  return result == 0 ? absl::OkStatus() : FailedStep(step, -result);
}

// Negative for a name that is unknown to the library or missing on this architecture.
int NumberOf(const char* call) { return seccomp_syscall_resolve_name(call); }

absl::Status AddRule(const Filter& filter, uint32_t action, int number, const std::vector<ArgumentBits>& conditions) {
  std::vector<scmp_arg_cmp> compares;
  compares.reserve(conditions.size());
  for (const ArgumentBits& bits : conditions) {
    compares.push_back(
        bits.differs
            ? scmp_arg_cmp{.arg = bits.index, .op = SCMP_CMP_NE, .datum_a = bits.value, .datum_b = 0}
            : scmp_arg_cmp{.arg = bits.index, .op = SCMP_CMP_MASKED_EQ, .datum_a = bits.mask, .datum_b = bits.value});
  }
  const int result = seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(compares.size()),
                                            compares.empty() ? nullptr : compares.data());
  return StatusOf(result, absl::StrCat("cannot make the rule for system call ", number));
}

absl::Status AddNamed(const Filter& filter, uint32_t action, const char* call,
                      const std::vector<ArgumentBits>& conditions) {
  const int number = NumberOf(call);
  return number < 0 ? absl::OkStatus() : AddRule(filter, action, number, conditions);
}

absl::Status AddRules(const Filter& filter) {
  for (const CallGroup& group : AllowedCalls()) {
    for (const char* const call : group.calls) {
      RNICD_RETURN_IF_ERROR(AddNamed(filter, SCMP_ACT_ALLOW, call, {}));
    }
  }
  for (const CallRule& rule : AllowedByArguments(getpid())) {
    RNICD_RETURN_IF_ERROR(AddNamed(filter, SCMP_ACT_ALLOW, rule.call, rule.conditions));
  }
  for (const int number : AllowedNumbers()) {
    RNICD_RETURN_IF_ERROR(AddRule(filter, SCMP_ACT_ALLOW, number, {}));
  }
  for (const ErrnoCall& errno_call : ErrnoCalls()) {
    RNICD_RETURN_IF_ERROR(
        AddNamed(filter, SCMP_ACT_ERRNO(static_cast<unsigned>(errno_call.error_number)), errno_call.call, {}));
  }
  for (int number = kFirstNewerCall; number < kNewerCallsEnd; ++number) {
    RNICD_RETURN_IF_ERROR(AddRule(filter, SCMP_ACT_ERRNO(ENOSYS), number, {}));
  }
  return absl::OkStatus();
}

absl::Status AddServingRules(const Filter& filter, uint32_t action, bool looks_for_cards) {
  for (const RefusedUse& use : RefusedWhenServing(looks_for_cards)) {
    const uint32_t outcome = use.error_number == 0 ? action : SCMP_ACT_ERRNO(static_cast<unsigned>(use.error_number));
    RNICD_RETURN_IF_ERROR(AddNamed(filter, outcome, use.call, use.conditions));
  }
  return absl::OkStatus();
}

absl::Status SetAttributes(const Filter& filter, uint32_t action) {
  RNICD_RETURN_IF_ERROR(
      StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, action), "cannot refuse other architectures"));
  // Return the kernel's own errno instead of ECANCELED.
  RNICD_RETURN_IF_ERROR(
      StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_API_SYSRAWRC, 1), "cannot ask for the kernel's errors"));
  // EnterSandbox has set no_new_privs, and the second filter could not set it.
  RNICD_RETURN_IF_ERROR(
      StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 0), "cannot leave no_new_privs as it is"));
  // A search tree: some calls would otherwise pass three hundred comparisons.
  RNICD_RETURN_IF_ERROR(
      StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "cannot ask for a search tree"));
  // Before Linux 5.16 a filter also slows memory accesses down, against speculation that reads data of untrusted code
  // in the same process. The daemon runs none.
  return StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1), "cannot leave speculation alone");
}

uint32_t ActionOf(OtherCalls calls) { return calls == OtherCalls::kAreLogged ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS; }

}  // namespace

absl::Status LoadSystemCallFilter(OtherCalls others) {
  const uint32_t action = ActionOf(others);
  const Filter filter(seccomp_init(action));
  if (filter == nullptr) {
    return FailedStep("cannot begin a filter", ENOSYS);
  }
  RNICD_RETURN_IF_ERROR(SetAttributes(filter, action));
  RNICD_RETURN_IF_ERROR(AddRules(filter));
  return StatusOf(seccomp_load(filter.get()), "cannot load the filter");
}

absl::Status LoadServingFilter(OtherCalls refused, bool looks_for_cards) {
  const uint32_t action = ActionOf(refused);
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW));
  if (filter == nullptr) {
    return FailedStep("cannot begin the second filter", ENOSYS);
  }
  RNICD_RETURN_IF_ERROR(SetAttributes(filter, action));
  RNICD_RETURN_IF_ERROR(
      StatusOf(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1), "cannot ask for a filter of all threads"));
  RNICD_RETURN_IF_ERROR(AddServingRules(filter, action, looks_for_cards));
  return StatusOf(seccomp_load(filter.get()), "cannot load the second filter");
}

}  // namespace rnicd::sandbox
