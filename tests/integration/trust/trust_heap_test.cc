// Property 15: what clients make the daemon keep for them is bounded, also without a policy, and other users still
// work.
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {
namespace {

// What one uid may have without a policy (docs/OPERATING.md, "What the daemon may take").
constexpr uint64_t kHeapBytesOfAUid = 256 * kMiB;
constexpr uint64_t kSessionsOfAUid = 256;
// What the daemon may have besides: connections, messages on the way, and pages that its allocator keeps.
const uint64_t kBesides = 96 * kMiB * static_cast<uint64_t>(kSlowness);

// What the daemon's allocator may keep of it when all is released; one of a sanitizer keeps nearly all.
const uint64_t kKeptAfterwards = kSlowness > 1 ? static_cast<uint64_t>(kSlowness) * kHeapBytesOfAUid : 16 * kMiB;

// Bytes of the daemon's own memory, without the memory objects, which it maps as shared memory.
uint64_t AnonymousBytes(DaemonProcess& daemon) {
  std::ifstream status("/proc/" + std::to_string(daemon.process().pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) {
      return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
    }
  }
  ADD_FAILURE() << "no RssAnon";
  return 0;
}

CallResult<v1::BuildLamResponse> BuildLam(TestSession& session, uint64_t memory_id, uint64_t pages) {
  v1::BuildLamRequest request;
  request.set_adapter_id(session.adapter_id());
  *request.add_mdl_chain() = MdlEntry(memory_id, 0, pages * kPage, kBase);
  request.set_length(pages * kPage);
  return session.Call(&MemoryStub::BuildLam, request);
}

CallOutcome TryCreateCq(TestSession& session, uint32_t depth) {
  v1::CreateCqRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::CreateCq, request);
}

// Creates regions in batches until one is refused; returns its reason.
v1::ErrorReason TakeRegionsUntilRefused(TestSession& session) {
  v1::BatchCreateMrRequest request;
  for (int count = 0; count < 1000; ++count) {
    request.add_items()->set_pd_id(session.pd_id());
  }
  while (true) {
    const auto created = session.Call(&MemoryStub::BatchCreateMr, request);
    if (!created.ok()) {
      return created.detail.reason();
    }
    for (const v1::CreateMrOutcome& outcome : created.response.outcomes()) {
      if (outcome.has_error()) {
        return outcome.error().reason();
      }
    }
  }
}

uint64_t HeapOf(const DaemonProcess& daemon, uid_t uid) {
  return UsedOf(TenantNamed(daemon, "uid/uid=" + std::to_string(uid)).resources(), "heap_bytes");
}

// Opens sessions until one is refused, each with an adapter and a domain.
std::vector<std::unique_ptr<TestSession>> TakeSessions(DaemonProcess& daemon) {
  std::vector<std::unique_ptr<TestSession>> sessions;
  while (sessions.size() < kSessionsOfAUid) {
    sessions.push_back(std::make_unique<TestSession>(daemon, "hoarder"));
    sessions.back()->pd_id();
  }
  RawClient another(daemon.rpc_socket());
  ExpectRefused(another.Call(&SessionStub::OpenSession, {}), ErrorReason::QUOTA_SESSIONS);
  return sessions;
}

void ExpectAnotherUserWorks(DaemonProcess& daemon) {
  if (!TwoUids()) {
    return;
  }
  const auto other = ChildClient::Start(daemon, WorkloadUid());
  ASSERT_NE(other, nullptr);
  other->MustRun("open");
  const uint64_t memory_id = other->MustRun("alloc 4096").number("memory");
  other->MustRun("register " + std::to_string(memory_id) + " 4096 0");
}

TEST_F(Trust, Property15AUidThatTakesAllItCanCostsTheDaemonNoMoreThanTheBound) {
  constexpr uint64_t kPages = 8192;
  // Not the shared one: the allocator of a daemon that other tests have used would fill pages that it kept of them.
  const auto started = DaemonProcess::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& fresh = **started;
  const IdleState fresh_idle = MeasureIdle(fresh);
  const uint64_t before = AnonymousBytes(fresh);
  auto sessions = TakeSessions(fresh);
  const uint64_t memory_id = sessions[0]->SealedMemory(kPages * kPage);
  auto built = BuildLam(*sessions[0], memory_id, kPages);
  while (built.ok()) {
    built = BuildLam(*sessions[0], memory_id, kPages);
  }
  ExpectRefused(built, ErrorReason::QUOTA_LOGICAL_PAGES);
  EXPECT_EQ(TakeRegionsUntilRefused(*sessions[1]), v1::ERROR_REASON_QUOTA_HEAP_BYTES);
  // The last bytes, in sessions that have nothing yet.
  for (size_t index = 2; index < 10; ++index) {
    (void)TakeRegionsUntilRefused(*sessions[index]);
    ExpectRefused(TryCreateCq(*sessions[index], 65536), ErrorReason::QUOTA_HEAP_BYTES);
  }
  EXPECT_LE(HeapOf(fresh, geteuid()), kHeapBytesOfAUid);
  EXPECT_GE(HeapOf(fresh, geteuid()), kHeapBytesOfAUid - kMiB);
  const uint64_t grown = AnonymousBytes(fresh) - before;
  RecordProperty("grown_bytes", std::to_string(grown));
  EXPECT_GE(grown, 128 * kMiB) << "this is not the attack that it should be";
  EXPECT_LE(grown, kHeapBytesOfAUid * static_cast<uint64_t>(kSlowness) + kBesides);
  ExpectAnotherUserWorks(fresh);

  sessions.clear();
  ExpectNothingHeld(fresh, fresh_idle);
  EXPECT_TRUE(Eventually([&] { return AnonymousBytes(fresh) <= before + kKeptAfterwards; }))
      << AnonymousBytes(fresh) - before << " bytes are kept";
}

// --- each kind of object ---

struct Kind {
  const char* name;
  CallOutcome (*take)(TestSession& session);
};

CallOutcome TakeDomain(TestSession& session) {
  v1::CreatePdRequest request;
  request.set_adapter_id(session.adapter_id());
  return session.Call(&MemoryStub::CreatePd, request);
}
CallOutcome TakeMemory(TestSession& session) {
  v1::AllocateMemoryRequest request;
  request.set_size(kPage);
  return session.Call(&MemoryStub::AllocateMemory, request);
}
CallOutcome TakeRegion(TestSession& session) {
  v1::CreateMrRequest request;
  request.set_pd_id(session.pd_id());
  return session.Call(&MemoryStub::CreateMr, request);
}
CallOutcome TakeWindow(TestSession& session) {
  v1::CreateMwRequest request;
  request.set_pd_id(session.pd_id());
  return session.Call(&QueueStub::CreateMw, request);
}
CallOutcome TakeQueue(TestSession& session) { return TryCreateCq(session, 100); }
CallOutcome TakeQueuePair(TestSession& session) {
  v1::CreateCqRequest queue;
  queue.set_adapter_id(session.adapter_id());
  queue.set_cq_depth(1);
  auto created = session.Call(&QueueStub::CreateCq, queue);
  if (!created.ok()) {
    return created;
  }
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(created.response.cq_id());
  request.set_initiator_cq_id(created.response.cq_id());
  request.set_receive_queue_depth(4);
  request.set_initiator_queue_depth(4);
  request.set_max_receive_request_sge(16);
  request.set_inline_data_size(64);
  return session.Call(&QueueStub::CreateQp, request);
}

constexpr Kind kKinds[] = {{"domain", TakeDomain}, {"memory", TakeMemory}, {"region", TakeRegion},
                           {"window", TakeWindow}, {"queue", TakeQueue},   {"queue_pair", TakeQueuePair}};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

constexpr uint64_t kSmallHeap = 128 * kPage;

class EachKindOfObject : public DaemonTest, public testing::WithParamInterface<Kind> {
 protected:
  EachKindOfObject() : DaemonTest({LimitsFlag("limits { heap_bytes: " + std::to_string(kSmallHeap) + " }")}) {}
};

TEST_P(EachKindOfObject, IsRefusedBeforeTheDaemonKeepsMoreThanTheLimit) {
  TestSession session(daemon());
  session.pd_id();
  CallOutcome taken;
  do {
    taken = GetParam().take(session);
  } while (taken.ok());
  ASSERT_TRUE(ExpectRefused(taken, ErrorReason::QUOTA_HEAP_BYTES));
  EXPECT_EQ(taken.detail.limit(), kSmallHeap);
  EXPECT_LE(taken.detail.used(), kSmallHeap);
  EXPECT_GT(taken.detail.requested(), kSmallHeap - taken.detail.used()) << "what was refused would have fitted";
  // What the request was charged before its refusal is refunded.
  EXPECT_LE(HeapOf(daemon(), geteuid()), taken.detail.used());
  ExpectAnotherUserWorks(daemon());
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachKindOfObject, testing::ValuesIn(kKinds),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace rnicd::test
