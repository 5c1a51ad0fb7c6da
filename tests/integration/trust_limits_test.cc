// Property 8: every limit is refused with its reason and its figures, none is ever passed, and a page is paid once.
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/trust_fixture.h"
#include "tests/support/event_reader.h"
#include "tests/support/held_card.h"

namespace rnicd::test {
namespace {

void ExpectFigures(const CallOutcome& refused, ErrorReason reason, uint64_t limit, uint64_t used, uint64_t requested,
                   Where where = Where::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "these figures");
  ExpectRefused(refused, reason);
  EXPECT_EQ(refused.detail.limit(), limit);
  EXPECT_EQ(refused.detail.used(), used);
  EXPECT_EQ(refused.detail.requested(), requested);
}

// --- each limit of a session ---

// A session, and what the rows below keep in it.
struct Holder {
  explicit Holder(DaemonProcess& daemon) : session(daemon) {}

  TestSession session;
  // A memory object, or a completion queue.
  uint64_t parent = 0;
  // A region that is not charged yet: what was refused leaves it as it was. 0: none.
  uint64_t spare = 0;
  // The place of the next registration in the memory.
  uint64_t offset = 0;
};

struct Taken {
  CallOutcome outcome;
  uint64_t id = 0;
};

struct Limit {
  std::string resource;
  ErrorReason reason;
  uint64_t limit;
  // The least that can be taken, and portions that reach the limit.
  uint64_t unit;
  std::vector<uint64_t> portions;
  Taken (*take)(Holder& holder, uint64_t amount);
  CallOutcome (*give_back)(Holder& holder, uint64_t id);
  void (*prepare)(Holder& holder) = [](Holder&) {};
  // Another call that takes of it.
  CallOutcome (*take_otherwise)(Holder& holder, uint64_t amount) = nullptr;
  // The limit is what a daemon without the flag has.
  bool is_default = false;
};

void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.resource; }

CallResult<v1::AllocateMemoryResponse> TryAllocate(TestSession& session, uint64_t size) {
  v1::AllocateMemoryRequest request;
  request.set_size(size);
  return session.Call(&MemoryStub::AllocateMemory, request);
}

CallResult<v1::ImportMemoryResponse> TryImport(TestSession& session, uint64_t size) {
  v1::ImportMemoryRequest request;
  request.set_size(size);
  return session.Call(&MemoryStub::ImportMemory, request);
}

CallResult<v1::CreateCqResponse> TryCreateCq(TestSession& session, uint32_t depth) {
  v1::CreateCqRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::CreateCq, request);
}

CallResult<v1::ResizeCqResponse> Resize(TestSession& session, uint64_t cq_id, uint32_t depth) {
  v1::ResizeCqRequest request;
  request.set_cq_id(cq_id);
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::ResizeCq, request);
}

CallResult<v1::CreateQpResponse> TryCreateQp(TestSession& session, uint64_t cq_id, uint32_t receive_depth,
                                             uint32_t initiator_depth) {
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(cq_id);
  request.set_initiator_cq_id(cq_id);
  request.set_receive_queue_depth(receive_depth);
  request.set_initiator_queue_depth(initiator_depth);
  return session.Call(&QueueStub::CreateQp, request);
}

Taken TakeMemory(Holder& holder, uint64_t bytes) {
  const auto allocated = TryAllocate(holder.session, bytes);
  return {allocated, allocated.response.memory_id()};
}
Taken TakeMemoryObject(Holder& holder, uint64_t) { return TakeMemory(holder, kPage); }
CallOutcome GiveBackMemory(Holder& holder, uint64_t id) { return holder.session.Release(id); }

Taken TakeRegion(Holder& holder, uint64_t) {
  v1::CreateMrRequest request;
  request.set_pd_id(holder.session.pd_id());
  const auto created = holder.session.Call(&MemoryStub::CreateMr, request);
  return {created, created.response.mr_id()};
}
CallOutcome GiveBackRegion(Holder& holder, uint64_t id) { return holder.session.CloseMr(id); }

// Not whole pages: they are counted whole, as the card pins them.
Taken TakePages(Holder& holder, uint64_t bytes) {
  holder.spare = holder.spare != 0 ? holder.spare : holder.session.CreateMr();
  const uint64_t length = bytes - 200;
  const auto registered = holder.session.Register(
      RegisterRequest(holder.spare, {MdlEntry(holder.parent, holder.offset + 100, length, kBase + 100)}, length));
  if (registered.ok()) {
    holder.offset += bytes;
    return {registered, std::exchange(holder.spare, 0)};
  }
  return {registered, 0};
}

// Charged when the region is initialized, for as many pages as it may ever take.
Taken TakeFastPages(Holder& holder, uint64_t pages) {
  holder.spare = holder.spare != 0 ? holder.spare : holder.session.CreateMr(true);
  const auto initialized = InitializeFast(holder.session, holder.spare, static_cast<uint32_t>(pages), true);
  return {initialized, initialized.ok() ? std::exchange(holder.spare, 0) : 0};
}

Taken TakeAdapter(Holder& holder, uint64_t) {
  const auto opened = holder.session.Call(&AdapterStub::OpenAdapter, {});
  return {opened, opened.response.adapter_id()};
}
CallOutcome GiveBackAdapter(Holder& holder, uint64_t id) {
  v1::CloseAdapterRequest request;
  request.set_adapter_id(id);
  return holder.session.Call(&AdapterStub::CloseAdapter, request);
}

Taken TakeDomain(Holder& holder, uint64_t) {
  v1::CreatePdRequest request;
  request.set_adapter_id(holder.session.adapter_id());
  const auto created = holder.session.Call(&MemoryStub::CreatePd, request);
  return {created, created.response.pd_id()};
}

Taken TakeMapping(Holder& holder, uint64_t) {
  v1::BuildLamRequest request;
  request.set_adapter_id(holder.session.adapter_id());
  *request.add_mdl_chain() = MdlEntry(holder.parent, 0, kPage, kBase);
  request.set_length(kPage);
  const auto built = holder.session.Call(&MemoryStub::BuildLam, request);
  return {built, built.response.lam_id()};
}
// The same page as often as that.
Taken TakeLogicalPages(Holder& holder, uint64_t pages) {
  v1::BuildLamRequest request;
  request.set_adapter_id(holder.session.adapter_id());
  for (uint64_t index = 0; index < pages; ++index) {
    *request.add_mdl_chain() = MdlEntry(holder.parent, 0, kPage, kBase + index * kPage);
  }
  request.set_length(pages * kPage);
  const auto built = holder.session.Call(&MemoryStub::BuildLam, request);
  return {built, built.response.lam_id()};
}
CallOutcome GiveBackMapping(Holder& holder, uint64_t id) {
  v1::ReleaseLamRequest request;
  request.set_lam_id(id);
  return holder.session.Call(&MemoryStub::ReleaseLam, request);
}

Taken TakeCqEntries(Holder& holder, uint64_t depth) {
  const auto created = TryCreateCq(holder.session, static_cast<uint32_t>(depth));
  return {created, created.response.cq_id()};
}
CallOutcome GiveBackCq(Holder& holder, uint64_t id) { return CloseCq(holder.session, id); }

// Both queues of a pair count.
Taken TakeQueueEntries(Holder& holder, uint64_t depth) {
  const auto receives = static_cast<uint32_t>(depth / 3);
  const auto created = TryCreateQp(holder.session, holder.parent, receives, static_cast<uint32_t>(depth) - receives);
  return {created, created.response.qp_id()};
}
Taken TakeQueuePair(Holder& holder, uint64_t) { return TakeQueueEntries(holder, 8); }
CallOutcome GiveBackQp(Holder& holder, uint64_t id) { return CloseQp(holder.session, id); }

Taken TakeWindow(Holder& holder, uint64_t) {
  v1::CreateMwRequest request;
  request.set_pd_id(holder.session.pd_id());
  const auto created = holder.session.Call(&QueueStub::CreateMw, request);
  return {created, created.response.mw_id()};
}

void PrepareMemory(Holder& holder) { holder.parent = holder.session.SealedMemory(16 * kPage); }
void PrepareCq(Holder& holder) { holder.parent = CreateCq(holder.session, 16); }

const Limit kLimits[] = {
    {"memory_bytes",
     ErrorReason::QUOTA_MEMORY_BYTES,
     65536,
     kPage,
     {12 * kPage, 4 * kPage},
     TakeMemory,
     GiveBackMemory,
     [](Holder&) {},
     [](Holder& holder, uint64_t bytes) -> CallOutcome { return TryImport(holder.session, bytes); }},
    {"memory_objects",
     ErrorReason::QUOTA_MEMORY_OBJECTS,
     4,
     1,
     {1, 1, 1, 1},
     TakeMemoryObject,
     GiveBackMemory,
     [](Holder&) {},
     [](Holder& holder, uint64_t) -> CallOutcome { return TryImport(holder.session, kPage); }},
    {"regions", ErrorReason::QUOTA_REGIONS, 3, 1, {1, 1, 1}, TakeRegion, GiveBackRegion},
    {"pinned_bytes",
     ErrorReason::QUOTA_PINNED_BYTES,
     40960,
     kPage,
     {5 * kPage, 5 * kPage},
     TakePages,
     GiveBackRegion,
     PrepareMemory},
    {"logical_mappings",
     ErrorReason::QUOTA_LOGICAL_MAPPINGS,
     2,
     1,
     {1, 1},
     TakeMapping,
     GiveBackMapping,
     PrepareMemory},
    {"logical_pages", ErrorReason::QUOTA_LOGICAL_PAGES, 64, 1, {64}, TakeLogicalPages, GiveBackMapping, PrepareMemory},
    {"fast_register_pages", ErrorReason::QUOTA_FAST_REGISTER_PAGES, 32, 1, {20, 12}, TakeFastPages, GiveBackRegion},
    {"completion_queues", ErrorReason::QUOTA_COMPLETION_QUEUES, 3, 1, {1, 1, 1}, TakeCqEntries, GiveBackCq},
    {"cq_entries", ErrorReason::QUOTA_CQ_ENTRIES, 100, 1, {60, 40}, TakeCqEntries, GiveBackCq},
    {"queue_pairs", ErrorReason::QUOTA_QUEUE_PAIRS, 3, 1, {1, 1, 1}, TakeQueuePair, GiveBackQp, PrepareCq},
    {"queue_entries", ErrorReason::QUOTA_QUEUE_ENTRIES, 64, 1, {40, 24}, TakeQueueEntries, GiveBackQp, PrepareCq},
    {"windows",
     ErrorReason::QUOTA_WINDOWS,
     2,
     1,
     {1, 1},
     TakeWindow,
     [](Holder& holder, uint64_t id) -> CallOutcome { return CloseMw(holder.session, id); }},
    {"adapters", ErrorReason::QUOTA_ADAPTERS, 64, 1, std::vector<uint64_t>(64, 1), TakeAdapter, GiveBackAdapter,
     [](Holder&) {}, nullptr, true},
    {"protection_domains", ErrorReason::QUOTA_PROTECTION_DOMAINS, 1024, 1, std::vector<uint64_t>(1024, 1), TakeDomain,
     [](Holder& holder, uint64_t id) -> CallOutcome { return holder.session.ClosePd(id); }, [](Holder&) {}, nullptr,
     true},
};

std::vector<std::string> LimitFlags() {
  std::vector<std::string> flags = {"--max_sessions_per_uid=3", "--max_pinned_bytes=61440",
                                    "--max_posted_pages_per_session=4"};
  for (const Limit& limit : kLimits) {
    if (!limit.is_default) {
      flags.push_back("--max_" + limit.resource + "_per_session=" + std::to_string(limit.limit));
    }
  }
  return flags;
}

class Quotas : public DaemonTest {
 protected:
  Quotas() : DaemonTest(LimitFlags()) {}
};

class EachQuota : public Quotas, public testing::WithParamInterface<Limit> {
 protected:
  // Refused with its figures, and nothing of any resource is charged by it.
  static void ExpectTooMuch(Holder& holder, uint64_t used, uint64_t amount) {
    const Limit& limit = GetParam();
    limit.take(holder, amount);  // Makes what may be left of a refusal.
    const std::string before = holder.session.Call(&SessionStub::GetSession, {}).response.ShortDebugString();
    const Taken refused = limit.take(holder, amount);
    ExpectFigures(refused.outcome, limit.reason, limit.limit, used, amount);
    if (limit.take_otherwise != nullptr) {
      ExpectFigures(limit.take_otherwise(holder, amount), limit.reason, limit.limit, used, amount);
    }
    EXPECT_EQ(holder.session.Call(&SessionStub::GetSession, {}).response.ShortDebugString(), before);
  }
};

TEST_P(EachQuota, IsRefusedWithItsFiguresChargesNothingThenAndIsGivenBack) {
  const Limit& limit = GetParam();
  Holder holder(daemon());
  limit.prepare(holder);
  EXPECT_EQ(holder.session.Use(limit.resource).limit(), limit.limit);
  std::vector<uint64_t> taken;
  uint64_t used = 0;
  for (const uint64_t portion : limit.portions) {
    ASSERT_EQ(holder.session.Use(limit.resource).used(), used);
    if (portion > limit.unit) {
      ExpectTooMuch(holder, used, limit.limit - used + limit.unit);
    }
    const Taken took = limit.take(holder, portion);
    ASSERT_TRUE(ExpectOk(took.outcome));
    taken.push_back(took.id);
    used += portion;
  }
  ASSERT_EQ(used, limit.limit);
  ExpectTooMuch(holder, used, limit.unit);
  ExpectOk(limit.give_back(holder, taken.front()));
  EXPECT_EQ(holder.session.Use(limit.resource).used(), used - limit.portions.front());
  ExpectOk(limit.take(holder, limit.portions.front()).outcome);
  EXPECT_EQ(holder.session.Use(limit.resource).used(), used);
}

INSTANTIATE_TEST_SUITE_P(Limits, EachQuota, testing::ValuesIn(kLimits),
                         [](const auto& row) { return row.param.resource; });

// --- limits with a rule of their own ---

TEST_F(Quotas, PinnedBytesOfTheNode) {
  TestSession first(daemon());
  TestSession second(daemon());
  first.RegisterWhole(first.CreateMr(), first.SealedMemory(10 * kPage), 10 * kPage);
  const uint64_t memory = second.SealedMemory(6 * kPage);
  const uint64_t mr = second.CreateMr();
  ExpectFigures(second.Register(RegisterRequest(mr, {MdlEntry(memory, 0, 6 * kPage, kBase)}, 6 * kPage)),
                ErrorReason::QUOTA_PINNED_BYTES, 61440, 10 * kPage, 6 * kPage);
  // A refusal by the node leaves nothing charged to the session.
  EXPECT_EQ(second.Use("pinned_bytes").used(), 0u);
  second.RegisterWhole(mr, memory, 5 * kPage);
}

TEST_F(Quotas, SessionsOfAUid) {
  TestSession first(daemon());
  TestSession second(daemon());
  {
    TestSession third(daemon());
    RawClient fourth(daemon().rpc_socket());
    ExpectFigures(fourth.Call(&SessionStub::OpenSession, {}), ErrorReason::QUOTA_SESSIONS, 3, 3, 1);
    ExpectOk(third.CloseSession());
    // The same connection may try again.
    ExpectOk(fourth.Call(&SessionStub::OpenSession, {}));
  }
}

// A queue is charged for the depth it has, so one can grow up to the limit, and shrink also when all is in use.
TEST_F(Quotas, ResizedCqEntries) {
  TestSession session(daemon());
  const uint64_t first = CreateCq(session, 60);
  const uint64_t second = CreateCq(session, 20);
  const auto refused = Resize(session, second, 41);
  ExpectRefused(refused, ErrorReason::QUOTA_CQ_ENTRIES);
  EXPECT_EQ(refused.detail.limit(), 100u);
  EXPECT_EQ(session.Use("cq_entries").used(), 80u);
  ExpectOk(Resize(session, second, 40));
  EXPECT_EQ(session.Use("cq_entries").used(), 100u);
  ExpectOk(Resize(session, first, 10));
  EXPECT_EQ(session.Use("cq_entries").used(), 50u);
  ExpectOk(Resize(session, second, 90));
}

// A page list is held from the post to the end of the registration, so it counts as long.
TEST_F(Quotas, PostedPages) {
  TestSession session(daemon());
  TestMemory memory(session, 4 * kPage);
  TestQueue queue(session, {.cq_depth = 16, .receive_queue_depth = 8, .initiator_queue_depth = 8});
  ExpectOk(Connect(queue, queue.Query().address()));
  EXPECT_EQ(session.Use("posted_pages").limit(), 4u);
  const uint64_t first = FastRegion(session, 4);
  const uint64_t second = FastRegion(session, 4);
  queue.MustRun(FastRegisterRequest(first, memory.Pages(0, 3), 3 * kPage, kBase, 0));
  const v1::WorkRequest two_more = FastRegisterRequest(second, memory.Pages(0, 2), 2 * kPage, kBase, 0);
  const auto refused = queue.Post({two_more});
  ExpectOk(refused);
  ExpectRefused(refused.response.failure(), ErrorReason::QUOTA_POSTED_PAGES, "requests[0]");
  EXPECT_EQ(refused.response.failure().limit(), 4u);
  EXPECT_EQ(refused.response.failure().used(), 3u);
  EXPECT_EQ(refused.response.failure().requested(), 2u);
  queue.MustRun(InvalidateMrRequest(first));
  EXPECT_EQ(session.Use("posted_pages").used(), 0u);
  queue.MustRun(two_more);
}

// The pieces of memory behind an SGE with the privileged token are charged until its request is complete.
TEST_F(Quotas, PiecesBehindLogicalAddresses) {
  TestSession session(daemon());
  TestMemory memory(session, kPage);
  TestQueue queue(session, {.cq_depth = 16, .receive_queue_depth = 8, .initiator_queue_depth = 8});
  const v1::WorkRequest receive = ReceiveRequest({Sge(memory.Pages(0, 1)[0], 64, PrivilegedToken(session))});
  const auto posted = queue.Post({receive, receive, receive, receive, receive});
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 4u);
  ExpectRefused(posted.response.failure(), ErrorReason::QUOTA_POSTED_PAGES, "requests[4]");
  ExpectOk(CloseQp(session, queue.qp_id()));
  EXPECT_EQ(session.Use("posted_pages").used(), 0u);
}

// What no limit could ever allow is not reported as a limit that some closing would help against.
TEST_F(Quotas, ArgumentsAreJudgedBeforeLimits) {
  TestSession session(daemon());
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const uint64_t cq = CreateCq(session, 16);
  ExpectRefused(TryCreateCq(session, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(Resize(session, cq, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(TryCreateQp(session, cq, kMost, 1), ErrorReason::ABOVE_ADAPTER_LIMIT, "receive_queue_depth");
  ExpectRefused(TryCreateQp(session, cq, 1, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "initiator_queue_depth");
}

// One session's limits are no other's.
TEST_F(Quotas, AreOfEachSession) {
  TestSession first(daemon());
  TestSession second(daemon());
  CreateCq(first, 100);
  CreateCq(second, 100);
  CreateMw(first);
  CreateMw(first);
  CreateMw(second);
  EXPECT_EQ(Used(AdminStatus(daemon()), "cq_entries"), 200u);
  EXPECT_EQ(Used(AdminStatus(daemon()), "windows"), 3u);
}

class PendingQuota : public DaemonTest {
 protected:
  PendingQuota()
      : DaemonTest(
            {"--max_pending_requests_per_session=2", "--pending_threshold_bytes=4096", HoldableRegistrationsFlag()}) {}
};

// A request is pending until its completion has been fetched: a client that does not listen cannot pile them up.
TEST_F(PendingQuota, CountsUntilTheCompletionIsFetched) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  v1::RegisterMrRequest request = RegisterRequest(0, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  request.set_allow_pending(true);
  std::vector<uint64_t> regions;
  HeldRegistrations held;
  for (uint64_t context = 1; context <= 2; ++context) {
    regions.push_back(session.CreateMr());
    request.set_mr_id(regions.back());
    request.set_request_context(context);
    EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  }
  request.set_mr_id(session.CreateMr());
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  held.LetGo();
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(regions[0]).ok() && session.LocalToken(regions[1]).ok(); }));
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  EventReader events(session);
  events.NextCompletion();
  events.NextCompletion();
  EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() == 0; }));
  EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  events.NextCompletion();
}

TEST_F(Trust, Property08APageRegisteredAHundredTimesIsPinnedOnce) {
  constexpr uint64_t kTimes = 100;
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  std::vector<uint64_t> regions;
  for (uint64_t times = 1; times <= kTimes; ++times) {
    regions.push_back(session.CreateMr());
    session.RegisterWhole(regions.back(), memory, kPage);
    ASSERT_EQ(session.Use("pinned_bytes").used(), kPage);
    ASSERT_EQ(session.Use("registered_bytes").used(), times * kPage);
  }
  const std::string tenant = session.Call(&SessionStub::GetSession, {}).response.tenant();
  EXPECT_EQ(UsedOf(TenantNamed(daemon(), tenant).resources(), "pinned_bytes"), kPage);
  EXPECT_EQ(UsedOf(AdminStatus(daemon()).resources(), "pinned_bytes"), kPage);
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), kTimes);
  for (size_t index = 0; index + 1 < regions.size(); ++index) {
    ExpectOk(session.CloseMr(regions[index]));
    ASSERT_EQ(session.Use("pinned_bytes").used(), kPage) << "the page is still registered";
  }
  ExpectOk(session.Deregister(regions.back()));
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(session.Use("registered_bytes").used(), 0u);
}

}  // namespace
}  // namespace rnicd::test
