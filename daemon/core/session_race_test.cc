// Many threads do everything at once, over a card and a kernel that fail now and then. Whatever happened, after each
// round nothing is left and every accepted request was completed exactly once.
//
// Fault model: registrations, deregistrations and domains that the card refuses; maps, pages, seals and files that the
// kernel refuses; owners that end, are evicted, lose their connection or die at any moment, and fetch their events or
// not. Not modelled: a munmap that fails.
// The seed is printed.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "daemon/core/core_fixture_test.h"
#include "daemon/core/fd_exchange.h"
#include "daemon/core/race_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr int kRounds = 30;
constexpr int kThreads = 4;
constexpr int kStepsPerThread = 250;
constexpr size_t kSlots = 3;
constexpr uint64_t kPagesOfMemory = 4;

// A session and every id it ever had. Shared by all threads. Threads: safe.
class Tenant : public Memories<AdapterId, ProtectionDomainId, MemoryObjectId, MemoryRegionId> {
 public:
  explicit Tenant(std::shared_ptr<Session> open) : session(std::move(open)) {}

  const std::shared_ptr<Session> session;
};

WorldOptions Options() {
  WorldOptions options = SlowFromTwoPages();
  options.soft.max_regions = 20;
  options.limits.session[Resource::kRegions] = 8;
  options.limits.session[Resource::kMemoryObjects] = 6;
  options.limits.session[Resource::kPinnedBytes] = 12 * kPage;
  options.limits.session[Resource::kPendingRequests] = 5;
  options.limits.uid[Resource::kSessions] = 4;
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
  using Step = void (Round::*)(Tenant&, Random&);

  void RunThread(uint64_t seed) {
    static constexpr std::array<Step, 20> kSteps = {
        &Round::OpenAdapter, &Round::CreatePd,     &Round::CreatePd,   &Round::CreateMr, &Round::CreateMr,
        &Round::Allocate,    &Round::Allocate,     &Round::Import,     &Round::Register, &Round::Register,
        &Round::Register,    &Round::Deregister,   &Round::Deregister, &Round::CloseMr,  &Round::ClosePd,
        &Round::ReadTokens,  &Round::CloseAdapter, &Round::Release,    &Round::Fetch,    &Round::Look};
    Random random(seed);
    for (int step = 0; step < kStepsPerThread; ++step) {
      const std::shared_ptr<Tenant> tenant = Pick(random);
      if (tenant == nullptr) {
        continue;
      }
      if (random() % 25 == 0) {
        End(*tenant, random);
      } else if (random() % 15 == 0) {
        BreakSomething(random);
      } else {
        const auto guard = tenant->session->Begin();
        if (guard.ok()) {
          (this->*kSteps[random() % kSteps.size()])(*tenant, random);
        }
      }
    }
  }

  // The tenant of a slot; an ended one is replaced.
  std::shared_ptr<Tenant> Pick(Random& random) {
    const size_t slot = random() % kSlots;
    std::shared_ptr<Tenant> tenant;
    {
      MutexLock lock(mutex_);
      tenant = slots_[slot];
    }
    if (tenant != nullptr && !tenant->session->ending()) {
      return tenant;
    }
    auto session = world_.registry.Open(CallerNumbered(1 + random() % 2), "");
    if (!session.ok()) {
      return tenant;
    }
    tenant = std::make_shared<Tenant>(*session);
    MutexLock lock(mutex_);
    slots_[slot] = tenant;
    everybody_.push_back(tenant);
    return tenant;
  }

  void OpenAdapter(Tenant& tenant, Random&) {
    if (const auto id = tenant.session->OpenAdapter("soft0", {1, 2}); id.ok()) {
      tenant.Remember(*id);
    }
  }
  void CreatePd(Tenant& tenant, Random& random) {
    if (const auto id = tenant.session->CreatePd(tenant.Any<AdapterId>(random)); id.ok()) {
      tenant.Remember(*id);
    } else {
      OpenAdapter(tenant, random);
    }
  }
  void CreateMr(Tenant& tenant, Random& random) {
    if (const auto id = tenant.session->CreateMr(tenant.Any<ProtectionDomainId>(random), random() % 16 == 0); id.ok()) {
      tenant.Remember(*id);
    }
  }
  void Seal(Tenant& tenant, MemoryObjectId id) {
    if (const auto memory = tenant.session->FindMemory(id); memory.ok()) {
      (void)(*memory)->Seal();
    }
  }
  void Allocate(Tenant& tenant, Random&) {
    const uint64_t request = books_.Open();
    const auto shared = tenant.session;
    const absl::Status begun = shared->AllocateMemory(
        {.size = kPagesOfMemory * kPage}, [this, request, &tenant](const absl::StatusOr<MemoryTicket>& outcome) {
          books_.Completed(request);
          if (outcome.ok()) {
            Seal(tenant, outcome->memory);
            tenant.Remember(outcome->memory);
          }
        });
    if (begun.ok()) {
      books_.Accepted(request);
    }
  }
  void Import(Tenant& tenant, Random& random) {
    const auto ticket = tenant.session->ImportMemory(kPagesOfMemory * kPage);
    if (!ticket.ok()) {
      return;
    }
    tenant.Remember(ticket->memory);
    UniqueFd file(memfd_create("owner", random() % 8 == 0 ? 0 : MFD_ALLOW_SEALING));
    (void)!ftruncate(file.get(), static_cast<off_t>((random() % 8 == 0 ? 1 : kPagesOfMemory) * kPage));
    const Caller caller = random() % 8 == 0 ? CallerNumbered(99) : tenant.session->owner();
    if (ExchangeFd(world_.node, caller, ticket->ticket, std::move(file)).ok()) {
      Seal(tenant, ticket->memory);
    }
  }

  PendingChoice Choose(uint64_t request, Random& random) {
    return {.to_events = random() % 2 == 0, .request_context = request};
  }
  Done Complete(uint64_t request) {
    return [this, request](const absl::Status&) { books_.Completed(request); };
  }
  void Note(uint64_t request, const absl::StatusOr<Progress>& progress) {
    if (progress.ok() && *progress == Progress::kPending) {
      books_.Accepted(request);
    }
  }
  void Register(Tenant& tenant, Random& random) {
    const uint64_t pages = 1 + random() % kPagesOfMemory;
    const MdlEntry entry{.memory = tenant.Any<MemoryObjectId>(random), .count = pages * kPage, .address = {kPage}};
    const uint64_t request = books_.Open();
    const auto begun = tenant.session->RegisterMr(
        {.region = tenant.Any<MemoryRegionId>(random),
         .chain = {&entry, 1},
         .length = pages * kPage,
         .flags = kMrFlagRemoteWrite},
        Choose(request, random), [this, request](const absl::StatusOr<Registration>&) { books_.Completed(request); });
    if (begun.ok() && !begun->has_value()) {
      books_.Accepted(request);
    }
  }
  void Deregister(Tenant& tenant, Random& random) {
    const uint64_t request = books_.Open();
    Note(request,
         tenant.session->DeregisterMr(tenant.Any<MemoryRegionId>(random), Choose(request, random), Complete(request)));
  }
  void CloseMr(Tenant& tenant, Random& random) {
    const uint64_t request = books_.Open();
    Note(request,
         tenant.session->CloseMr(tenant.Any<MemoryRegionId>(random), Choose(request, random), Complete(request)));
  }
  void ClosePd(Tenant& tenant, Random& random) {
    if (random() % 2 == 0) {
      const uint64_t request = books_.Open();
      Note(request,
           tenant.session->ClosePd(tenant.Any<ProtectionDomainId>(random), Choose(request, random), Complete(request)));
    }
  }
  void CloseAdapter(Tenant& tenant, Random& random) {
    if (random() % 4 == 0) {
      const uint64_t request = books_.Open();
      Note(request, tenant.session->CloseAdapter(tenant.Any<AdapterId>(random), Complete(request)));
    }
  }
  void Release(Tenant& tenant, Random& random) {
    const uint64_t request = books_.Open();
    Note(request, tenant.session->ReleaseMemory(tenant.Any<MemoryObjectId>(random), Complete(request)));
  }
  void ReadTokens(Tenant& tenant, Random& random) {
    const auto id = tenant.Any<MemoryRegionId>(random);
    (void)tenant.session->GetLocalToken(id);
    (void)tenant.session->GetRemoteToken(id);
    (void)tenant.session->QueryAdapterInfo(tenant.Any<AdapterId>(random));
  }
  void Fetch(Tenant& tenant, Random&) { FetchAll(tenant); }
  void Look(Tenant& tenant, Random& random) {
    (void)tenant.session->ViewRegions();
    (void)world_.registry.List();
    (void)world_.registry.Join(tenant.session->id(), CallerNumbered(1 + random() % 2));
  }

  void End(Tenant& tenant, Random& random) {
    switch (random() % 4) {
      case 0:
        world_.registry.DropConnection(tenant.session);
        break;
      case 1:
        world_.registry.EndAllOf(tenant.session->owner().process, EndCause::kProcessExited);
        break;
      default: {
        const uint64_t request = books_.Open();
        books_.Accepted(request);
        world_.registry.End(tenant.session, EndCause::kEvicted,
                            [this, request](const Reclaimed&) { books_.Completed(request); });
        break;
      }
    }
    if (random() % 40 == 0) {
      world_.registry.Drain(EndCause::kDaemonStopping);
    }
  }
  void BreakSomething(Random& random) {
    const uint64_t times = 1 + random() % 3;
    switch (random() % 6) {
      case 0:
        return world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), times);
      case 1:
        return world_.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), times);
      case 2:
        return world_.plan.FailCreateProtectionDomain(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), times);
      default: {
        static constexpr const char* kMethods[] = {"Map", "Populate", "AddSeals", "CreateMemoryFile"};
        return world_.os.FailNext(kMethods[random() % 4], MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), times);
      }
    }
  }

  void FetchAll(Tenant& tenant) {
    while (const auto event = tenant.session->events().Pop()) {
      if (const auto* completed = std::get_if<RequestCompleted>(&event->body)) {
        books_.Completed(completed->request_context);
      }
    }
  }

  void Finish() {
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
    EXPECT_EQ(world_.tickets.size(), 0u);
    EXPECT_EQ(world_.observer.counts().opened, everybody_.size());
    EXPECT_EQ(world_.observer.counts().ended, everybody_.size());
  }

  const uint64_t seed_;
  Books books_;
  Mutex mutex_;
  std::array<std::shared_ptr<Tenant>, kSlots> slots_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Tenant>> everybody_ RNICD_GUARDED_BY(mutex_);
  // Its threads use all of the above.
  World world_{Options()};
};

TEST(SessionRace, WhateverHappensNothingIsLeftAndEveryRequestIsCompletedOnce) {
  const uint64_t seed = Seed();
  std::cout << "RNICD_SEED=" << seed << std::endl;
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
