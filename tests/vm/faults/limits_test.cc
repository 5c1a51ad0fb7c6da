// Limits of the kernel and the card: each has its own error reason, and a refused request leaves nothing behind.
#include <sys/resource.h>

#include <vector>

#include "base/units.h"
#include "tests/support/calls/expect.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

// Sets RLIMIT_MEMLOCK of this process, and thereby of the processes that it starts.
class MemlockLimit {
 public:
  explicit MemlockLimit(uint64_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
  }
  ~MemlockLimit() { EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &before_), 0); }
  MemlockLimit(const MemlockLimit&) = delete;
  MemlockLimit& operator=(const MemlockLimit&) = delete;

 private:
  rlimit before_ = {};
};

// Registers a whole memory object; may fail.
CallResult<v1::RegisterMrResponse> TryToRegister(TestSession& session, uint64_t mr_id, uint64_t memory_id,
                                                 uint64_t size) {
  return session.Register(RegisterRequest(mr_id, {MdlEntry(memory_id, 0, size, kBase)}, size));
}

// A daemon without capabilities and with this limit on pinned memory.
class Memlock : private MemlockLimit, public FaultTest {
 protected:
  explicit Memlock(uint64_t bytes) : MemlockLimit(bytes), FaultTest(DaemonOptions{.uid = OtherUid()}) {}
};

class MemlockOfOneMebibyte : public Memlock {
 protected:
  MemlockOfOneMebibyte() : Memlock(kMiB) {}
};

TEST_F(MemlockOfOneMebibyte, IsNamedAndLeavesNothingBehind) {
  TestSession session(daemon());
  const uint64_t large = session.SealedMemory(2 * kMiB);
  const uint64_t small = session.SealedMemory(kMiB / 2);
  const uint64_t mr_id = session.CreateMr();
  const KernelObjects objects = Objects();
  const uint64_t pinned = PinnedKib(daemon_pid());
  ExpectRefused(TryToRegister(session, mr_id, large, 2 * kMiB), ErrorReason::DEVICE_MEMLOCK_LIMIT);
  EXPECT_EQ(Objects(), objects) << Describe(Objects());
  EXPECT_EQ(PinnedKib(daemon_pid()), pinned);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);

  ExpectOk(TryToRegister(session, mr_id, small, kMiB / 2));
  // The kernel counts a page for each registration.
  const uint64_t second = session.CreateMr();
  const uint64_t third = session.CreateMr();
  ExpectOk(TryToRegister(session, second, small, kMiB / 4));
  ExpectRefused(TryToRegister(session, third, small, kMiB / 2), ErrorReason::DEVICE_MEMLOCK_LIMIT);
  ExpectOk(session.Deregister(mr_id));
  ExpectOk(TryToRegister(session, third, small, kMiB / 2));
}

TEST_F(MemlockOfOneMebibyte, IsNamedForFastRegistrationToo) {
  TestSession session(daemon());
  OwnMemory memory(session, 2 * kMiB);
  TestQueue queue(session);
  TestQueue peer(session);
  ConnectPair(queue, peer);
  const std::vector<uint64_t> pages = memory.LogicalPages();
  const uint64_t mr_id = FastRegion(session, static_cast<uint32_t>(pages.size()));
  const KernelObjects objects = Objects();
  queue.ExpectPostRefused(FastRegisterRequest(mr_id, pages, 2 * kMiB, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ),
                          ErrorReason::DEVICE_MEMLOCK_LIMIT, "");
  EXPECT_EQ(Objects(), objects) << Describe(Objects());
  const std::vector<uint64_t> few(pages.begin(), pages.begin() + 16);
  queue.MustRun(FastRegisterRequest(mr_id, few, 16 * kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ));
}

// A daemon that may pin nothing starts, so that its operator can query what is wrong; but it cannot create a protection
// domain, which includes a registration. Not a FaultTest, because that begins and ends with a registration.
TEST(MemlockOfNothing, RefusesEveryProtectionDomainByTheSameName) {
  const MemlockLimit limit(0);
  auto daemon = DaemonProcess::Start({.flags = {kNoTriesAfterTheFirst}, .uid = OtherUid()});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  {
    TestSession session(**daemon);
    v1::CreatePdRequest request;
    request.set_adapter_id(session.adapter_id());
    ExpectRefused(session.Call(&MemoryStub::CreatePd, request), ErrorReason::DEVICE_MEMLOCK_LIMIT);
    EXPECT_EQ(session.Use("protection_domains").used(), 0u);
    const KernelObjects left = AllKernelObjects();
    EXPECT_TRUE(left.empty()) << Describe(left);
  }
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

class RegionTable : public FaultTest {
 protected:
  static constexpr uint64_t kRegions = 8;
  RegionTable() : FaultTest(std::vector<std::string>{"--verbs_max_regions=" + std::to_string(kRegions)}) {}
};

TEST_F(RegionTable, FullIsNotCalledMemlock) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  std::vector<uint64_t> regions;
  for (uint64_t index = 0; index < kRegions; ++index) {
    regions.push_back(session.CreateMr());
    ExpectOk(TryToRegister(session, regions.back(), memory, kPage));
  }
  const uint64_t one_more = session.CreateMr();
  const KernelObjects objects = Objects();
  ExpectRefused(TryToRegister(session, one_more, memory, kPage), ErrorReason::DEVICE_OUT_OF_RESOURCES);
  EXPECT_EQ(Objects(), objects) << Describe(Objects());
  ExpectOk(session.Deregister(regions.front()));
  ExpectOk(TryToRegister(session, one_more, memory, kPage));
}

}  // namespace
}  // namespace rnicd::test
