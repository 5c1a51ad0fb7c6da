// Many threads use everything concurrently, over a card and a kernel that fail occasionally. After each round nothing
// must be left, and every accepted request must have completed exactly once.
//
// Fault model: registrations, deregistrations and domains that the card refuses; cards that are removed; maps, pages,
// seals and files that the kernel refuses; owners that end, are evicted, lose their connection or die at any moment,
// and fetch their events or not. Not modelled: a munmap that fails. The seed is printed.

#include <array>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/core/session/race_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr int kRounds = 30;
constexpr int kStepsPerThread = 250;
constexpr size_t kSlots = 3;
constexpr uint64_t kPagesOfMemory = 4;

// A session and every id it ever had. Shared by all threads.
// Threads: safe.
class Client : public Memories<AdapterId, ProtectionDomainId, MemoryObjectId, MemoryRegionId> {
 public:
  explicit Client(std::shared_ptr<Session> open) : session(std::move(open)) {}

  const std::shared_ptr<Session> session;
};

WorldOptions Options() {
  WorldOptions options = SlowFromTwoPages();
  options.soft.max_regions = 20;
  options.limits.session[Resource::kRegions] = 8;
  options.limits.session[Resource::kMemoryObjects] = 6;
  options.limits.session[Resource::kPinnedBytes] = 12 * kPage;
  options.limits.session[Resource::kPendingRequests] = 5;
  options.limits.session[Resource::kRegisteredBytes] = 20 * kPage;
  options.uid_limits[Resource::kSessions] = 4;
  options.uid_limits[Resource::kPinnedBytes] = 20 * kPage;
  options.limits.node[Resource::kPinnedBytes] = 24 * kPage;
  return options;
}

class Round {
 public:
  explicit Round(uint64_t seed) : seed_(seed) {}

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
  size_t pended() const { return books_.size(); }

 private:
  using Step = void (Round::*)(Client&, const SessionGuard&, Random&);

  void RunThread(uint64_t seed) {
    static constexpr std::array<Step, 21> kSteps = {
        &Round::OpenAdapter, &Round::CreatePd,     &Round::CreatePd,   &Round::CreateMr, &Round::CreateMr,
        &Round::Allocate,    &Round::Allocate,     &Round::Import,     &Round::Register, &Round::Register,
        &Round::Register,    &Round::Deregister,   &Round::Deregister, &Round::CloseMr,  &Round::ClosePd,
        &Round::ReadTokens,  &Round::CloseAdapter, &Round::Release,    &Round::Fetch,    &Round::Look,
        &Round::Provision};
    Random random(seed);
    for (int step = 0; step < kStepsPerThread; ++step) {
      const std::shared_ptr<Client> client = Pick(random);
      if (client == nullptr) {
        continue;
      }
      if (random() % 25 == 0) {
        End(*client, random);
      } else if (random() % 15 == 0) {
        BreakSomething(random);
      } else {
        const auto guard = client->session->Begin();
        if (guard.ok()) {
          (this->*kSteps[random() % kSteps.size()])(*client, *guard, random);
        }
      }
    }
  }

  // The client of a slot; an ended one is replaced.
  std::shared_ptr<Client> Pick(Random& random) {
    const size_t slot = random() % kSlots;
    std::shared_ptr<Client> client;
    {
      MutexLock lock(mutex_);
      client = slots_[slot];
    }
    if (client != nullptr && !client->session->ending()) {
      return client;
    }
    auto session = world_.registry.Open(CallerNumbered(1 + random() % 2), "");
    if (!session.ok()) {
      return client;
    }
    client = std::make_shared<Client>(*session);
    MutexLock lock(mutex_);
    slots_[slot] = client;
    everybody_.push_back(client);
    return client;
  }

  void OpenAdapter(Client& client, const SessionGuard& held, Random&) {
    if (const auto id = held.adapters().Open("soft0", {1, 2}); id.ok()) {
      client.Remember(*id);
    }
  }
  void CreatePd(Client& client, const SessionGuard& held, Random& random) {
    if (const auto id = held.domains().Create(client.Any<AdapterId>(random)); id.ok()) {
      client.Remember(*id);
    } else {
      OpenAdapter(client, held, random);
    }
  }
  void CreateMr(Client& client, const SessionGuard& held, Random& random) {
    if (const auto id = held.regions().Create(client.Any<ProtectionDomainId>(random), random() % 16 == 0); id.ok()) {
      client.Remember(*id);
    }
  }
  void Seal(const SessionGuard& held, MemoryObjectId id) {
    if (const auto memory = held.memory().Find(id); memory.ok()) {
      (void)FetchAndSeal(**memory);
    }
  }
  // What it leaves to Provision to seal.
  void Attach(const SessionGuard& held, MemoryObjectId id) {
    if (const auto memory = held.memory().Find(id); memory.ok()) {
      (void)(*memory)->DuplicateFile();
    }
  }
  void Allocate(Client& client, const SessionGuard& held, Random&) {
    const uint64_t request = books_.Open();
    const MaybePending<MemoryTicket> begun = held.memory().Allocate(
        {.size = kPagesOfMemory * kPage}, [this, request, &client](const absl::StatusOr<MemoryTicket>& outcome) {
          books_.Completed(request);
          if (outcome.ok()) {
            if (const auto guard = client.session->Begin(); guard.ok()) {
              request % 2 == 0 ? Seal(*guard, outcome->memory) : Attach(*guard, outcome->memory);
            }
            client.Remember(outcome->memory);
          }
        });
    if (begun.ok()) {
      books_.Accepted(request);
    }
  }
  void Import(Client& client, const SessionGuard& held, Random& random) {
    const auto ticket = held.memory().Import(kPagesOfMemory * kPage);
    if (!ticket.ok()) {
      return;
    }
    client.Remember(ticket->memory);
    UniqueFd file = MemoryFile((random() % 8 == 0 ? 1 : kPagesOfMemory) * kPage);
    if (random() % 8 == 0) {
      (void)SystemOs().AddSeals(file.get(), {.seal = true});
    }
    const Caller caller = random() % 8 == 0 ? CallerNumbered(99) : client.session->owner();
    if (ExchangeFd(world_.node, caller, ticket->ticket, std::move(file)).ok()) {
      Seal(held, ticket->memory);
    }
  }

  PendingChoice Choose(uint64_t request, Random& random) {
    return {.to_events = random() % 2 == 0, .request_context = request};
  }
  Done<> Complete(uint64_t request) {
    return [this, request](const absl::Status&) { books_.Completed(request); };
  }
  void RecordOutcome(uint64_t request, const MaybePending<>& progress) {
    if (progress.pending()) {
      books_.Accepted(request);
    }
  }
  void Register(Client& client, const SessionGuard& held, Random& random) {
    const uint64_t pages = 1 + random() % kPagesOfMemory;
    const MdlEntry entry{
        .memory_id = client.Any<MemoryObjectId>(random), .byte_count = pages * kPage, .virtual_address = {kPage}};
    const uint64_t request = books_.Open();
    const auto begun = held.regions().Register(
        {.region = client.Any<MemoryRegionId>(random),
         .chain = {&entry, 1},
         .length = pages * kPage,
         .flags = kMrFlagRemoteWrite},
        Choose(request, random), [this, request](const absl::StatusOr<Registration>&) { books_.Completed(request); });
    if (begun.pending()) {
      books_.Accepted(request);
    }
  }
  void Provision(Client& client, const SessionGuard& held, Random& random) {
    std::vector<ProvisionRange> ranges;
    for (uint64_t page = 0; page <= random() % (kPagesOfMemory + 1); ++page) {
      ranges.push_back({.byte_offset = page * kPage, .length = kPage, .address = {kPage}, .flags = kMrFlagRemoteWrite});
    }
    const uint64_t request = books_.Open();
    const auto drops = random() % 2 == 0;
    const MaybePending<Provisioned> begun =
        held.regions().Provision({.memory = client.Any<MemoryObjectId>(random),
                                  .domain = client.Any<ProtectionDomainId>(random),
                                  .ranges = std::move(ranges)},
                                 [this, request, drops, &client](const absl::StatusOr<Provisioned>& provisioned) {
                                   books_.Completed(request);
                                   Keep(client, provisioned, drops);
                                 });
    if (begun.pending()) {
      books_.Accepted(request);
    } else {
      Keep(client, begun.outcome(), drops);
    }
  }
  void Keep(Client& client, const absl::StatusOr<Provisioned>& provisioned, bool drops) {
    const auto guard = client.session->Begin();
    if (!provisioned.ok() || !guard.ok()) {
      return;
    }
    if (drops) {
      guard->regions().Drop(*provisioned);
      return;
    }
    for (const absl::StatusOr<ProvisionedRegion>& region : provisioned->outcomes) {
      if (region.ok()) {
        client.Remember(region->id);
      }
    }
  }
  void Deregister(Client& client, const SessionGuard& held, Random& random) {
    const uint64_t request = books_.Open();
    RecordOutcome(request, held.regions().Deregister(client.Any<MemoryRegionId>(random), Choose(request, random),
                                                     Complete(request)));
  }
  void CloseMr(Client& client, const SessionGuard& held, Random& random) {
    const uint64_t request = books_.Open();
    RecordOutcome(request,
                  held.regions().Close(client.Any<MemoryRegionId>(random), Choose(request, random), Complete(request)));
  }
  void ClosePd(Client& client, const SessionGuard& held, Random& random) {
    if (random() % 2 == 0) {
      const uint64_t request = books_.Open();
      RecordOutcome(request, held.domains().Close(client.Any<ProtectionDomainId>(random), Choose(request, random),
                                                  Complete(request)));
    }
  }
  void CloseAdapter(Client& client, const SessionGuard& held, Random& random) {
    if (random() % 4 == 0) {
      const uint64_t request = books_.Open();
      RecordOutcome(request, held.adapters().Close(client.Any<AdapterId>(random), Complete(request)));
    }
  }
  void Release(Client& client, const SessionGuard& held, Random& random) {
    const uint64_t request = books_.Open();
    RecordOutcome(request, held.memory().Release(client.Any<MemoryObjectId>(random), Complete(request)));
  }
  void ReadTokens(Client& client, const SessionGuard& held, Random& random) {
    const auto id = client.Any<MemoryRegionId>(random);
    (void)held.regions().GetLocalToken(id);
    (void)held.regions().GetRemoteToken(id);
    (void)held.adapters().QueryInfo(client.Any<AdapterId>(random));
  }
  void Fetch(Client& client, const SessionGuard&, Random&) { FetchAll(client); }
  void Look(Client& client, const SessionGuard&, Random& random) {
    (void)client.session->ViewRegions();
    (void)world_.registry.List();
    (void)world_.registry.Join(client.session->id(), CallerNumbered(1 + random() % 2));
  }

  void End(Client& client, Random& random) {
    switch (random() % 4) {
      case 0:
        world_.registry.DropConnection(client.session);
        break;
      case 1:
        world_.registry.EndAllOf(client.session->owner().process, EndCause::kProcessExited);
        break;
      default: {
        const uint64_t request = books_.Open();
        books_.Accepted(request);
        world_.registry.End(client.session, EndCause::kEvicted,
                            [this, request](const Reclaimed&) { books_.Completed(request); });
        break;
      }
    }
    if (random() % 40 == 0) {
      world_.registry.Drain(EndCause::kDaemonStopping);
    }
  }
  void ReplaceCard() {
    world_.plan.Unplug("soft0");
    world_.registry.OnAdapterRemoved();
    world_.plan.Plug("soft0");
  }
  void BreakSomething(Random& random) {
    const uint64_t times = 1 + random() % 3;
    switch (random() % 8) {
      case 0:
        return world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), times);
      case 1:
        return world_.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), times);
      case 2:
        return world_.plan.FailCreateProtectionDomain(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), times);
      case 3:
        return ReplaceCard();
      case 4:
        world_.clock.Advance(world_.node.limits.removal_grace);
        return world_.alarms.RunDue();
      default: {
        static constexpr const char* kMethods[] = {"Map", "Populate", "AddSeals", "CreateMemoryFile"};
        return world_.os.FailNext(kMethods[random() % 4], MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), times);
      }
    }
  }

  void FetchAll(Client& client) {
    while (const auto event = client.session->events().Pop()) {
      if (const auto* completed = std::get_if<RequestCompleted>(&event->body)) {
        books_.Completed(completed->request_context);
      }
    }
  }

  void Finish() {
    world_.Stop();
    MutexLock lock(mutex_);
    for (const auto& client : everybody_) {
      FetchAll(*client);
      EXPECT_TRUE(client->session->events().Drained());
    }
    books_.ExpectBalanced();
    EXPECT_EQ(world_.Held(), "");
    EXPECT_EQ(world_.soft.live_regions(), 0u);
    EXPECT_EQ(world_.os.live_mappings(), 0u);
    EXPECT_EQ(world_.tickets.size(), 0u);
    EXPECT_EQ(world_.observer.counts().opened, everybody_.size());
    EXPECT_EQ(world_.observer.counts().ended, everybody_.size());
  }

  const uint64_t seed_;
  Books books_;
  Mutex mutex_;
  std::array<std::shared_ptr<Client>, kSlots> slots_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Client>> everybody_ RNICD_GUARDED_BY(mutex_);
  // Last, because its threads use all of the above.
  World world_{Options()};
};

TEST(SessionRace, WhateverHappensNothingIsLeftAndEveryRequestIsCompletedOnce) {
  const uint64_t seed = Seed();
  std::cout << "RNICD_SEED=" << seed << '\n' << std::flush;
  size_t pended = 0;
  for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    Round one(seed + static_cast<uint64_t>(round));
    one.Run();
    pended += one.pended();
  }
  EXPECT_GT(pended, 100u) << "the rounds must have pended something to prove anything";
}

}  // namespace
}  // namespace rnicd::core
