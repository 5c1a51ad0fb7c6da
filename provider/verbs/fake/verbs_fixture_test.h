#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/provider_side_test.h"
#include "provider/api/recording_listener_test.h"
#include "provider/verbs/fake/verbs_fake.h"
#include "provider/verbs/queue/qp_address.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::provider {

inline constexpr uint64_t kPage = kNdkPageBytes;

// No background activity: no probe, no window, no look without news. There is no timeout for a card that does nothing.
inline VerbsOptions QuietOptions() {
  return {.fast_engine = FastEngine::kRegistration,
          .probe_interval = std::chrono::hours(1),
          .look_interval = std::chrono::hours(1),
          .card_timeout = std::chrono::hours(1)};
}
// The same, with a probe in every tick.
inline VerbsOptions ProbingOptions() {
  VerbsOptions options = QuietOptions();
  options.probe_interval = std::chrono::milliseconds(0);
  return options;
}

inline FakeDevice Card(std::string name) {
  FakeDevice device;
  device.name = std::move(name);
  return device;
}

inline std::vector<std::string> Names(const VerbsProvider& provider) {
  std::vector<std::string> names;
  for (const AdapterDescription& adapter : provider.ListAdapters()) {
    names.push_back(adapter.name);
  }
  return names;
}

// A daemon's provider over the fake, which records asynchronous events of the card.
class Daemon {
 public:
  explicit Daemon(FakeVerbs& fake, const VerbsOptions& options = QuietOptions()) : Daemon(fake, fake, options) {}
  // `api` leads to `fake`.
  Daemon(FakeVerbs& fake, VerbsApi& api, const VerbsOptions& options) : fake_(fake) {
    auto provider = VerbsProvider::Create(options, random_, api, [this](const AdapterEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event.adapter + " " + std::string(AdapterEventName(event.kind)));
    });
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = provider.ok() ? *std::move(provider) : nullptr;
  }

  FakeVerbs& fake() { return fake_; }
  VerbsProvider& provider() { return *provider_; }
  std::vector<std::string> events() const {
    MutexLock lock(mutex_);
    return events_;
  }

 private:
  FakeVerbs& fake_;
  KernelRandom random_;
  mutable Mutex mutex_;
  std::vector<std::string> events_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<VerbsProvider> provider_;
};

// A side with access to the requests that the card received.
class Side : public ProviderSide {
 public:
  explicit Side(Daemon& daemon, const QueuePairLimits& limits = kRoomyLimits, std::string_view adapter = "fake0")
      : ProviderSide(daemon.provider(), adapter, limits), fake_(daemon.fake()) {}
  // A further queue pair of the same domain, with a region of its own.
  Side(const Side& sibling) = default;
  Side& operator=(const Side&) = delete;

  // The card's number of the queue pair.
  uint32_t number() const { return ParseQpAddress(pair().address())->qpn; }
  std::vector<PostedSend> posted() const { return fake_.PostedSends(number()); }

 private:
  FakeVerbs& fake_;
};

inline constexpr NtStatus kRefused = NtStatus::kInvalidDeviceRequest;

// A peer that does not belong to a daemon.
inline QpAddress Foreigner() { return {.gid = FakeGids()[0].gid, .qpn = 0x777, .psn = 0x123456, .mtu = IBV_MTU_512}; }

// A card in memory, and a daemon that owns it.
class VerbsTest : public ::testing::Test {
 protected:
  explicit VerbsTest(const VerbsOptions& options = QuietOptions()) : daemon_(WorkingByItself(fake_), options) {
    fake_.set_automatic(false);
  }
  ~VerbsTest() override { EXPECT_THAT(fake_.violations(), ::testing::IsEmpty()); }

  // Returns when the daemon has handled all events of the card so far: the last one is a message to a queue pair
  // created for this purpose.
  void Settle() {
    // A new one each time: the loop may still be polling the completion queue of an earlier one, and would then find
    // this completion before its turn.
    Side barrier(daemon_);
    ASSERT_TRUE(barrier.ConnectTo(barrier).ok());
    barrier.Post(Receive(1));
    ASSERT_TRUE(fake_.Receive(barrier.number(), 0));
    ASSERT_TRUE(barrier.Received(1));
  }

  // Requests complete automatically, as the start-up probe of the card's windows requires.
  static FakeVerbs& WorkingByItself(FakeVerbs& fake) {
    fake.set_automatic(true);
    return fake;
  }

  FakeVerbs fake_;
  Daemon daemon_;
};

}  // namespace rnicd::provider
