#include "daemon/sandbox/system_calls.h"

#include <seccomp.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rnicd::sandbox {
namespace {

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const CallGroup& group : AllowedCalls()) {
    names.insert(names.end(), group.calls.begin(), group.calls.end());
  }
  for (const ErrnoCall& errno_call : ErrnoCalls()) {
    names.emplace_back(errno_call.call);
  }
  for (const CallRule& rule : AllowedByArguments(1)) {
    names.emplace_back(rule.call);
  }
  return names;
}

// The filter skips unknown names, so a typing error would show only as a daemon that is killed.
TEST(SystemCalls, EveryNameIsOneOfACall) {
  for (const std::string& name : AllNames()) {
    EXPECT_NE(seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name.c_str()), __NR_SCMP_ERROR) << name;
  }
}

TEST(SystemCalls, ACallIsInOneListOnly) {
  std::set<std::string> seen;
  for (const CallRule& rule : AllowedByArguments(1)) {
    seen.insert(rule.call);
  }
  for (const CallGroup& group : AllowedCalls()) {
    for (const char* const call : group.calls) {
      EXPECT_TRUE(seen.insert(call).second) << call << ", " << group.needed_for;
    }
  }
  for (const ErrnoCall& errno_call : ErrnoCalls()) {
    EXPECT_TRUE(seen.insert(errno_call.call).second) << errno_call.call;
  }
}

TEST(SystemCalls, NoCallOfTheListIsAmongThoseThatAreTooNew) {
  for (const std::string& name : AllNames()) {
    EXPECT_LT(seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name.c_str()), kFirstNewerCall) << name;
  }
}

TEST(SystemCalls, EveryRuleHasAConditionThatItsValueCanMeet) {
  for (const CallRule& rule : AllowedByArguments(1)) {
    EXPECT_FALSE(rule.conditions.empty()) << rule.call;
    for (const ArgumentBits& bits : rule.conditions) {
      EXPECT_EQ(bits.value & ~bits.mask, 0u) << rule.call;
      EXPECT_NE(bits.mask, 0u) << rule.call;
    }
  }
}

}  // namespace
}  // namespace rnicd::sandbox
