#include "tests/conformance/ndk_conformance.h"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/conformance/case_tables.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/data_path.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

std::string ThisTest() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }

// The declared gaps whose cases ran, and whether at least one of the row's tests failed as declared.
std::map<std::pair<std::string, std::string>, bool>& GapsShown() {
  static std::map<std::pair<std::string, std::string>, bool> gaps;
  return gaps;
}

// A row may have several tests, so it is checked when all have run.
class CheckGapsAtEnd : public testing::Environment {
 public:
  void TearDown() override {
    for (const auto& [gap, shown] : GapsShown()) {
      EXPECT_TRUE(shown) << gap.first << " passes row " << gap.second
                         << ", which gaps.txt declares as a gap: take the line out";
    }
  }
};

// The provider's name in gaps.txt and on the page, "verbs module" in a mode of its own (RNICD_TEST_MODE).
std::string NameWithMode(const std::string& provider) {
  const char* const mode = std::getenv("RNICD_TEST_MODE");
  return mode != nullptr ? provider + " " + mode : provider;
}

// The line of gaps.txt that excuses this row in this run: the provider's, or that of rings.
std::optional<std::pair<std::string, std::string>> GapOf(const std::string& provider, const std::string& number) {
  for (const auto& [name, holds] :
       {std::pair(NameWithMode(provider), true), std::pair(std::string(kRings), UsesRings())}) {
    if (holds && Gaps().contains({name, number})) {
      return std::pair(name, number);
    }
  }
  return std::nullopt;
}

[[maybe_unused]] testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new CheckGapsAtEnd);

}  // namespace

NdkConformance::NdkConformance() = default;
NdkConformance::~NdkConformance() = default;

void NdkConformance::SetUp() {
  const std::string number = CaseNumberOf(ThisTest());
  RecordProperty("case", number);
  RecordProperty("provider", NameWithMode(GetParam()));
  RecordProperty("data_path", UsesRings() ? kRings : "calls");
  used_before_ = UseOfSharedMemory();
  gap_ = GapOf(GetParam(), number);
  if (gap_.has_value()) {
    RecordProperty("gap", Gaps().at(*gap_));
    gap_results_ = std::make_unique<testing::TestPartResultArray>();
    gap_reporter_ = std::make_unique<testing::ScopedFakeTestPartResultReporter>(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, gap_results_.get());
  }
}

void NdkConformance::TearDown() {
  CheckGap();
  const SharedMemoryUse used = UseOfSharedMemory();
  RecordProperty("ring_requests", std::to_string(used.requests - used_before_.requests));
  RecordProperty("mapped_completions", std::to_string(used.completions - used_before_.completions));
  // A gap excuses a wrong result, never a leak.
  for (const SharedDaemon* shared : used_) {
    ExpectNothingHeld(*shared->process, shared->idle);
  }
}

void NdkConformance::CheckGap() {
  if (gap_reporter_ == nullptr) {
    return;
  }
  gap_reporter_.reset();
  bool& shown = GapsShown()[*gap_];
  for (int index = 0; index < gap_results_->size(); ++index) {
    shown = shown || gap_results_->GetTestPartResult(index).failed();
  }
}

DaemonProcess& NdkConformance::daemon_with(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "--provider=" + GetParam());
  const SharedMemoryUse before = UseOfSharedMemory();
  SharedDaemon& shared = DaemonWith(flags);
  // What it takes to start a daemon is not the test's, which may be the first to ask for this one.
  const SharedMemoryUse started = UseOfSharedMemory();
  used_before_.requests += started.requests - before.requests;
  used_before_.completions += started.completions - before.completions;
  if (std::find(used_.begin(), used_.end(), &shared) == used_.end()) {
    used_.push_back(&shared);
  }
  return *shared.process;
}

DaemonProcess& NdkConformance::slow_daemon() {
  return daemon_with({"--pending_threshold_bytes=4096", HoldableRegistrationsFlag()});
}

DaemonProcess& NdkConformance::tight_daemon() {
  return daemon_with({"--pending_threshold_bytes=4096",
                      LimitsFlag("session_limits { regions: " + std::to_string(kTightRegions) +
                                 " pinned_bytes: " + std::to_string(kTightPinnedBytes) + " }"),
                      ProviderFlag("max_registration_bytes", kTightRegistrationBytes),
                      ProviderFlag("max_regions", kTightDeviceRegions)});
}

std::vector<v1::RequestCompleted> CompletionsUntilEnd(TestSession& session, EventReader& events) {
  ExpectOk(session.CloseSession());
  std::vector<v1::RequestCompleted> completions;
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  for (const v1::WatchEventsResponse& event : rest) {
    if (event.has_request_completed()) {
      completions.push_back(event.request_completed());
    }
  }
  EXPECT_TRUE(!rest.empty() && rest.back().session_ending().cause() == "closed") << "the last event says the end";
  return completions;
}

void ExpectNoEventSoFar(TestSession& session, EventReader& events) {
  constexpr uint64_t kMark = 4711;
  v1::CreatePdRequest create_domain;
  create_domain.set_adapter_id(session.adapter_id());
  const auto domain = session.Call(&MemoryStub::CreatePd, create_domain);
  ExpectOk(domain);
  v1::CreateMrRequest create_region;
  create_region.set_pd_id(domain.response.pd_id());
  const auto region = session.Call(&MemoryStub::CreateMr, create_region);
  ExpectOk(region);
  EXPECT_EQ(session.ClosePd(domain.response.pd_id(), true, kMark).response.ntstatus(), kStatusPending);
  ExpectOk(session.CloseMr(region.response.mr_id()));
  EXPECT_EQ(events.NextCompletion().request_context(), kMark);
}

void RegisterPending(TestSession& session, uint64_t mr_id, uint64_t memory_id, uint64_t size, uint64_t context) {
  v1::RegisterMrRequest request = RegisterRequest(mr_id, {MdlEntry(memory_id, 0, size, kBase)}, size);
  request.set_allow_pending(true);
  request.set_request_context(context);
  const auto answer = session.Register(request);
  ExpectOk(answer);
  EXPECT_EQ(answer.response.ntstatus(), kStatusPending);
  EXPECT_FALSE(answer.response.has_registration());
}

INSTANTIATE_TEST_SUITE_P(Provider, NdkConformance, testing::Values(ProviderUnderTest()),
                         [](const auto& provider) { return provider.param; });

}  // namespace rnicd::test
