#include "daemon/health/prober.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <thread>

#include "base/random.h"
#include "base/status.h"
#include "daemon/health/hanging_provider_test.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::health {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{2};
// Longer than any probe of a healthy card, however busy the machine.
constexpr milliseconds kLongTimeout{600'000};
constexpr milliseconds kShortTimeout{50};
constexpr uint64_t kForEver = UINT64_MAX;

// The arguments of on_change. Threads: safe.
class Changes {
 public:
  struct Change {
    std::string adapter;
    bool healthy = false;
    ErrorReason reason = ErrorReason::UNSPECIFIED;
    bool ready = false;
    friend bool operator==(const Change&, const Change&) = default;
  };

  void Add(const AdapterHealth& health, bool ready) {
    MutexLock lock(mutex_);
    changes_.push_back({health.adapter, health.healthy,
                        health.healthy ? ErrorReason::UNSPECIFIED : ErrorInfoOf(health.status).reason, ready});
    added_.NotifyAll();
  }
  // Change number `index`, counted from 0; waits for it. If it never comes, the test runner's timeout ends the test.
  Change At(size_t index) {
    MutexLock lock(mutex_);
    while (changes_.size() <= index) {
      added_.Wait(mutex_);
    }
    return changes_[index];
  }
  size_t size() {
    MutexLock lock(mutex_);
    return changes_.size();
  }

 private:
  Mutex mutex_;
  ConditionVariable added_;
  std::vector<Change> changes_ RNICD_GUARDED_BY(mutex_);
};

using Change = Changes::Change;

Change Works(const std::string& adapter) { return {adapter, true, ErrorReason::UNSPECIFIED, true}; }
Change Fails(const std::string& adapter, ErrorReason reason, bool ready) { return {adapter, false, reason, ready}; }

class ProberTest : public ::testing::Test {
 protected:
  explicit ProberTest(uint32_t adapters = 1) : soft_({.adapters = adapters}, random_) {}
  // A failed expectation must not leave a probe hanging, which would block the prober's destructor.
  ~ProberTest() override { hangs_.Release(); }

  std::unique_ptr<Prober> Start(milliseconds timeout = kLongTimeout, milliseconds interval = kInterval) {
    return Prober::Start(
        hanging_, SystemOs(),
        {.interval = interval, .timeout = timeout, .on_change = [this](const AdapterHealth& adapter, bool ready) {
           changes_.Add(adapter, ready);
         }});
  }
  // If that never happens, the test runner's timeout ends the test.
  static void WaitUntilReadyIs(const Prober& prober, bool ready) {
    while (prober.ready() != ready) {
      std::this_thread::sleep_for(kInterval);
    }
  }
  // Calls `check` until `probes` more probes of the adapter have run.
  static void DuringProbes(const Prober& prober, uint64_t probes, const std::function<void()>& check) {
    const uint64_t last = prober.Read()[0].probes_ok + probes;
    while (prober.Read()[0].probes_ok < last) {
      check();
    }
  }
  void FailRegistrations(uint64_t count) { faults_.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), count); }

  KernelRandom random_;
  provider::SoftProvider soft_;
  provider::FaultPlan faults_;
  provider::FaultInjectingProvider faulty_{soft_, faults_};
  HangPlan hangs_;
  HangingProvider hanging_{faulty_, hangs_};
  Changes changes_;
};

class TwoAdaptersTest : public ProberTest {
 protected:
  TwoAdaptersTest() : ProberTest(2) {}
};

TEST_F(ProberTest, StartKnowsWhetherItIsReady) {
  const auto prober = Start();
  EXPECT_TRUE(prober->ready());
  EXPECT_EQ(changes_.At(0), Works("soft0"));
  const std::vector<AdapterHealth> adapters = prober->Read();
  ASSERT_EQ(adapters.size(), 1u);
  EXPECT_EQ(adapters[0].adapter, "soft0");
  EXPECT_GE(adapters[0].probes_ok, 1u);
}

TEST_F(ProberTest, StartWithAFailingCardIsNotReady) {
  FailRegistrations(kForEver);
  const auto prober = Start();
  EXPECT_FALSE(prober->ready());
  EXPECT_EQ(changes_.At(0), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
}

TEST_F(ProberTest, FailingRegistrationsTurnItUnhealthyAndWorkingOnesHealthy) {
  const auto prober = Start();
  FailRegistrations(kForEver);
  EXPECT_EQ(changes_.At(1), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  EXPECT_FALSE(prober->ready());
  FailRegistrations(0);
  EXPECT_EQ(changes_.At(2), Works("soft0"));
  EXPECT_TRUE(prober->ready());
}

TEST_F(ProberTest, AHangingRegistrationTurnsItUnhealthyAndItsEndHealthy) {
  const auto prober = Start(kShortTimeout);
  hangs_.Hang("soft0", HangAt::kRegister);
  hangs_.WaitUntilHanging("soft0", HangAt::kRegister);
  WaitUntilReadyIs(*prober, false);
  EXPECT_TRUE(FailedWith(prober->Read()[0].status, ErrorReason::DEVICE_FAILED));
  hangs_.Release();
  WaitUntilReadyIs(*prober, true);
}

TEST_F(ProberTest, ACardThatHangsFromTheStartDoesNotHoldUpTheStart) {
  hangs_.Hang("soft0", HangAt::kRegister);
  const auto prober = Start(kShortTimeout);
  EXPECT_FALSE(prober->ready());
  EXPECT_EQ(changes_.At(0), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  hangs_.Release();
}

TEST_F(TwoAdaptersTest, OneThatWorksIsEnough) {
  hangs_.Hang("soft1", HangAt::kRegister);
  const auto prober = Start(kShortTimeout);
  WaitUntilReadyIs(*prober, true);
  const std::vector<AdapterHealth> adapters = prober->Read();
  EXPECT_TRUE(adapters[0].healthy);
  EXPECT_FALSE(adapters[1].healthy);
  hangs_.Release();
}

TEST_F(TwoAdaptersTest, AHangingCardDoesNotHideWhatTheOtherDoes) {
  hangs_.Hang("soft1", HangAt::kRegister);
  const auto prober = Start(kShortTimeout);
  FailRegistrations(kForEver);
  WaitUntilReadyIs(*prober, false);
  EXPECT_TRUE(FailedWith(prober->Read()[0].status, ErrorReason::DEVICE_FAILED));
  hangs_.Release();
}

TEST_F(ProberTest, RegionsOfOthersAreNeverTheProbes) {
  const auto prober = Start(kLongTimeout, milliseconds(1));
  DuringProbes(*prober, 300, [&] { ASSERT_EQ(prober->RegionsOfOthers(), 0u); });
  const auto adapter = *soft_.OpenAdapter("soft0");
  const auto domain = *adapter->CreateProtectionDomain();
  std::array<std::byte, kNdkPageBytes> page{};
  std::span<std::byte> run(page);
  const auto region = domain->RegisterMemory({.base = {kNdkPageBytes}, .length = kNdkPageBytes, .runs = {&run, 1}});
  ASSERT_TRUE(region.ok());
  DuringProbes(*prober, 300, [&] { ASSERT_EQ(prober->RegionsOfOthers(), 1u); });
}

TEST_F(ProberTest, RegionsOfOthersAreKnownWhileAProbeHangs) {
  const auto prober = Start();
  for (const HangAt place : {HangAt::kRegister, HangAt::kDeregister}) {
    hangs_.Hang("soft0", place);
    hangs_.WaitUntilHanging("soft0", place);
    EXPECT_EQ(soft_.live_regions(), place == HangAt::kDeregister ? 1u : 0u);
    EXPECT_EQ(prober->RegionsOfOthers(), 0u);
    hangs_.Release();
  }
}

TEST_F(ProberTest, StopSaysWhetherAProbeStillHangs) {
  const auto prober = Start();
  hangs_.Hang("soft0", HangAt::kRegister);
  hangs_.WaitUntilHanging("soft0", HangAt::kRegister);
  EXPECT_FALSE(prober->Stop(std::chrono::steady_clock::now() + milliseconds(10)));
  hangs_.Release();
  EXPECT_TRUE(prober->Stop(std::chrono::steady_clock::now() + kLongTimeout));
}

TEST_F(ProberTest, NothingIsProbedAfterStop) {
  const auto prober = Start();
  ASSERT_TRUE(prober->Stop(std::chrono::steady_clock::now() + kLongTimeout));
  const uint64_t probes = prober->Read()[0].probes_ok;
  std::this_thread::sleep_for(10 * kInterval);
  EXPECT_EQ(prober->Read()[0].probes_ok, probes);
}

TEST_F(ProberTest, TheEndDoesNotWaitForTheNextProbe) {
  const auto prober = Prober::Start(soft_, SystemOs(), {.interval = kLongTimeout, .timeout = kLongTimeout});
  EXPECT_TRUE(prober->ready());
}

}  // namespace
}  // namespace rnicd::health
