#include "daemon/sandbox/capabilities.h"

#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "daemon/sandbox/sandboxed_child_test.h"

// Run by root these tests check that the capabilities of root are dropped; run by another user, that none is left.
namespace rnicd::sandbox {
namespace {

constexpr uint64_t kIpcLock = uint64_t{1} << CAP_IPC_LOCK;
constexpr uint64_t kSetPcap = uint64_t{1} << CAP_SETPCAP;

// The sets of "CapEff:" and the like in the text of /proc/<pid>/status.
uint64_t SetIn(const std::string& status, const std::string& name) {
  const size_t at = status.find(name + ":");
  return at == std::string::npos ? ~uint64_t{0} : std::stoull(status.substr(at + name.size() + 1), nullptr, 16);
}

std::string OwnStatus() {
  std::ifstream file("/proc/self/status");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The child's own /proc status after `prepare` and after it has entered the sandbox.
std::string StatusInSandbox(const SandboxOptions& options, const std::function<void()>& prepare = [] {}) {
  const ChildEnd end = Child([&](int pipe) {
                         prepare();
                         EnterOrExit(options, pipe);
                         WriteText(pipe, OwnStatus());
                         return 0;
                       }).End();
  EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
  return end.output;
}

// The bounding set of a process that may change it, and of one that may not.
uint64_t ExpectedBoundingSet(const std::string& before) {
  return (SetIn(before, "CapEff") & kSetPcap) != 0 ? 0 : SetIn(before, "CapBnd");
}

TEST(Capabilities, NoneIsLeft) {
  const std::string status = StatusInSandbox({});
  for (const char* const set : {"CapEff", "CapPrm", "CapInh", "CapAmb"}) {
    EXPECT_EQ(SetIn(status, set), 0u) << set;
  }
  EXPECT_EQ(SetIn(status, "CapBnd"), ExpectedBoundingSet(OwnStatus()));
}

TEST(Capabilities, IpcLockIsKeptOnRequestIfHeldAndNothingElse) {
  const std::string status = StatusInSandbox({.keep_ipc_lock = true});
  const uint64_t expected = SetIn(OwnStatus(), "CapPrm") & kIpcLock;
  EXPECT_EQ(SetIn(status, "CapEff"), expected);
  EXPECT_EQ(SetIn(status, "CapPrm"), expected);
  EXPECT_EQ(SetIn(status, "CapInh"), 0u);
  EXPECT_EQ(SetIn(status, "CapAmb"), 0u);
  EXPECT_EQ(SetIn(status, "CapBnd"), ExpectedBoundingSet(OwnStatus()));
}

// Becomes another user without any capability, as in a container or under systemd; no effect for a user that is not
// root.
void BecomeNobody() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
    _exit(kDidNotEnter);
  }
}

TEST(Capabilities, WithoutCapabilitiesThereIsNothingToDrop) {
  const std::string status = StatusInSandbox({.keep_ipc_lock = true}, BecomeNobody);
  for (const char* const set : {"CapEff", "CapPrm", "CapInh", "CapAmb"}) {
    EXPECT_EQ(SetIn(status, set), 0u) << set;
  }
}

// systemd starts the daemon as a dedicated user with one ambient capability.
TEST(Capabilities, AnAmbientIpcLockIsKeptWithoutBeingAmbient) {
  const uint64_t expected = SetIn(OwnStatus(), "CapPrm") & kIpcLock;
  const std::string status = StatusInSandbox({.keep_ipc_lock = true}, [&] {
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    BecomeNobody();
    constexpr cap_value_t kOnly[] = {CAP_IPC_LOCK};
    const cap_t only = cap_init();
    for (const cap_flag_t set : {CAP_PERMITTED, CAP_EFFECTIVE, CAP_INHERITABLE}) {
      cap_set_flag(only, set, 1, kOnly, expected != 0 ? CAP_SET : CAP_CLEAR);
    }
    if (cap_set_proc(only) != 0 || (expected != 0 && cap_set_ambient(CAP_IPC_LOCK, CAP_SET) != 0)) {
      _exit(kDidNotEnter);
    }
    cap_free(only);
  });
  EXPECT_EQ(SetIn(status, "CapEff"), expected);
  EXPECT_EQ(SetIn(status, "CapPrm"), expected);
  EXPECT_EQ(SetIn(status, "CapInh"), 0u);
  EXPECT_EQ(SetIn(status, "CapAmb"), 0u);
}

TEST(Capabilities, RootHasNoSpecialRightsAndGetsNone) {
  constexpr unsigned kLocked = SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_CAP_AMBIENT_RAISE |
                               SECBIT_KEEP_CAPS_LOCKED | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  const unsigned own = cap_get_secbits();
  const bool may = (SetIn(OwnStatus(), "CapEff") & kSetPcap) != 0;
  const ChildEnd end = InSandbox({.filter = SystemCallFilter::kOff}, [](int pipe) {
    WriteText(pipe, std::to_string(cap_get_secbits()));
    return 0;
  });
  ASSERT_EQ(end.exit_code, 0) << end.output;
  EXPECT_EQ(end.output, std::to_string(may ? own | kLocked : own));
}

TEST(Capabilities, SecureBitsThatAreLockedOtherwiseDoNotStopIt) {
  const std::string status = StatusInSandbox({}, [] {
    // Fails without CAP_SETPCAP, and then there are no locked bits to preserve.
    cap_set_secbits(SECBIT_NO_SETUID_FIXUP_LOCKED);
  });
  EXPECT_EQ(SetIn(status, "CapEff"), 0u);
}

TEST(Capabilities, NothingBringsThemBack) {
  const ChildEnd end = InSandbox({.keep_ipc_lock = true, .filter = SystemCallFilter::kOff}, [](int) {
    const cap_t all = cap_from_text("all=ep");
    const bool refused = cap_set_proc(all) != 0 && cap_set_ambient(CAP_IPC_LOCK, CAP_SET) != 0;
    cap_free(all);
    return refused ? 0 : 1;
  });
  EXPECT_EQ(end.exit_code, 0) << end.output;
}

}  // namespace
}  // namespace rnicd::sandbox
