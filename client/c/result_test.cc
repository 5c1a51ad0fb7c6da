#include "client/c/result.h"

#include <cerrno>
#include <new>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "client/cpp/transport_failure.h"

namespace rnicd::c {
namespace {

TEST(ErrnoOfReasons, EveryReasonHasOneThatTheHeaderNames) {
  // Those of the comment at the head of rnicd.h and at its functions, and those of completions and of admin.sock.
  const std::set<int> known = {EINVAL, ENOMEM,   ECONNRESET, EAGAIN,    EDQUOT,    EACCES,      ENOENT,
                               EBADFD, EBUSY,    ERANGE,     ENOSPC,    EMSGSIZE,  EOPNOTSUPP,  ENODEV,
                               EIO,    ENOTCONN, EOVERFLOW,  ETIMEDOUT, ECANCELED, ECONNABORTED};
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_TRUE(known.contains(ErrnoOf(row.reason))) << row.name;
    const bool is_quota = row.name.starts_with("QUOTA_");
    EXPECT_EQ(ErrnoOf(row.reason) == EDQUOT, is_quota) << row.name;
  }
}

TEST(ErrnoOfReasons, AreThoseThatProgramsKnow) {
  EXPECT_EQ(ErrnoOf(ErrorReason::QUOTA_REGIONS), EDQUOT);
  EXPECT_EQ(ErrnoOf(ErrorReason::OBJECT_NOT_FOUND), ENOENT);
  EXPECT_EQ(ErrnoOf(ErrorReason::GRANT_REFUSED), EACCES);
  EXPECT_EQ(ErrnoOf(ErrorReason::RATE_LIMITED), EAGAIN);
  EXPECT_EQ(ErrnoOf(ErrorReason::QUEUE_FULL), EAGAIN);
  EXPECT_EQ(ErrnoOf(ErrorReason::SESSION_ENDING), ECONNRESET);
  EXPECT_EQ(ErrnoOf(ErrorReason::MEMORY_IN_USE), EBUSY);
  EXPECT_EQ(ErrnoOf(ErrorReason::FIELD_OUT_OF_RANGE), EINVAL);
  EXPECT_EQ(ErrnoOf(ErrorReason::REGION_NOT_REGISTERED), EBADFD);
  EXPECT_EQ(ErrnoOf(ErrorReason::METHOD_UNKNOWN), EOPNOTSUPP);
}

TEST(ErrnoOfReasons, TransportFailuresHaveTheirOwn) {
  const auto of = [](absl::StatusCode code) { return ErrnoOf(TransportFailure(code, "x")); };
  EXPECT_EQ(of(absl::StatusCode::kUnavailable), ECONNRESET);
  EXPECT_EQ(of(absl::StatusCode::kDeadlineExceeded), ETIMEDOUT);
  EXPECT_EQ(of(absl::StatusCode::kFailedPrecondition), ESTALE);
  EXPECT_EQ(of(absl::StatusCode::kResourceExhausted), ENOMEM);
  EXPECT_EQ(of(absl::StatusCode::kUnimplemented), EOPNOTSUPP);
  EXPECT_EQ(of(absl::StatusCode::kInternal), EPROTO);
  EXPECT_EQ(ErrnoOf(WithErrno(TransportFailure(absl::StatusCode::kUnavailable, "x"), ECONNREFUSED)), ECONNREFUSED);
}

TEST(LastError, HasReasonFieldAndFigures) {
  EXPECT_EQ(Fail(MakeError({.reason = ErrorReason::QUOTA_REGIONS,
                            .field = "tenant",
                            .limit = 3,
                            .used = 2,
                            .requested = 4,
                            .retry_after_ms = 5})),
            -EDQUOT);
  const rnicd_error& error = *rnicd_last_error();
  EXPECT_EQ(error.size, sizeof(rnicd_error));
  EXPECT_EQ(error.code, EDQUOT);
  EXPECT_EQ(error.reason, static_cast<uint32_t>(RNICD_REASON_QUOTA_REGIONS));
  EXPECT_EQ(error.ntstatus, 0xC000009Au);
  EXPECT_EQ(error.limit, 3u);
  EXPECT_EQ(error.used, 2u);
  EXPECT_EQ(error.requested, 4u);
  EXPECT_EQ(error.retry_after_ms, 5u);
  EXPECT_STREQ(error.field, "tenant");
  EXPECT_STREQ(error.message, "too many memory regions");
}

TEST(LastError, CutsTextThatIsTooLong) {
  Fail(MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = std::string(200, 'f')},
                           std::string(400, 'd')));
  EXPECT_EQ(std::string(rnicd_last_error()->field), std::string(95, 'f'));
  EXPECT_EQ(std::string(rnicd_last_error()->message).size(), 255u);
}

TEST(LastError, ATransportFailureHasNoReason) {
  EXPECT_EQ(Fail(TransportFailure(absl::StatusCode::kUnavailable, "x")), -ECONNRESET);
  EXPECT_EQ(rnicd_last_error()->reason, 0u);
  EXPECT_STREQ(rnicd_last_error()->message, "no answer from rnicd: x");
}

TEST(LastError, IsThatOfTheThread) {
  Fail(MakeError(ErrorReason::OBJECT_NOT_FOUND, "mine"));
  std::thread([] {
    EXPECT_EQ(rnicd_last_error()->code, 0);
    EXPECT_EQ(rnicd_last_error()->size, sizeof(rnicd_error));
    Fail(MakeError(ErrorReason::CQ_OVERRUN));
    EXPECT_EQ(rnicd_last_error()->code, EOVERFLOW);
  }).join();
  EXPECT_EQ(rnicd_last_error()->code, ENOENT);
  EXPECT_STREQ(rnicd_last_error()->field, "mine");
}

TEST(LastError, StaysAfterASuccess) {
  Fail(MakeError(ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(c::Run([] { return absl::OkStatus(); }), 0);
  EXPECT_EQ(rnicd_last_error()->code, ENOENT);
}

TEST(RunBodies, ReturnTheirCountOrAnErrno) {
  EXPECT_EQ(c::Run([]() -> absl::StatusOr<int> { return 7; }), 7);
  EXPECT_EQ(c::Run([]() -> absl::StatusOr<int> { return MakeError(ErrorReason::LENGTH_ZERO); }), -EINVAL);
}

TEST(RunBodies, WantOfMemoryIsAnError) {
  EXPECT_EQ(c::Run([]() -> absl::Status { throw std::bad_alloc(); }), -ENOMEM);
  EXPECT_EQ(rnicd_last_error()->code, ENOMEM);
  EXPECT_EQ(rnicd_last_error()->reason, 0u);
}

TEST(Names, AreThoseOfReasonsAndStatuses) {
  EXPECT_STREQ(rnicd_reason_name(0), "UNSPECIFIED");
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_EQ(rnicd_reason_name(static_cast<uint32_t>(row.reason)), row.name);
  }
  EXPECT_STREQ(rnicd_reason_name(99'999), "UNKNOWN");
  EXPECT_STREQ(rnicd_ntstatus_name(0xC0000120), "STATUS_CANCELLED");
  EXPECT_STREQ(rnicd_ntstatus_name(1), "STATUS_UNKNOWN");
}

TEST(Names, VersionIsThatOfTheHeader) {
  const std::string header = std::to_string(RNICD_VERSION_MAJOR) + "." + std::to_string(RNICD_VERSION_MINOR) + ".";
  EXPECT_TRUE(std::string(rnicd_version()).starts_with(header)) << rnicd_version();
}

TEST(CInterface, AThreadIsNotCancelledInside) {
  int inside = PTHREAD_CANCEL_ENABLE;
  (void)rnicd::c::Run([&] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &inside);
    return absl::OkStatus();
  });
  int after = PTHREAD_CANCEL_DISABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &after);
  EXPECT_EQ(inside, PTHREAD_CANCEL_DISABLE);
  EXPECT_EQ(after, PTHREAD_CANCEL_ENABLE);
}

}  // namespace
}  // namespace rnicd::c
