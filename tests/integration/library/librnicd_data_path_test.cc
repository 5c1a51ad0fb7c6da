// The data paths of librnicd against the real daemon: what a program sees does not depend on the path.
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// Sets a variable of the environment for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    const char* const before = std::getenv(name);
    before_ = before == nullptr ? "" : before;
    setenv(name, value, 1);
  }
  ~Environment() { setenv(name_, before_.c_str(), 1); }

 private:
  const char* const name_;
  std::string before_;
};

class LibrnicdDataPath : public Librnicd {
 protected:
  Client MustConnectWith(DataPath data_path) { return MustConnect({.label = "data path", .data_path = data_path}); }
};

// What a program is told of an error.
struct Told {
  ErrorReason reason;
  NtStatus status;
  std::string field;
  uint64_t limit = 0;
  uint64_t used = 0;
  uint64_t requested = 0;
  friend bool operator==(const Told&, const Told&) = default;
};

Told ToldOf(const absl::Status& status) {
  const ErrorInfo info = ErrorInfoOf(status);
  return {.reason = info.reason,
          .status = NtStatusOf(status),
          .field = info.field,
          .limit = info.limit,
          .used = info.used,
          .requested = info.requested};
}

// Each mistake once.
std::vector<Told> Mistakes(const Client& client) {
  std::vector<Told> told;
  const Memory memory = Must(Memory::Allocate(client, {.size = 4 * kClientPage}));
  MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
  told.push_back(ToldOf(MemoryRegion::Register(memory, 1U << 20).status()));
  const MdlEntry outside{.memory_id = Must(memory.Entry(memory.bytes())).memory_id,
                         .byte_offset = kMiB,
                         .byte_count = kClientPage,
                         .virtual_address = VirtualAddress{kMiB}};
  told.push_back(ToldOf(MemoryRegion::RegisterChain(client, std::vector{outside}, kClientPage, 0).status()));
  told.push_back(ToldOf(MemoryRegion::RegisterChain(client, {}, kClientPage, 0).status()));
  EXPECT_TRUE(region.Deregister().ok());
  told.push_back(ToldOf(region.Deregister()));
  const CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
  QueuePair pair = Must(QueuePair::Create(queue, queue, {}));
  const auto posted = [&](const WorkChain& chain) {
    const absl::StatusOr<PostOutcome> outcome = pair.Post(chain);
    told.push_back(ToldOf(outcome.ok() ? outcome->failure : outcome.status()));
    told.push_back({.reason = ErrorReason::UNSPECIFIED,
                    .status = NtStatus::kSuccess,
                    .field = outcome.ok() ? "outcome" : "status",
                    .used = outcome.ok() ? outcome->posted : 0});
  };
  const Sge nowhere = Sge::At(VirtualAddress{64}, 8, LocalToken{1});
  posted(WorkChain());
  posted(WorkChain().Send({nowhere}, {}));
  posted(WorkChain().Receive({}, {}).Receive({nowhere}, {}));
  posted(WorkChain().Receive({Sge::At(VirtualAddress{0}, uint64_t{1} << 32, LocalToken{1})}, {}));
  posted(WorkChain().SendInline(std::vector<std::byte>(4096), {}));
  posted(WorkChain().Receive({}, {.flags = kOpFlagInline}));
  posted(WorkChain().Receive(std::vector<Sge>(50, nowhere), {}));
  told.push_back(ToldOf(pair.Flush()));
  posted(WorkChain().Receive({}, {}));
  return told;
}

TEST_F(LibrnicdDataPath, ErrorsAreTheSameOnEveryPath) {
  const std::vector<Told> by_calls = Mistakes(MustConnectWith(DataPath::kCalls));
  const std::vector<Told> by_rings = Mistakes(MustConnectWith(DataPath::kRings));
  ASSERT_EQ(by_calls.size(), by_rings.size());
  for (size_t index = 0; index < by_calls.size(); ++index) {
    EXPECT_EQ(by_calls[index], by_rings[index])
        << index << ": " << by_calls[index].field << " by a call, " << by_rings[index].field << " through a ring; "
        << static_cast<uint32_t>(by_calls[index].reason) << ", " << static_cast<uint32_t>(by_rings[index].reason);
  }
}

TEST_F(LibrnicdDataPath, OpensARingForSomeRegistrationsWhereItMay) {
  const Environment automatic("RNICD_DATA_PATH", "");
  for (const DataPath data_path : {DataPath::kAutomatic, DataPath::kCalls, DataPath::kRings}) {
    const Client client = MustConnectWith(data_path);
    EXPECT_EQ(UsedBy(client, "rings"), 0U);
    const Memory memory = MustAllocate(client, kClientPage);
    const MemoryRegion one = Must(MemoryRegion::Register(memory, 0));
    EXPECT_EQ(UsedBy(client, "rings"), data_path == DataPath::kRings ? 1U : 0U);
    std::vector<MemoryRegion> others;
    for (int region = 0; region < 8; ++region) {
      others.push_back(Must(MemoryRegion::Register(memory, 0)));
    }
    EXPECT_EQ(UsedBy(client, "rings"), data_path == DataPath::kCalls ? 0U : 1U);
  }
}

TEST_F(LibrnicdDataPath, TheEnvironmentDecidesWhatTheProgramLeavesOpen) {
  const auto rings_of = [this](DataPath data_path) {
    const Client client = MustConnectWith(data_path);
    const Memory memory = MustAllocate(client, kClientPage);
    const MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
    return UsedBy(client, "rings");
  };
  const Environment calls("RNICD_DATA_PATH", "calls");
  EXPECT_EQ(rings_of(DataPath::kAutomatic), 0U);
  EXPECT_EQ(rings_of(DataPath::kRings), 1U);
  const Environment nonsense("RNICD_DATA_PATH", "doors");
  const absl::Status refused = Connect({.label = "doors"}).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(refused).field, "RNICD_DATA_PATH");
}

TEST_F(LibrnicdDataPath, ThreadsShareTheRing) {
  const Client client = MustConnectWith(DataPath::kAutomatic);
  const Memory memory = MustAllocate(client, 16 * kClientPage);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto part = memory.bytes().subspan(thread * 4 * kClientPage, 4 * kClientPage);
      for (int turn = 0; turn < 50; ++turn) {
        MemoryRegion region = Must(MemoryRegion::Register(memory, part, kMrFlagLocalWrite));
        EXPECT_EQ(region.base_address().value, reinterpret_cast<uintptr_t>(part.data()));
        EXPECT_EQ(region.length(), part.size());
        EXPECT_TRUE(region.Deregister().ok());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(LibrnicdDataPath, ThreadsThatPollAreToldThatTheSessionEnded) {
  Client client = MustConnectWith(DataPath::kAutomatic);
  CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
  std::thread poller([&] { EXPECT_FALSE(queue.PollFor(1, kTimeout).ok()); });
  std::thread waiter([&] { EXPECT_FALSE(queue.WaitForNotification(kTimeout).ok()); });
  EXPECT_TRUE(client.Close().ok());
  poller.join();
  waiter.join();
  EXPECT_FALSE(MemoryRegion::RegisterChain(client, {}, 1, 0).ok());
}

TEST_F(LibrnicdDataPath, AQueueOfTheAdaptersDepthIsMapped) {
  const Client client = MustConnectWith(DataPath::kRings);
  const uint32_t depth = Must(client.QueryAdapterInfo()).max_cq_depth;
  CompletionQueue queue = Must(CompletionQueue::Create(client, depth));
  EXPECT_TRUE(Must(queue.Poll(1)).empty());
  EXPECT_TRUE(queue.Resize(16).ok());
  EXPECT_TRUE(queue.Resize(depth).ok());
}

}  // namespace
}  // namespace rnicd::test
