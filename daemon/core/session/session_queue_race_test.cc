// Many threads use the queues of two tenants that are connected with each other, over a card that fails occasionally.
// After each round nothing must be left, every pending request completed once, every posted request completed once, and
// every queue must still notify.
//
// Fault model: queues, pairs, windows, regions and requests that the card refuses; completion queues that overrun; dead
// ids and tokens; two threads that post to one queue pair, which NDK forbids; tenants that end at any moment. Every
// second round has a long wire. Not modelled: a card that does not deregister; session_race_test.cc has it. The seed is
// printed.

#include <array>

#include "daemon/core/session/queue_race_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr int kQueueRounds = 16;
constexpr int kQueueSteps = 500;
constexpr size_t kQueueSlots = 2;

WorldOptions Options(uint64_t seed) {
  WorldOptions options = SlowFromTwoPages();
  options.soft.read_delay = std::chrono::microseconds(seed % 2 == 0 ? 0 : 100);
  options.limits.session[Resource::kQueuePairs] = 40;
  options.limits.session[Resource::kCompletionQueues] = 10;
  options.limits.session[Resource::kWindows] = 20;
  options.limits.session[Resource::kRegions] = 40;
  options.limits.session[Resource::kLogicalMappings] = 20;
  options.limits.session[Resource::kMemoryObjects] = 30;
  options.limits.session[Resource::kPostedPages] = 64;
  options.limits.session[Resource::kPendingRequests] = 6;
  return options;
}

class QueueRound {
 public:
  explicit QueueRound(uint64_t seed) : seed_(seed), world_(Options(seed)) {}

  void Run() {
    std::vector<std::thread> threads;
    for (int index = 0; index < kThreads; ++index) {
      threads.emplace_back([this, index] { RunThread(seed_ * kThreads + static_cast<uint64_t>(index)); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    Finish();
  }
  const Posts& posts() const { return posts_; }

 private:
  using Step = void (QueueRound::*)(QueueTenant&, const SessionGuard&, Random&);
  using Chain = std::vector<WorkRequest>;

  void RunThread(uint64_t seed) {
    static constexpr std::array<Step, 34> kSteps = {
        &QueueRound::PostTraffic, &QueueRound::PostTraffic,    &QueueRound::PostTraffic, &QueueRound::PostTraffic,
        &QueueRound::PostTraffic, &QueueRound::PostTraffic,    &QueueRound::PostTraffic, &QueueRound::Reregister,
        &QueueRound::Rebind,      &QueueRound::Reregister,     &QueueRound::Rebind,      &QueueRound::PostAny,
        &QueueRound::Connect,     &QueueRound::Connect,        &QueueRound::Connect,     &QueueRound::Poll,
        &QueueRound::Poll,        &QueueRound::Poll,           &QueueRound::Arm,         &QueueRound::Arm,
        &QueueRound::Fetch,       &QueueRound::Fetch,          &QueueRound::CreateCq,    &QueueRound::ChangeCq,
        &QueueRound::CloseQp,     &QueueRound::CloseQp,        &QueueRound::CreateFast,  &QueueRound::CreateMr,
        &QueueRound::CreateMw,    &QueueRound::CloseSomething, &QueueRound::Map,         &QueueRound::Allocate,
        &QueueRound::Disconnect,  &QueueRound::CloseQp};
    Random random(seed);
    for (int step = 0; step < kQueueSteps; ++step) {
      const std::shared_ptr<QueueTenant> tenant = Pick(random() % kQueueSlots);
      if (random() % 400 == 0) {
        End(*tenant);
      } else if (random() % 30 == 0) {
        BreakSomething(random);
      } else if (const auto guard = tenant->session->Begin(); guard.ok()) {
        (this->*kSteps[random() % kSteps.size()])(*tenant, *guard, random);
      }
    }
  }

  // The tenant of a slot; an ended one is replaced.
  std::shared_ptr<QueueTenant> Pick(size_t slot) {
    MutexLock lock(mutex_);
    if (slots_[slot] == nullptr || slots_[slot]->session->ending()) {
      slots_[slot] = std::make_shared<QueueTenant>(*world_.registry.Open(CallerNumbered(1 + slot), ""));
      everybody_.push_back(slots_[slot]);
      Furnish(*slots_[slot]);
    }
    return slots_[slot];
  }
  // Creates one object of each type, so that there is traffic from the start.
  void Furnish(QueueTenant& tenant) {
    Random random(seed_);
    const auto held = tenant.session->Begin();
    for (const Step step : {&QueueRound::Allocate, &QueueRound::CreateMr, &QueueRound::CreateFast, &QueueRound::Map,
                            &QueueRound::CreateMw}) {
      (this->*step)(tenant, *held, random);
    }
  }

  // --- queues and pairs ---

  std::optional<RacingPair> NewPair(QueueTenant& tenant, const SessionGuard& held, size_t peer_slot, Random& random) {
    RacingPair pair{.number = next_pair_.fetch_add(1), .peer_slot = peer_slot};
    if (pair.number >= kMaxPairs) {
      return std::nullopt;
    }
    const CompletionQueueId queue = random() % 4 == 0 ? tenant.Any<CompletionQueueId>(random) : tenant.queue;
    const auto id = held.pairs().Create({.domain = tenant.domain,
                                         .receive_queue = queue,
                                         .initiator_queue = queue,
                                         .context = pair.number,
                                         .limits = kSmallLimits});
    if (!id.ok()) {
      return std::nullopt;
    }
    pair.id = *id;
    pair.deep = queue == tenant.queue;
    tenant.Remember(pair);
    return pair;
  }
  // Connects two new pairs, or one pair to itself; now and then only one side.
  void Connect(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const size_t slot = random() % kQueueSlots;
    const std::shared_ptr<QueueTenant> peer = Pick(slot);
    const auto guard = peer->session->Begin();
    const auto pair = NewPair(tenant, held, slot, random);
    const auto peer_pair =
        guard.ok() && pair.has_value() ? NewPair(*peer, *guard, random() % kQueueSlots, random) : std::nullopt;
    if (!peer_pair.has_value()) {
      return;
    }
    const auto view = held.pairs().Query(pair->id);
    const auto peer_view = guard->pairs().Query(peer_pair->id);
    if (view.ok() && peer_view.ok()) {
      (void)held.pairs().Connect(pair->id, random() % 8 == 0 ? view->address : peer_view->address);
      if (random() % 8 != 0) {
        (void)guard->pairs().Connect(peer_pair->id, view->address);
      }
    }
    Post(tenant, held, *pair, Chain(3, Receive(tenant.OwnSges(held, *pair, /*receive=*/true, random))), random);
    Post(*peer, *guard, *peer_pair, Chain(3, Receive(peer->OwnSges(*guard, *peer_pair, /*receive=*/true, random))),
         random);
  }
  void Disconnect(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const QueuePairId id = tenant.Any<RacingPair>(random).id;
    (void)(random() % 2 == 0 ? held.pairs().Disconnect(id) : held.pairs().Flush(id));
  }
  void CloseQp(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const uint64_t request = books_.Open();
    RecordOutcome(request, held.pairs().Close(tenant.AnyOld<RacingPair>(random).id, Choose(request, random),
                                              CompleteWith(request)));
  }
  void CreateCq(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto id = held.queues().Create(tenant.adapter, 1 + random() % 8, 0);
    if (id.ok()) {
      tenant.Remember(*id);
    }
  }
  // Resizes or closes a queue, except the deep one.
  void ChangeCq(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto id = tenant.Any<CompletionQueueId>(random);
    if (id == tenant.queue || random() % 2 == 0) {
      (void)held.queues().Resize(id, id == tenant.queue ? kDeepQueue : 1 + random() % 16);
      return;
    }
    const uint64_t request = books_.Open();
    RecordOutcome(request, held.queues().Close(id, Choose(request, random), CompleteWith(request)));
  }
  static CompletionQueueId AnyQueue(QueueTenant& tenant, Random& random) {
    return random() % 2 == 0 ? tenant.queue : tenant.Any<CompletionQueueId>(random);
  }
  void Arm(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    (void)held.queues().Arm(AnyQueue(tenant, random), static_cast<CqNotifyType>(random() % 3));
  }
  void Poll(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    PollFrom(held, AnyQueue(tenant, random), static_cast<uint32_t>(1 + random() % 64));
  }
  size_t PollFrom(const SessionGuard& held, CompletionQueueId id, uint32_t max) {
    const auto results = held.queues().GetResults(id, max);
    if (!results.ok()) {
      return 0;
    }
    for (const Completion& result : *results) {
      posts_.Complete(result);
    }
    return results->size();
  }

  // --- memory, regions, windows, mappings ---

  // Sealed and registrable when it returns.
  void Allocate(QueueTenant& tenant, const SessionGuard& held, Random&) {
    const auto answer = std::make_shared<Awaited<absl::StatusOr<MemoryTicket>>>();
    const MaybePending<MemoryTicket> begun = held.memory().Allocate(
        {.size = kPages * kPage}, [answer](const absl::StatusOr<MemoryTicket>& outcome) { answer->Set(outcome); });
    const auto outcome = begun.ok() ? answer->Get() : std::nullopt;
    if (!outcome.has_value() || !outcome->ok()) {
      return;
    }
    if (const auto memory = held.memory().Find((*outcome)->memory); memory.ok() && FetchAndSeal(**memory).ok()) {
      tenant.Remember((*outcome)->memory);
    }
  }
  void CreateMr(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto id = held.regions().Create(tenant.domain, false);
    if (!id.ok()) {
      return;
    }
    const MdlEntry entry{.memory_id = tenant.Any<MemoryObjectId>(random),
                         .byte_count = kPages * kPage,
                         .virtual_address = {kRegionBase}};
    const auto answer = std::make_shared<Awaited<absl::StatusOr<Registration>>>();
    const auto begun =
        held.regions().Register({.region = *id,
                                 .chain = {&entry, 1},
                                 .length = entry.byte_count,
                                 .flags = kMrFlagRemoteWrite | kMrFlagRemoteRead},
                                {}, [answer](const absl::StatusOr<Registration>& outcome) { answer->Set(outcome); });
    if (const auto outcome = begun.ok() ? answer->Get() : std::nullopt; outcome.has_value() && outcome->ok()) {
      tenant.Remember(
          RegisteredRegion{.id = *id, .local = (*outcome)->local_token, .remote = (*outcome)->remote_token});
    }
  }
  void CreateFast(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto id = held.regions().Create(tenant.domain, true);
    if (!id.ok()) {
      return;
    }
    tenant.Remember(FastRegion{*id});
    const uint64_t request = books_.Open();
    RecordOutcome(request,
                  held.regions().Initialize({.region = *id, .max_pages = kPages, .remote_access = random() % 8 != 0},
                                            Choose(request, random), CompleteWith(request)));
  }
  void CreateMw(QueueTenant& tenant, const SessionGuard& held, Random&) {
    if (const auto id = held.windows().Create(tenant.domain); id.ok()) {
      tenant.Remember(*id);
    }
  }
  void Map(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const MdlEntry entry{.memory_id = tenant.Any<MemoryObjectId>(random),
                         .byte_count = kPages * kPage,
                         .virtual_address = {kRegionBase}};
    const auto lam =
        held.mappings().Build({.adapter = tenant.adapter, .chain = {&entry, 1}, .length = entry.byte_count});
    if (lam.ok()) {
      tenant.Remember(*lam);
    }
    if (!lam.ok() || random() % 2 == 0) {
      (void)held.mappings().Release(tenant.AnyOld<BuiltLam>(random).id);
    }
  }
  void CloseSomething(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const uint64_t request = books_.Open();
    const PendingChoice choice = Choose(request, random);
    const Done<> done = CompleteWith(request);
    switch (random() % 5) {
      case 0:
        return RecordOutcome(request, held.regions().Close(tenant.AnyOld<FastRegion>(random).id, choice, done));
      case 1:
        return RecordOutcome(request, held.regions().Close(tenant.AnyOld<RegisteredRegion>(random).id, choice, done));
      case 2:
        return RecordOutcome(request,
                             held.regions().Deregister(tenant.AnyOld<RegisteredRegion>(random).id, choice, done));
      case 3:
        return RecordOutcome(request, held.windows().Close(tenant.AnyOld<MemoryWindowId>(random), choice, done));
      default:
        return RecordOutcome(request, held.memory().Release(tenant.AnyOld<MemoryObjectId>(random), done));
    }
  }

  // --- posting ---

  void Post(QueueTenant& tenant, const SessionGuard& held, const RacingPair& pair, Chain chain, Random& random) {
    for (WorkRequest& request : chain) {
      const bool silent = !std::holds_alternative<WorkRequest::Receive>(request.operation) && random() % 4 == 0;
      request.flags |= silent ? kOpFlagSilentSuccess : 0;
      request.request_context = posts_.Offer({.session = tenant.session->id(), .silent = silent, .deep = pair.deep});
    }
    const auto outcome = held.pairs().Post(pair.id, chain);
    if (!outcome.ok()) {
      return;
    }
    for (uint32_t index = 0; index < outcome->posted; ++index) {
      posts_.Accept(chain[index].request_context);
    }
    for (const IssuedToken& issued : outcome->issued_tokens) {
      tenant.Remember(issued.remote_token);
    }
  }
  // Posts receives, or requests for the peer's receives.
  void PostTraffic(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto pair = tenant.Any<RacingPair>(random);
    if (random() % 4 == 0) {
      return Post(tenant, held, pair,
                  Chain(1 + random() % 2, Receive(tenant.OwnSges(held, pair, /*receive=*/true, random))), random);
    }
    const Sges sges = tenant.OwnSges(held, pair, /*receive=*/false, random);
    const RemoteToken reach = Pick(pair.peer_slot)->SentToken(random);
    Post(tenant, held, pair,
         {Write(sges, OwnAddress(pair, /*receive=*/false, random), reach),
          Read(sges, kRegionBase + kReadSource, reach, random() % 2 == 0 ? kOpFlagReadFence : 0),
          Send(sges, random() % 2 == 0 ? kOpFlagSolicit : 0)},
         random);
  }
  void Reregister(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    std::vector<uint64_t> pages;
    Chain chain = {tenant.AnyFastRegister(pages, random)};
    const MemoryRegionId region = std::get<WorkRequest::FastRegister>(chain[0].operation).region;
    if (random() % 16 != 0) {
      chain.push_back(Invalidate(region));
    }
    Post(tenant, held, tenant.Any<RacingPair>(random), std::move(chain), random);
  }
  void Rebind(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    Chain chain = {tenant.AnyBind(random)};
    const MemoryWindowId window = std::get<WorkRequest::Bind>(chain[0].operation).window;
    if (random() % 16 != 0) {
      chain.push_back(Invalidate(window));
    }
    Post(tenant, held, tenant.Any<RacingPair>(random), std::move(chain), random);
  }
  void PostAny(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    const auto pair = tenant.Any<RacingPair>(random);
    std::array<std::vector<uint64_t>, 4> pages;
    Chain chain;
    for (size_t index = 0; index < 1 + random() % pages.size(); ++index) {
      chain.push_back(tenant.AnyRequest(held, pair, Pick(pair.peer_slot)->SentToken(random), pages[index], random));
    }
    Post(tenant, held, pair, std::move(chain), random);
  }

  // --- events, ends, faults ---

  PendingChoice Choose(uint64_t request, Random& random) {
    return {.to_events = random() % 2 == 0, .request_context = request};
  }
  Done<> CompleteWith(uint64_t request) {
    return [this, request](const absl::Status&) { books_.Completed(request); };
  }
  void RecordOutcome(uint64_t request, const MaybePending<>& progress) {
    if (progress.pending()) {
      books_.Accepted(request);
    }
  }
  void Fetch(QueueTenant& tenant, const SessionGuard&, Random&) { FetchAll(tenant); }
  // Fetching is for one thread at a time. True when the deep queue notified.
  bool FetchAll(QueueTenant& tenant) {
    bool notified = false;
    MutexLock lock(fetch_mutex_);
    while (const auto event = tenant.session->events().Pop()) {
      if (const auto* completed = std::get_if<RequestCompleted>(&event->body)) {
        books_.Completed(completed->request_context);
      } else if (const auto* gone = std::get_if<QpDisconnected>(&event->body)) {
        EXPECT_TRUE(disconnects_.insert({tenant.session->id(), gone->queue_pair}).second) << "reported twice";
      } else if (const auto* queue = std::get_if<CqNotified>(&event->body)) {
        notified |= queue->queue == tenant.queue;
      }
    }
    return notified;
  }
  void End(QueueTenant& tenant) {
    const uint64_t request = books_.Open();
    books_.Accepted(request);
    world_.registry.End(tenant.session, EndCause::kEvicted, [this, request](const Reclaimed& reclaimed) {
      EXPECT_EQ(reclaimed.failures, 0u);
      books_.Completed(request);
    });
  }
  void BreakSomething(Random& random) { PlanFailure(random() % 6, 1 + random() % 3); }
  void PlanFailure(uint64_t which, uint64_t times) {
    // Not shared with the plan: see Unshared.
    absl::Status failure = MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
    switch (which) {
      case 0:
        return world_.plan.FailCreateCompletionQueue(std::move(failure), times);
      case 1:
        return world_.plan.FailCreateQueuePair(std::move(failure), times);
      case 2:
        return world_.plan.FailCreateFastRegion(std::move(failure), times);
      case 3:
        return world_.plan.FailCreateMemoryWindow(std::move(failure), times);
      case 4:
        return world_.plan.FailRegister(std::move(failure), times);
      default:
        return world_.plan.FailEnqueue(std::move(failure), times);
    }
  }

  // --- the end of a round ---

  // Closes every pair, so that every posted request completes, and removes all completions from the deep queue.
  void Settle(QueueTenant& tenant, const SessionGuard& held) {
    for (const RacingPair& pair : tenant.All<RacingPair>()) {
      (void)Owner::Await([&](const Done<>& done) { return held.pairs().Close(pair.id, {}, done); });
    }
    while (PollFrom(held, tenant.queue, 1000) > 0) {
    }
  }
  // One more completion must notify, whatever was armed and fetched before.
  void ExpectNotification(QueueTenant& tenant, const SessionGuard& held, Random& random) {
    FetchAll(tenant);
    ASSERT_TRUE(held.queues().Arm(tenant.queue, CqNotifyType::kAny).ok());
    std::optional<RacingPair> pair;
    for (next_pair_ = 0; !pair.has_value() || !pair->deep;) {
      pair = NewPair(tenant, held, 0, random);
    }
    Post(tenant, held, *pair, {Receive()}, random);
    ASSERT_TRUE(held.pairs().Flush(pair->id).ok());
    EXPECT_TRUE(FetchAll(tenant)) << "a lost notification";
  }
  void Finish() {
    for (uint64_t which = 0; which < 6; ++which) {
      PlanFailure(which, 0);
    }
    std::set<SessionId> alive;
    for (size_t slot = 0; slot < kQueueSlots; ++slot) {
      const std::shared_ptr<QueueTenant> tenant = Pick(slot);
      Settle(*tenant, *tenant->session->Begin());
      alive.insert(tenant->session->id());
    }
    posts_.ExpectCompleted(alive);
    Random random(seed_);
    for (size_t slot = 0; slot < kQueueSlots; ++slot) {
      const std::shared_ptr<QueueTenant> tenant = Pick(slot);
      ExpectNotification(*tenant, *tenant->session->Begin(), random);
    }
    world_.Stop();
    MutexLock lock(mutex_);
    for (const auto& tenant : everybody_) {
      FetchAll(*tenant);
      EXPECT_TRUE(tenant->session->events().Drained());
    }
    books_.ExpectBalanced();
    EXPECT_EQ(world_.Held(), "");
    EXPECT_EQ(world_.soft.live_regions(), 0u);
    EXPECT_EQ(world_.os.live_mappings(), 0u);
  }

  const uint64_t seed_;
  Books books_;
  Posts posts_;
  std::atomic<uint64_t> next_pair_{0};
  Mutex mutex_;
  std::array<std::shared_ptr<QueueTenant>, kQueueSlots> slots_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<QueueTenant>> everybody_ RNICD_GUARDED_BY(mutex_);
  Mutex fetch_mutex_;
  std::set<std::pair<SessionId, QueuePairId>> disconnects_ RNICD_GUARDED_BY(fetch_mutex_);
  // Last, because its threads use all of the above.
  World world_;
};

TEST(SessionQueueRace, WhateverHappensNothingIsLeftAndEveryPostedRequestCompletesOnce) {
  const uint64_t seed = Seed();
  std::cout << "RNICD_SEED=" << seed << '\n' << std::flush;
  std::map<OperationType, uint64_t> succeeded;
  for (int round = 0; round < kQueueRounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    QueueRound one(seed + static_cast<uint64_t>(round));
    one.Run();
    for (const auto& [type, count] : one.posts().succeeded()) {
      succeeded[type] += count;
    }
  }
  for (const OperationType type :
       {OperationType::kReceive, OperationType::kSend, OperationType::kFastRegister, OperationType::kBind,
        OperationType::kInvalidate, OperationType::kRead, OperationType::kWrite}) {
    EXPECT_GT(succeeded[type], 20u) << "the rounds must have moved something to prove anything: "
                                    << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace rnicd::core
