// Limits over two generations: whatever is delayed, lost or ends, both together never hold more than a limit allows.
#include <deque>
#include <thread>

#include "daemon/core/generation/generation_fixture_test.h"
#include "daemon/core/session/race_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr Resource kUsed[] = {Resource::kRegions, Resource::kMemoryBytes, Resource::kQueuePairs};

WorldOptions Tight() {
  WorldOptions options;
  options.uid_limits[Resource::kSessions] = 5;
  options.uid_limits[Resource::kRegions] = 40;
  options.uid_limits[Resource::kQueuePairs] = 3;
  options.uid_limits[Resource::kHeapBytes] = 200'000;
  options.limits.node[Resource::kMemoryBytes] = 1'000'000;
  options.limits.node[Resource::kRegions] = 60;
  options.limits.node[Resource::kSessions] = 8;
  return options;
}

// A generation with sessions that take and release at random.
struct Busy : Generation {
  explicit Busy(Random& seeded) : Generation(Tight()), random(seeded) {}
  ~Busy() { EndAll(); }

  struct Client {
    std::shared_ptr<Session> session;
    std::vector<Charge> charges;
  };

  void Open() {
    const uint64_t number = ++opened;
    auto session = registry.Open(CallerNumbered(number, 1000 + number % 2), "");
    if (session.ok()) {
      clients.push_back({*session, {}});
    }
  }
  void EndAny() {
    if (!clients.empty()) {
      std::swap(clients[random() % clients.size()], clients.back());
      clients.back().charges.clear();
      End(clients.back().session);
      clients.pop_back();
    }
  }
  void EndAll() {
    while (!clients.empty()) {
      EndAny();
    }
  }
  void Use() {
    if (clients.empty()) {
      return;
    }
    Client& client = clients[random() % clients.size()];
    if (random() % 3 == 0 && !client.charges.empty()) {
      client.charges.erase(client.charges.begin() + static_cast<ptrdiff_t>(random() % client.charges.size()));
      return;
    }
    const Resource resource = kUsed[random() % std::size(kUsed)];
    const uint64_t amount = 1 + random() % (resource == Resource::kMemoryBytes ? 300'000 : 8);
    auto charge = Charge::Take(client.session->shared_ledger(), resource, amount);
    if (charge.ok()) {
      client.charges.push_back(*std::move(charge));
    }
  }
  std::shared_ptr<Ledger> LedgerOf(uint32_t uid) { return (*tenants.TenantOf(CallerNumbered(1, uid), ""))->ledger(); }

  Random& random;
  uint64_t opened = 0;
  std::vector<Client> clients;
};

// What is under way between two generations, in order.
struct Link {
  struct Up {
    bool wanted = false;
    HeldUse use;
  };

  void Tick(Retirement& older) {
    const Retirement::Changes changes = older.Tick();
    for (const HeldUse& shrunk : changes.shrunk) {
      up.push_back({false, shrunk});
    }
    for (const HeldUse& wanted : changes.wanted) {
      up.push_back({true, wanted});
    }
  }
  void DeliverUp(Inherited& newer) {
    if (up.empty()) {
      return;
    }
    const Up message = up.front();
    up.pop_front();
    if (message.wanted) {
      down.push_back(newer.Grow(message.use));
    } else {
      newer.Shrink(message.use);
    }
  }
  void DeliverDown(Retirement& older) {
    if (!down.empty()) {
      older.Granted(down.front());
      down.pop_front();
    }
  }

  std::deque<Up> up;
  std::deque<HeldUse> down;
};

void ExpectWithin(const Ledger& older, const Ledger& newer) {
  for (size_t place = 0; place < kLimitedResourceCount; ++place) {
    const auto resource = static_cast<Resource>(place);
    if (older.limit(resource) != 0) {
      ASSERT_LE(older.own(resource) + newer.own(resource), older.limit(resource)) << ResourceName(resource);
    }
  }
}

void ExpectWithin(Busy& older, Busy& newer) {
  ExpectWithin(*older.ledger, *newer.ledger);
  for (const uint32_t uid : {1000u, 1001u}) {
    ExpectWithin(*older.LedgerOf(uid), *newer.LedgerOf(uid));
  }
}

void Step(Random& random, Busy& older, Busy& newer, Link& link, bool broken) {
  const uint64_t choice = random() % 100;
  if (choice < 30) {
    older.Use();
  } else if (choice < 60) {
    newer.Use();
  } else if (choice < 64) {
    newer.Open();
  } else if (choice < 66) {
    newer.EndAny();
  } else if (choice < 67) {
    older.EndAny();
  } else if (choice < 80) {
    link.Tick(older.retirement);
  } else if (!broken && choice < 90) {
    link.DeliverUp(newer.inherited);
  } else if (!broken) {
    link.DeliverDown(older.retirement);
  }
}

TEST(Generations, BothTogetherStayWithinTheLimitsWhateverTheLinkDoes) {
  Random seeds(Seed());
  for (int episode = 0; episode < 40; ++episode) {
    const uint64_t seed = seeds();
    SCOPED_TRACE("episode " + std::to_string(episode) + " of RNICD_SEED=" + std::to_string(Seed()));
    Random random(seed);
    Busy older(random);
    Busy newer(random);
    for (int step = 0; step < 60; ++step) {
      step % 10 == 0 ? older.Open() : older.Use();
    }
    ASSERT_TRUE(newer.inherited.Take(older.retirement.Begin(IgnoreGone)).ok());
    Link link;
    const uint64_t breaks = random() % 800;
    for (uint64_t step = 0; step < 600; ++step) {
      Step(random, older, newer, link, step >= breaks);
      ASSERT_NO_FATAL_FAILURE(ExpectWithin(older, newer)) << "step " << step << " breaks " << breaks;
    }
    // One of them ends; the other has all limits.
    Busy& survivor = episode % 2 == 0 ? newer : older;
    (episode % 2 == 0 ? older : newer).EndAll();
    newer.inherited.Drop();
    older.retirement.Cancel();
    survivor.EndAll();
    EXPECT_EQ(survivor.Held(), "");
    EXPECT_TRUE(survivor.LedgerOf(1000)->Take(Resource::kRegions, 40).ok());
    survivor.LedgerOf(1000)->Give(Resource::kRegions, 40);
  }
}

TEST(Generations, OneThatIsShortGetsWhatTheOtherDoesNotHold) {
  Random random(Seed());
  Busy older(random);
  Busy newer(random);
  older.Open();
  const auto& ledger = older.clients.front().session->shared_ledger();
  ASSERT_TRUE(newer.inherited.Take(older.retirement.Begin(IgnoreGone)).ok());
  newer.Open();
  newer.Open();
  auto held = Charge::Take(newer.LedgerOf(1001), Resource::kRegions, 18);
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(Charge::Take(ledger, Resource::kRegions, 22).ok());
  Exchange(older.retirement, newer.inherited);
  auto all = Charge::Take(ledger, Resource::kRegions, 22);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(Charge::Take(newer.LedgerOf(1001), Resource::kRegions, 1).ok());
  all->Refund();
  older.EndAll();
  Exchange(older.retirement, newer.inherited);
  EXPECT_TRUE(Charge::Take(newer.LedgerOf(1001), Resource::kRegions, 22).ok());
}

// Takes and releases until it is stopped; `total` is what both generations hold, or a little less.
void TakeAndGive(const std::shared_ptr<Ledger>& ledger, uint64_t limit, const std::atomic<bool>& done,
                 std::atomic<uint64_t>& total, uint64_t seed) {
  Random random(seed);
  while (!done.load()) {
    const uint64_t amount = 1 + random() % 9;
    if (ledger->Take(Resource::kRegions, amount).ok()) {
      EXPECT_LE(total.fetch_add(amount) + amount, limit);
      std::this_thread::yield();
      total.fetch_sub(amount);
      ledger->Give(Resource::kRegions, amount);
    }
  }
}

TEST(Generations, RacingTakersOfBothNeverPassALimit) {
  Random random(Seed());
  Busy older(random);
  Busy newer(random);
  older.Open();
  ASSERT_TRUE(newer.inherited.Take(older.retirement.Begin(IgnoreGone)).ok());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> total{0};
  std::vector<std::thread> threads;
  for (uint64_t index = 0; index < kThreads; ++index) {
    const auto& ledger = index % 2 == 0 ? older.clients.front().session->shared_ledger() : newer.LedgerOf(1001);
    threads.emplace_back([&, ledger, index] { TakeAndGive(ledger, 40, done, total, Seed() + index); });
  }
  for (int round = 0; round < 20'000; ++round) {
    Exchange(older.retirement, newer.inherited);
  }
  done.store(true);
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace rnicd::core
