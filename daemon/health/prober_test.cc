#include "daemon/health/prober.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <future>
#include <string>

#include "base/manual_clock_fake.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "base/waiting_fixture.h"
#include "daemon/health/hanging_provider_test.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::health {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{1};
// So long that no probe times out while the test waits for it.
constexpr milliseconds kProbeTimeout = std::chrono::hours(1);
constexpr uint64_t kForEver = UINT64_MAX;

// The arguments of on_change.
// Threads: safe.
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

  std::unique_ptr<Prober> Start() {
    return Prober::Start(
        hanging_, SystemOs(), clock_,
        {.interval = kInterval,
         .timeout = kProbeTimeout,
         .on_change = [this](const AdapterHealth& adapter, bool ready) { changes_.Add(adapter, ready); }});
  }
  // With a card that hangs before it has a result, beside one that has its.
  std::unique_ptr<Prober> StartWhileHanging(const std::string& adapter) {
    hangs_.Hang(adapter, HangAt::kRegister);
    auto started = std::async(std::launch::async, [this] { return Start(); });
    hangs_.WaitUntilHanging(adapter, HangAt::kRegister);
    if (adapter != "soft0") {
      EXPECT_EQ(changes_.At(0), Works("soft0"));
    }
    clock_.Advance(kProbeTimeout);
    return started.get();
  }
  // Lets time pass, from probe to probe, until the condition holds.
  void ProbeUntil(const std::function<bool()>& condition) {
    EXPECT_TRUE(Eventually([&] {
      clock_.Advance(kInterval);
      return condition();
    }));
  }
  // Change number `index`; runs probes until it comes.
  Change ProbeUntilChange(size_t index) {
    ProbeUntil([&] { return changes_.size() > index; });
    return changes_.At(index);
  }
  void ProbeUntilHanging(HangAt place) {
    hangs_.Hang("soft0", place);
    ProbeUntil([&] { return hangs_.IsHanging("soft0", place); });
  }
  // Calls `check` repeatedly until `probes` more probes of the adapter have succeeded.
  void DuringProbes(const Prober& prober, uint64_t probes, const std::function<void()>& check) {
    const uint64_t last = prober.Read()[0].probes_ok + probes;
    while (prober.Read()[0].probes_ok < last) {
      clock_.Advance(kInterval);
      check();
    }
  }
  void FailRegistrations(uint64_t count) { faults_.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), count); }

  ManualClock clock_;
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
  EXPECT_EQ(ProbeUntilChange(1), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  EXPECT_FALSE(prober->ready());
  FailRegistrations(0);
  EXPECT_EQ(ProbeUntilChange(2), Works("soft0"));
  EXPECT_TRUE(prober->ready());
}

TEST_F(ProberTest, AHangingRegistrationTurnsItUnhealthyAndItsEndHealthy) {
  const auto prober = Start();
  ProbeUntilHanging(HangAt::kRegister);
  EXPECT_TRUE(prober->ready()) << "it may be slow";
  clock_.Advance(kProbeTimeout);
  EXPECT_EQ(changes_.At(1), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  EXPECT_TRUE(FailedWith(prober->Read()[0].status, ErrorReason::DEVICE_FAILED));
  hangs_.Release();
  EXPECT_EQ(ProbeUntilChange(2), Works("soft0"));
}

TEST_F(ProberTest, ACardThatHangsFromTheStartDoesNotHoldUpTheStart) {
  const auto prober = StartWhileHanging("soft0");
  EXPECT_FALSE(prober->ready());
  EXPECT_EQ(changes_.At(0), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  hangs_.Release();
}

TEST_F(TwoAdaptersTest, OneThatWorksIsEnough) {
  const auto prober = StartWhileHanging("soft1");
  EXPECT_TRUE(prober->ready());
  const std::vector<AdapterHealth> adapters = prober->Read();
  EXPECT_TRUE(adapters[0].healthy);
  EXPECT_FALSE(adapters[1].healthy);
  hangs_.Release();
}

TEST_F(TwoAdaptersTest, AHangingCardDoesNotHideWhatTheOtherDoes) {
  const auto prober = StartWhileHanging("soft1");
  FailRegistrations(kForEver);
  EXPECT_EQ(ProbeUntilChange(2), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  EXPECT_TRUE(FailedWith(prober->Read()[0].status, ErrorReason::DEVICE_FAILED));
  hangs_.Release();
}

TEST_F(ProberTest, WithoutAnyCardItIsNotReady) {
  const auto prober = Start();
  faults_.Unplug("soft0");
  prober->Rescan();
  EXPECT_EQ(changes_.At(1), Fails("soft0", ErrorReason::DEVICE_REMOVED, false));
  EXPECT_TRUE(prober->Read().empty());
  faults_.Plug("soft0");
  prober->Rescan();
  EXPECT_EQ(changes_.At(2), Works("soft0"));
}

// Without the next probe being due.
TEST_F(ProberTest, ACardThatWasRemovedIsLetGoAtOnce) {
  const auto prober = Start();
  faults_.Unplug("soft0");
  faults_.Plug("soft0");
  const uint64_t before = prober->Read()[0].probes_ok;
  prober->Rescan();
  EXPECT_TRUE(Eventually([&] { return prober->Read()[0].probes_ok > before; })) << "the other card works";
  EXPECT_EQ(changes_.size(), 1u);
}

TEST_F(TwoAdaptersTest, AHangingProbeOfARemovedCardBlocksNobody) {
  const auto prober = StartWhileHanging("soft1");
  faults_.Unplug("soft1");
  prober->Rescan();
  EXPECT_EQ(changes_.At(2), Fails("soft1", ErrorReason::DEVICE_REMOVED, true));
  EXPECT_EQ(prober->Read().size(), 1u);
  FailRegistrations(kForEver);
  EXPECT_EQ(ProbeUntilChange(3), Fails("soft0", ErrorReason::DEVICE_FAILED, false));
  hangs_.Release();
}

TEST_F(ProberTest, RegionsOfOthersAreNeverTheProbes) {
  const auto prober = Start();
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
    ProbeUntilHanging(place);
    EXPECT_EQ(soft_.live_regions(), place == HangAt::kDeregister ? 1u : 0u);
    auto others = std::async(std::launch::async, [&] { return prober->RegionsOfOthers(); });
    // Until its time is over, though it may begin after this.
    while (others.wait_for(milliseconds(1)) == std::future_status::timeout) {
      clock_.Advance(milliseconds(10));
    }
    EXPECT_EQ(others.get(), 0u);
    hangs_.Release();
  }
}

TEST_F(ProberTest, StopSaysWhetherAProbeStillHangs) {
  const auto prober = Start();
  ProbeUntilHanging(HangAt::kRegister);
  EXPECT_FALSE(prober->Stop(clock_.Now()));
  hangs_.Release();
  EXPECT_TRUE(prober->Stop(Instant::max()));
}

TEST_F(ProberTest, NothingIsProbedAfterStop) {
  auto prober = Start();
  ASSERT_TRUE(prober->Stop(Instant::max()));
  FailRegistrations(1);
  clock_.Advance(kInterval);
  prober.reset();
  EXPECT_FALSE(faults_.TakeRegister().ok()) << "no probe met it";
}

TEST_F(ProberTest, TheEndDoesNotWaitForTheNextProbe) { EXPECT_TRUE(Start()->ready()); }

// With the clock of the daemon, whose thread must wake by itself.
TEST_F(ProberTest, ProbesAgainAndAgainInRealTime) {
  const SteadyClock clock;
  const auto prober = Prober::Start(soft_, SystemOs(), clock, {.interval = kInterval, .timeout = kProbeTimeout});
  EXPECT_TRUE(Eventually([&] { return prober->Read()[0].probes_ok >= 3; }));
}

}  // namespace
}  // namespace rnicd::health
