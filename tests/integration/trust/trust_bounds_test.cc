// Properties 8 and 15: no limit is passed in a race, and thousands of clients leave the daemon as it was.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/address_sanitizer.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

// --- 8: races ---

constexpr char kTenant[] = "racers";
constexpr uint64_t kPinnedPagesMax = 64;
constexpr uint64_t kRegisteredPagesMax = 160;
constexpr uint64_t kRegionsMax = 56;
constexpr uint64_t kPagesOfARacer = 16;
constexpr int kRacers = 16;
constexpr size_t kHeldMax = 6;
constexpr int kOpenings = 150;

// A tenant of whom all clients of these tests are.
std::string RacersPolicy() {
  return "tenant { name: \"" + std::string(kTenant) + "\" match { uid: " + std::to_string(geteuid()) +
         " } limits { pinned_bytes: " + std::to_string(kPinnedPagesMax * kPage) +
         " registered_bytes: " + std::to_string(kRegisteredPagesMax * kPage) +
         " regions: " + std::to_string(kRegionsMax) + " } }\n";
}

// One client that takes and gives back as fast as it can, and knows what it holds.
class Racer {
 public:
  Racer(DaemonProcess& daemon, unsigned seed)
      : session_(daemon, "racer"), memory_id_(session_.SealedMemory(kPagesOfARacer * kPage)), dice_(seed) {
    session_.pd_id();
  }

  void Race() {
    for (int round = 0; round < kOpenings; ++round) {
      if (held_.size() == kHeldMax) {
        GiveBack(Throw(kHeldMax));
      }
      TakeOne();
    }
  }

  TestSession& session() { return session_; }
  uint64_t refused() const { return refused_; }
  uint64_t registered_pages() const {
    uint64_t pages = 0;
    for (const Held& held : held_) {
      pages += held.count;
    }
    return pages;
  }
  // Each once.
  uint64_t pinned_pages() const {
    std::set<uint64_t> pages;
    for (const Held& held : held_) {
      for (uint64_t page = held.first; page < held.first + held.count; ++page) {
        pages.insert(page);
      }
    }
    return pages.size();
  }

 private:
  struct Held {
    uint64_t mr_id = 0;
    uint64_t first = 0;
    uint64_t count = 0;
  };

  uint64_t Throw(uint64_t below) { return dice_() % below; }

  void ExpectQuota(const CallOutcome& outcome) {
    const v1::ErrorDetail& detail = outcome.detail;
    const bool is_quota = detail.reason() == v1::ERROR_REASON_QUOTA_PINNED_BYTES ||
                          detail.reason() == v1::ERROR_REASON_QUOTA_REGISTERED_BYTES ||
                          detail.reason() == v1::ERROR_REASON_QUOTA_REGIONS;
    EXPECT_TRUE(is_quota) << outcome.message;
    EXPECT_LE(detail.used(), detail.limit());
    EXPECT_GT(detail.requested(), detail.limit() - detail.used()) << "what was refused would have fitted";
    ++refused_;
  }

  void TakeOne() {
    v1::CreateMrRequest create;
    create.set_pd_id(session_.pd_id());
    const auto created = session_.Call(&MemoryStub::CreateMr, create);
    if (!created.ok()) {
      return ExpectQuota(created);
    }
    Held held{.mr_id = created.response.mr_id(), .first = Throw(kPagesOfARacer), .count = 0};
    held.count = 1 + Throw(kPagesOfARacer - held.first);
    const auto registered = session_.Register(RegisterRequest(
        held.mr_id, {MdlEntry(memory_id_, held.first * kPage, held.count * kPage, kBase)}, held.count * kPage));
    if (registered.ok()) {
      held_.push_back(held);
    } else {
      ExpectQuota(registered);
      ExpectOk(session_.CloseMr(held.mr_id));
    }
  }

  void GiveBack(size_t index) {
    ExpectOk(session_.CloseMr(held_[index].mr_id));
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(index));
  }

  TestSession session_;
  const uint64_t memory_id_;
  std::minstd_rand dice_;
  std::vector<Held> held_;
  uint64_t refused_ = 0;
};

class RacedDaemon {
 public:
  RacedDaemon() {
    auto started = DaemonProcess::Start({.flags = {PolicyFlag(RacersPolicy())}});
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) {
      process_ = *std::move(started);
      idle_ = MeasureIdle(*process_);
    }
  }
  ~RacedDaemon() {
    if (process_ != nullptr) {
      ExpectNothingHeld(*process_, idle_);
      const absl::Status stopped = process_->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    }
  }
  DaemonProcess* get() { return process_.get(); }

 private:
  std::unique_ptr<DaemonProcess> process_;
  IdleState idle_;
};

// Sixteen clients of one tenant want more than it may have. Together they would hold 16 * 5 regions at the end if none
// were refused, which is above the limit of regions alone.
TEST_F(Trust, Property08NoSumIsEverAboveItsLimit) {
  RacedDaemon daemon;
  ASSERT_NE(daemon.get(), nullptr);
  std::vector<std::unique_ptr<Racer>> racers;
  for (unsigned seed = 1; seed <= kRacers; ++seed) {
    racers.push_back(std::make_unique<Racer>(*daemon.get(), seed));
  }
  std::atomic<int> racing{kRacers};
  std::vector<std::thread> threads;
  for (const auto& racer : racers) {
    threads.emplace_back([&racer, &racing] {
      racer->Race();
      racing.fetch_sub(1);
    });
  }
  while (racing.load() > 0) {
    const v1::TenantInfo tenant = TenantNamed(*daemon.get(), kTenant);
    for (const v1::ResourceUse& use : tenant.resources()) {
      EXPECT_TRUE(use.limit() == 0 || use.used() <= use.limit()) << use.ShortDebugString();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  uint64_t refused = 0;
  uint64_t pinned = 0;
  uint64_t registered = 0;
  for (const auto& racer : racers) {
    refused += racer->refused();
    pinned += racer->pinned_pages();
    registered += racer->registered_pages();
    EXPECT_EQ(racer->session().Use("pinned_bytes").used(), racer->pinned_pages() * kPage);
    EXPECT_EQ(racer->session().Use("registered_bytes").used(), racer->registered_pages() * kPage);
  }
  EXPECT_GT(refused, 0u);
  const v1::TenantInfo tenant = TenantNamed(*daemon.get(), kTenant);
  EXPECT_EQ(UsedOf(tenant.resources(), "pinned_bytes"), pinned * kPage);
  EXPECT_EQ(UsedOf(tenant.resources(), "registered_bytes"), registered * kPage);
  const v1::GetStatusResponse status = AdminStatus(*daemon.get());
  EXPECT_EQ(UsedOf(status.resources(), "pinned_bytes"), pinned * kPage);
  EXPECT_EQ(status.registered_pages(), registered);
}

// --- 15: bounded ---

constexpr int kConnections = 1000;
constexpr int kAtOnce = 100;
// A connection and what it brings: the socket twice, the process; a memory object's file; an open adapter.
const uint64_t kDescriptorsOfAClient = 4 + DescriptorsOfAnOpenAdapter();
// gRPC's pool grows with what is under way and shrinks slowly; a thread for each client would be many more.
constexpr uint64_t kThreadsMore = 32;
// AddressSanitizer keeps the last 256 MiB that were freed, and a daemon that is new has freed nothing yet.
constexpr uint64_t kQuarantine = kAddressSanitizer ? uint64_t{256} << 20 : 0;
// What an allocator may keep after so many clients, also one of a sanitizer. It is 64 KiB for each connection of this
// test, a fraction of what a server that is never freed would keep.
const uint64_t kResidentMore = (uint64_t{64} << 20) * static_cast<uint64_t>(kSlowness) + kQuarantine;

// So many clients at once, each with a session and a page that is registered.
void OpenAtOnce(DaemonProcess& daemon, const IdleState& idle) {
  std::vector<std::unique_ptr<TestSession>> sessions;
  for (int count = 0; count < kAtOnce; ++count) {
    sessions.push_back(std::make_unique<TestSession>(daemon));
    TestSession& session = *sessions.back();
    session.RegisterWhole(session.CreateMr(), session.SealedMemory(kPage), kPage);
  }
  const v1::GetStatusResponse status = AdminStatus(daemon);
  EXPECT_EQ(status.sessions(), static_cast<uint64_t>(kAtOnce));
  EXPECT_LE(status.open_fds(), idle.open_fds + kAtOnce * kDescriptorsOfAClient);
  EXPECT_LE(status.threads(), idle.threads + kThreadsMore);
}

TEST_F(Trust, Property15AThousandConnectionsLeaveTheDaemonAsItWas) {
  OpenAtOnce(daemon(), idle());
  ExpectNothingHeld(daemon(), idle());
  const uint64_t resident = AdminStatus(daemon()).resident_bytes();
  for (int count = kAtOnce; count < kConnections; count += kAtOnce) {
    OpenAtOnce(daemon(), idle());
    ExpectNothingHeld(daemon(), idle());
  }
  EXPECT_LE(AdminStatus(daemon()).resident_bytes(), resident + kResidentMore);
}

// Those at the door are turned away before anything is made for them.
TEST_F(Trust, Property15AThousandRefusedConnectionsLeaveTheDaemonAsItWas) {
  constexpr size_t kPlaces = 8;
  SharedDaemon& narrow = DaemonWith({kMetricsOnFreePort, "--silent_connection_timeout_ms=3600000",
                                     "--max_connections_per_uid=" + std::to_string(kPlaces)});
  DaemonProcess& daemon = *narrow.process;
  ExpectNothingHeld(daemon, narrow.idle);
  const std::string metrics = AdminStatus(daemon).metrics_address();
  const auto refused = [&] {
    return MetricsPage(HttpGet(metrics, "/metrics").body).Sum("rnicd_connections_refused_total{");
  };
  const uint64_t resident = AdminStatus(daemon).resident_bytes();
  {
    // Each has a session. The operator's connection of before may still count.
    std::vector<std::unique_ptr<RawClient>> clients;
    while (clients.size() < kPlaces) {
      ASSERT_TRUE(Eventually([&] {
        auto client = std::make_unique<RawClient>(daemon.rpc_socket());
        const bool opened = client->Call(&SessionStub::OpenSession, {}).ok();
        if (opened) {
          clients.push_back(std::move(client));
        }
        return opened;
      }));
    }
    const double refused_before = refused();
    for (int count = 0; count < kConnections; ++count) {
      const bool is_rpc = count % 2 == 0;
      const UniqueFd stranger =
          ConnectUnix(is_rpc ? daemon.rpc_socket() : daemon.fd_socket(), is_rpc ? SOCK_STREAM : SOCK_SEQPACKET);
      ASSERT_TRUE(stranger.valid() && HangsUp(stranger.get())) << count;
    }
    EXPECT_GE(refused(), refused_before + kConnections) << "some were let in and then dropped";
    const v1::GetStatusResponse status = AdminStatus(daemon);
    EXPECT_LE(status.open_fds(), narrow.idle.open_fds + kPlaces * kDescriptorsOfAClient);
    EXPECT_LE(status.threads(), narrow.idle.threads + kThreadsMore);
  }
  ExpectNothingHeld(daemon, narrow.idle);
  EXPECT_LE(AdminStatus(daemon).resident_bytes(), resident + kResidentMore);
  // There is room again, once the period is over in which a process that was refused is turned away.
  EXPECT_TRUE(Eventually([&] { return RawClient(daemon.rpc_socket()).Call(&SessionStub::OpenSession, {}).ok(); }));
}

}  // namespace
}  // namespace rnicd::test
