#include "client/ctl/output/output.h"

#include <cerrno>
#include <sstream>
#include <streambuf>

#include "base/status.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"
#include "client/ctl/commands.h"
#include "client/ctl/line/command_line.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

absl::Status QuotaFailure() {
  return MakeError(
      ErrorInfo{.reason = ErrorReason::QUOTA_PINNED_BYTES, .field = "length", .limit = 10, .used = 8, .requested = 3});
}

TEST(Output, ProgressIsShownOnATerminalAndRemoved) {
  std::ostringstream out;
  std::ostringstream err;
  Output terminal(out, err, false, true);
  terminal.Progress("");
  EXPECT_EQ(err.str(), "") << "there was no line";
  terminal.Progress("half");
  terminal.Progress("");
  EXPECT_EQ(err.str(), "\r\x1b[Khalf\r\x1b[K");
  std::ostringstream file;
  Output(out, file, false).Progress("half");
  EXPECT_EQ(file.str() + out.str(), "");
}

TEST(Output, ErrorLineNamesReasonStatusFieldAndFigures) {
  EXPECT_EQ(ErrorLine(MakeError(ErrorReason::LENGTH_ZERO, "length")),
            "rnicctl: the length is zero (LENGTH_ZERO, STATUS_INVALID_PARAMETER, field length)");
  EXPECT_EQ(ErrorLine(MakeError(ErrorReason::SESSION_REQUIRED)),
            "rnicctl: the connection has no session; call OpenSession or JoinSession first "
            "(SESSION_REQUIRED, STATUS_INVALID_DEVICE_STATE)");
  EXPECT_EQ(ErrorLine(QuotaFailure()),
            "rnicctl: too many pinned bytes, each page counted once (QUOTA_PINNED_BYTES, "
            "STATUS_INSUFFICIENT_RESOURCES, field length, "
            "limit 10, used 8, requested 3)");
}

TEST(Output, TransportFailureShowsItsCodeOnly) {
  EXPECT_EQ(ErrorLine(TransportFailure(absl::StatusCode::kUnavailable, "connection refused")),
            "rnicctl: no answer from rnicd: connection refused (UNAVAILABLE)");
  EXPECT_EQ(ErrorJson(TransportFailure(absl::StatusCode::kUnavailable, "refused")).dump(),
            R"({"error":{"code":"UNAVAILABLE","message":"no answer from rnicd: refused"}})");
}

TEST(Output, ErrorJsonHasEveryFact) {
  EXPECT_EQ(ErrorJson(QuotaFailure()).dump(),
            R"({"error":{"code":"RESOURCE_EXHAUSTED","message":"too many pinned bytes, each page counted once",)"
            R"("reason":"QUOTA_PINNED_BYTES","ntstatus":3221225626,"ntstatus_name":"STATUS_INSUFFICIENT_RESOURCES",)"
            R"("field":"length","limit":10,"used":8,"requested":3}})");
}

TEST(Output, ExitCodesTellMistakesFromFailures) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(MakeError(ErrorReason::LENGTH_ZERO)), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("wrong")), 2);
}

// Refuses every byte, as a full disk and a pipe without a reader do.
class Refusing : public std::streambuf {
 public:
  explicit Refusing(int error) : error_(error) {}

 protected:
  int_type overflow(int_type /*byte*/) override {
    errno = error_;
    return traits_type::eof();
  }

 private:
  const int error_;
};

TEST(Output, LostOutputIsAFailureOfACommandThatDidItsWork) {
  Refusing full(ENOSPC);
  std::ostream out(&full);
  std::ostringstream err;
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"version"}, out, err), 1);
  EXPECT_EQ(err.str(), "rnicctl: the output could not be written: No space left on device (DATA_LOSS)\n");
  out.clear();
  err.str("");
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"version", "--json"}, out, err), 1);
  EXPECT_TRUE(err.str().starts_with(R"({"error":{"code":"DATA_LOSS")")) << err.str();
}

TEST(Output, ReaderThatLeftGetsNoMessage) {
  Refusing pipe(EPIPE);
  std::ostream out(&pipe);
  std::ostringstream err;
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"completion", "bash"}, out, err), 1);
  EXPECT_EQ(err.str(), "");
}

TEST(Output, StaysLostWhenALaterWriteSucceeds) {
  Refusing full(ENOSPC);
  std::ostream out(&full);
  std::ostringstream err;
  Output output(out, err, false);
  output.Text("lost");
  std::ostringstream kept;
  out.rdbuf(kept.rdbuf());
  output.Text("kept");
  EXPECT_EQ(kept.str(), "kept");
  EXPECT_EQ(output.written().code(), absl::StatusCode::kDataLoss);
}

TEST(Output, RunReportsMistakesInTheFormatAskedFor) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"nonsense"}, out, err), 2);
  EXPECT_EQ(err.str(), "rnicctl: unknown command 'nonsense'\n");
  err.str("");
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"nonsense", "--json"}, out, err), 2);
  EXPECT_EQ(err.str(), "{\"error\":{\"code\":\"USAGE\",\"message\":\"unknown command 'nonsense'\"}}\n");
  EXPECT_EQ(out.str(), "");
}

TEST(Output, FailureOfThisProgramsOwnHasNoReasonOfTheDaemons) {
  const absl::Status late = absl::DeadlineExceededError("too late");
  EXPECT_EQ(ErrorLine(late), "rnicctl: too late (DEADLINE_EXCEEDED)");
  EXPECT_FALSE(ErrorJson(late)["error"].contains("reason"));
}

TEST(Output, AbsentDaemonIsAFailureOfEveryCommandThatNeedsIt) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"adapters"},
                                             {"status"},
                                             {"sessions"},
                                             {"regions"},
                                             {"alloc", "--size", "4096"},
                                             {"register", "--size", "4096", "--hold", "forever"}}) {
    std::vector<std::string> with_directory = arguments;
    with_directory.insert(with_directory.end(), {"--socket-dir", DefaultSocketDir() + "-of-nobody"});
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunRnicctl(with_directory, out, err), 1) << arguments[0];
    EXPECT_EQ(out.str(), "") << arguments[0];
    EXPECT_NE(err.str().find("(UNAVAILABLE)"), std::string::npos) << err.str();
  }
}

}  // namespace
}  // namespace rnicd::ctl
