#include "daemon/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/status.h"

namespace rnicd::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kMethods[] = {"MemoryService.CreateMr", "MemoryService.RegisterMr"};

class MetricsTest : public ::testing::Test {
 protected:
  std::string Page(const GaugeValues& gauges = {}) const { return metrics_.Render(gauges); }
  static core::RegistrationReport Report(const absl::Status& status, std::chrono::nanoseconds duration) {
    return {.status = status, .bytes = 4096, .reached_device = true, .duration = duration};
  }

  Metrics metrics_{kMethods, "1.2.3"};
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheStart) {
  const std::string page = Page();
  for (const char* const line :
       {"rnicd_build_info{version=\"1.2.3\"} 1", "rnicd_registrations_total{result=\"ok\"} 0",
        "rnicd_registrations_total{result=\"error\"} 0", "rnicd_deregistrations_total{result=\"ok\"} 0",
        "rnicd_tokens_issued_total{kind=\"local\"} 0", "rnicd_tokens_issued_total{kind=\"remote\"} 0",
        "rnicd_registration_failures_total{reason=\"quota_pinned_bytes\"} 0",
        "rnicd_registration_failures_total{reason=\"device_failed\"} 0", "rnicd_sessions_opened_total 0",
        "rnicd_reclaimed_bytes_total{cause=\"process_exited\"} 0", "rnicd_sessions_ended_total{cause=\"evicted\"} 0",
        "rnicd_connections_refused_total{reason=\"silent\"} 0", "rnicd_tokens_revoked_total{cause=\"deregister\"} 0",
        "rnicd_registration_duration_seconds_count 0"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MetricsTest, GaugesShowWhatTheScrapeSays) {
  const std::string page = Page({.registered_bytes = 67108864,
                                 .registered_pages = 16384,
                                 .pinned_bytes = 33554432,
                                 .memory_regions = 3,
                                 .memory_objects = 2,
                                 .memory_bytes = 67108864,
                                 .sessions = 1,
                                 .connections = 5,
                                 .device_regions = 7,
                                 .fast_registrations = {.direct = 8, .composed = 9, .windowed = 10}});
  for (const char* const line :
       {"rnicd_registered_bytes 67108864", "rnicd_registered_pages 16384", "rnicd_pinned_bytes 33554432",
        "rnicd_memory_regions 3", "rnicd_memory_objects 2", "rnicd_memory_bytes 67108864", "rnicd_sessions 1",
        "rnicd_connections 5", "rnicd_device_regions 7", "rnicd_fast_registrations_total{engine=\"direct\"} 8",
        "rnicd_fast_registrations_total{engine=\"compose\"} 9",
        "rnicd_fast_registrations_total{engine=\"window\"} 10"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MetricsTest, RegistrationsAreCountedByResultAndReason) {
  metrics_.OnRegistered(Report(absl::OkStatus(), std::chrono::microseconds(7)));
  metrics_.OnRegistered(Report(absl::OkStatus(), std::chrono::milliseconds(3)));
  metrics_.OnRegistered(Report(MakeError(ErrorReason::QUOTA_PINNED_BYTES), std::chrono::microseconds(1)));
  metrics_.OnRegistered(Report(absl::UnknownError("not ours"), std::chrono::microseconds(1)));
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{result=\"ok\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{result=\"error\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_failures_total{reason=\"quota_pinned_bytes\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_failures_total{reason=\"internal_fault\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_duration_seconds_count 4\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registration_duration_seconds_bucket{le=\"0.005\"} 4\n"));
}

TEST_F(MetricsTest, ARequestThatNeverReachedTheDeviceHasNoDuration) {
  metrics_.OnRegistered({.status = MakeError(ErrorReason::LENGTH_ZERO), .reached_device = false});
  EXPECT_THAT(Page(), HasSubstr("rnicd_registration_duration_seconds_count 0\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_registration_failures_total{reason=\"length_zero\"} 1\n"));
}

TEST_F(MetricsTest, CallsAreCountedByMethodAndCode) {
  metrics_.OnRpc("MemoryService.CreateMr", absl::StatusCode::kOk, std::chrono::microseconds(10));
  metrics_.OnRpc("MemoryService.CreateMr", absl::StatusCode::kOk, std::chrono::microseconds(10));
  metrics_.OnRpc("MemoryService.CreateMr", absl::StatusCode::kNotFound, std::chrono::microseconds(10));
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_rpcs_total{code=\"OK\",method=\"MemoryService.CreateMr\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_rpcs_total{code=\"NOT_FOUND\",method=\"MemoryService.CreateMr\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_rpc_duration_seconds_count{method=\"MemoryService.CreateMr\"} 3\n"));
}

TEST_F(MetricsTest, AStreamIsCountedWithoutADuration) {
  metrics_.OnRpc("MemoryService.CreateMr", absl::StatusCode::kOk, std::nullopt);
  EXPECT_THAT(Page(), HasSubstr("rnicd_rpcs_total{code=\"OK\",method=\"MemoryService.CreateMr\"} 1\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_rpc_duration_seconds_count{method=\"MemoryService.CreateMr\"} 0\n"));
}

TEST_F(MetricsTest, AnUnknownMethodOrCodeIsIgnored) {
  metrics_.OnRpc("MemoryService.Nothing", absl::StatusCode::kOk, std::nullopt);
  metrics_.OnRpc("MemoryService.CreateMr", static_cast<absl::StatusCode>(99), std::nullopt);
  EXPECT_THAT(Page(), Not(HasSubstr("Nothing")));
  EXPECT_THAT(Page(), Not(HasSubstr("rnicd_rpcs_total{")));
}

TEST_F(MetricsTest, TheEndOfASessionIsCountedUnderItsCause) {
  metrics_.OnSessionOpened(SessionId{1}, {});
  metrics_.OnSessionEnded(SessionId{1}, {}, core::EndCause::kProcessExited,
                          {.regions = 2, .pinned_bytes = 8192, .memory_bytes = 16384, .failures = 1});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_sessions_opened_total 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_sessions_ended_total{cause=\"process_exited\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_bytes_total{cause=\"process_exited\"} 8192\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_regions_total{cause=\"process_exited\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaimed_bytes_total{cause=\"closed\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_reclaim_failures_total 1\n"));
}

TEST_F(MetricsTest, TokensDeregistrationsAndRefusalsAreCounted) {
  metrics_.OnTokensIssued(2, 3);
  metrics_.OnTokensRevoked(4, "deregister");
  metrics_.OnDeregistered(absl::OkStatus());
  metrics_.OnDeregistered(MakeError(ErrorReason::DEVICE_FAILED));
  metrics_.OnConnectionRefused(core::kRefusedUidLimit);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_issued_total{kind=\"local\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_issued_total{kind=\"remote\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_tokens_revoked_total{cause=\"deregister\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_deregistrations_total{result=\"ok\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_deregistrations_total{result=\"error\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_connections_refused_total{reason=\"connection_limit_uid\"} 1\n"));
}

TEST_F(MetricsTest, RacingCallsLoseNoCount) {
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([this] {
      for (int round = 0; round < 1000; ++round) {
        metrics_.OnRpc("MemoryService.RegisterMr", absl::StatusCode::kAborted, std::chrono::microseconds(1));
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
