#include "daemon/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/status.h"
#include "daemon/metrics/families.h"

namespace rnicd::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kMethods[] = {"MemoryService.CreateMr", "MemoryService.RegisterMr"};

class MetricsTest : public ::testing::Test {
 protected:
  std::string Page() const { return metrics_.Render({}); }
  static core::RegistrationEnded Ended(const absl::Status& status, std::chrono::nanoseconds duration) {
    return {.status = status, .bytes = 4096, .reached_device = true, .duration = duration};
  }

  Metrics metrics_{kMethods, "1.2.3"};
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheStart) {
  const std::string page = Page();
  for (const char* const line :
       {"rnicd_build_info{version=\"1.2.3\"} 1", "rnicd_completions_total{operation=\"read\",result=\"cancelled\"} 0",
        "rnicd_fast_registrations_total{engine=\"none\",result=\"error\"} 0",
        "rnicd_tokens_issued_total{kind=\"local\"} 0", "rnicd_tokens_issued_total{kind=\"remote\"} 0",
        "rnicd_registration_failures_total{reason=\"quota_pinned_bytes\"} 0",
        "rnicd_registration_failures_total{reason=\"device_failed\"} 0", "rnicd_sessions_opened_total 0",
        "rnicd_reclaimed_bytes_total{cause=\"process_exited\"} 0", "rnicd_sessions_ended_total{cause=\"evicted\"} 0",
        "rnicd_connections_refused_total{reason=\"silent\"} 0", "rnicd_tokens_revoked_total{cause=\"deregister\"} 0",
        "rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"} 0"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MetricsTest, TheStateIsOnThePageBesideWhatWasCounted) {
  Families state;
  state.Add(Metric::kSessions, {"storage"}, 3);
  state.Add(Metric::kFastRegistrations, {"native", "ok"}, 7);
  metrics_.Report(core::FastRegisterRefused{});
  const std::string page = metrics_.Render(state.Take());
  EXPECT_THAT(page, HasSubstr("rnicd_sessions{tenant=\"storage\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_fast_registrations_total{engine=\"native\",result=\"ok\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_fast_registrations_total{engine=\"none\",result=\"error\"} 1\n"));
  const std::string type = "# TYPE rnicd_fast_registrations_total counter\n";
  EXPECT_EQ(page.find(type), page.rfind(type)) << "one family, and not two of the same name";
}

TEST_F(MetricsTest, RegistrationsAreTimedAndTheirFailuresCountedByReason) {
  metrics_.Report(Ended(absl::OkStatus(), std::chrono::microseconds(7)));
  metrics_.Report(Ended(absl::OkStatus(), std::chrono::milliseconds(3)));
  metrics_.Report(Ended(MakeError(ErrorReason::QUOTA_PINNED_BYTES), std::chrono::microseconds(1)));
  metrics_.Report(Ended(absl::UnknownError("not ours"), std::chrono::microseconds(1)));
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_registration_failures_total{reason=\"quota_pinned_bytes\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_failures_total{reason=\"internal_fault\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"} 4\n"));
  EXPECT_THAT(page,
              HasSubstr("rnicd_registration_duration_seconds_bucket{size_class=\"up_to_64KiB\",le=\"0.005\"} 4\n"));
}

TEST_F(MetricsTest, ARequestThatNeverReachedTheDeviceHasNoDuration) {
  metrics_.Report(core::RegistrationEnded{.status = MakeError(ErrorReason::LENGTH_ZERO), .reached_device = false});
  EXPECT_THAT(Page(), HasSubstr("rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"} 0\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_registration_failures_total{reason=\"length_zero\"} 1\n"));
}

TEST_F(MetricsTest, CallsAreCountedByMethodAndCode) {
  metrics_.Report(core::RpcEnded{
      .method = "MemoryService.CreateMr", .code = absl::StatusCode::kOk, .duration = std::chrono::microseconds(10)});
  metrics_.Report(core::RpcEnded{
      .method = "MemoryService.CreateMr", .code = absl::StatusCode::kOk, .duration = std::chrono::microseconds(10)});
  metrics_.Report(core::RpcEnded{.method = "MemoryService.CreateMr",
                                 .code = absl::StatusCode::kNotFound,
                                 .duration = std::chrono::microseconds(10)});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_rpcs_total{code=\"OK\",method=\"MemoryService.CreateMr\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_rpcs_total{code=\"NOT_FOUND\",method=\"MemoryService.CreateMr\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_rpc_duration_seconds_count{method=\"MemoryService.CreateMr\"} 3\n"));
}

TEST_F(MetricsTest, AStreamIsCountedWithoutADuration) {
  metrics_.Report(core::RpcEnded{.method = "MemoryService.CreateMr", .code = absl::StatusCode::kOk});
  EXPECT_THAT(Page(), HasSubstr("rnicd_rpcs_total{code=\"OK\",method=\"MemoryService.CreateMr\"} 1\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_rpc_duration_seconds_count{method=\"MemoryService.CreateMr\"} 0\n"));
}

TEST_F(MetricsTest, AnUnknownMethodOrCodeIsIgnored) {
  metrics_.Report(core::RpcEnded{.method = "MemoryService.Nothing", .code = absl::StatusCode::kOk});
  metrics_.Report(core::RpcEnded{.method = "MemoryService.CreateMr", .code = static_cast<absl::StatusCode>(99)});
  EXPECT_THAT(Page(), Not(HasSubstr("Nothing")));
  EXPECT_THAT(Page(), Not(HasSubstr("rnicd_rpcs_total{")));
}

TEST_F(MetricsTest, TheEndOfASessionIsCountedUnderItsCause) {
  const core::Caller caller;
  metrics_.Report(core::SessionOpened{.id = SessionId{1}, .caller = caller});
  metrics_.Report(
      core::SessionEnded{.id = SessionId{1},
                         .caller = caller,
                         .cause = core::EndCause::kProcessExited,
                         .reclaimed = {.regions = 2, .pinned_bytes = 8192, .memory_bytes = 16384, .failures = 1}});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_sessions_opened_total 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_sessions_ended_total{cause=\"process_exited\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_bytes_total{cause=\"process_exited\"} 8192\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_regions_total{cause=\"process_exited\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_bytes_total{cause=\"closed\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaim_failures_total 1\n"));
}

TEST_F(MetricsTest, TokensAndRefusalsAreCounted) {
  metrics_.Report(core::TokensIssued{.local = 2, .remote = 3});
  metrics_.Report(core::TokensRevoked{.pairs = 4, .cause = "deregister"});
  metrics_.Report(core::ConnectionRefused{core::kRefusedUidLimit});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_issued_total{kind=\"local\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_issued_total{kind=\"remote\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_revoked_total{cause=\"deregister\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_connections_refused_total{reason=\"connection_limit_uid\"} 1\n"));
}

TEST_F(MetricsTest, ARegistrationIsTimedAmongThoseOfItsSize) {
  const std::pair<uint64_t, const char*> rows[] = {{1, "up_to_64KiB"},
                                                   {65536, "up_to_64KiB"},
                                                   {65537, "up_to_1MiB"},
                                                   {uint64_t{16} << 20, "up_to_16MiB"},
                                                   {uint64_t{17} << 20, "up_to_256MiB"},
                                                   {uint64_t{1} << 40, "above_256MiB"}};
  for (const auto& [bytes, name] : rows) {
    metrics_.Report(
        core::RegistrationEnded{.bytes = bytes, .reached_device = true, .duration = std::chrono::microseconds(1)});
  }
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"} 2\n"));
  for (const char* const name : {"up_to_1MiB", "up_to_16MiB", "up_to_256MiB", "above_256MiB"}) {
    EXPECT_THAT(page,
                HasSubstr("rnicd_registration_duration_seconds_count{size_class=\"" + std::string(name) + "\"} 1\n"));
  }
}

TEST_F(MetricsTest, CompletionsAreCountedByOperationAndResult) {
  metrics_.Report(core::WorkRequestCompleted{.operation = OperationType::kRead, .status = NtStatus::kSuccess});
  metrics_.Report(
      core::WorkRequestCompleted{.operation = OperationType::kReceiveAndInvalidate, .status = NtStatus::kCancelled});
  metrics_.Report(
      core::WorkRequestCompleted{.operation = OperationType::kFastRegister, .status = NtStatus::kInternalError});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_completions_total{operation=\"read\",result=\"success\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr("rnicd_completions_total{operation=\"receive_and_invalidate\",result=\"cancelled\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_completions_total{operation=\"fast_register\",result=\"error\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_fast_registrations_total{engine=\"none\",result=\"error\"} 1\n"));
}

TEST_F(MetricsTest, WhatACardSaysIsCounted) {
  metrics_.OnAdapterEvent({.adapter = "rxe0", .kind = provider::AdapterEventKind::kPortDown});
  metrics_.OnAdapterEvent({.adapter = "rxe0", .kind = provider::AdapterEventKind::kPortDown});
  EXPECT_THAT(Page(), HasSubstr("rnicd_adapter_events_total{adapter=\"rxe0\",event=\"port down\"} 2\n"));
}

TEST_F(MetricsTest, RacingCallsLoseNoCount) {
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([this] {
      for (int round = 0; round < 1000; ++round) {
        metrics_.Report(core::RpcEnded{.method = "MemoryService.RegisterMr",
                                       .code = absl::StatusCode::kAborted,
                                       .duration = std::chrono::microseconds(1)});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(Page(), HasSubstr("rnicd_rpcs_total{code=\"ABORTED\",method=\"MemoryService.RegisterMr\"} 4000\n"));
}

}  // namespace
}  // namespace rnicd::metrics
