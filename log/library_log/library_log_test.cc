#include "log/library_log/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/manual_clock_fake.h"

namespace rnicd::library_log {
namespace {

class LibraryLogTest : public testing::Test {
 protected:
  LibraryLogTest() { testing::internal::CaptureStderr(); }

  // Lines on stderr since the last call; each must be a JSON object.
  std::vector<nlohmann::json> Lines() {
    EXPECT_TRUE(logger_.FlushUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
    std::istringstream written(testing::internal::GetCapturedStderr());
    testing::internal::CaptureStderr();
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(written, line);) {
      lines.push_back(nlohmann::json::parse(line, nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
  }
  ~LibraryLogTest() override { testing::internal::GetCapturedStderr(); }

  ManualClock clock_;
  log::Logger logger_{{.json = true}};
  std::optional<LibraryLog> library_log_{std::in_place, logger_, clock_};
};

// Parses what a client would send: a string field with a byte that is not UTF-8.
bool ParseInvalidText() {
  google::protobuf::StringValue message;
  return message.ParseFromString("\x0a\x01\xff");
}

TEST_F(LibraryLogTest, AMessageThatProtobufRefusesIsALineOfTheLogger) {
  EXPECT_FALSE(ParseInvalidText());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["level"], "warning");
  EXPECT_EQ(lines[0]["message"], "library message");
  EXPECT_EQ(lines[0]["library"], "protobuf");
  EXPECT_NE(lines[0]["text"].get<std::string>().find("invalid UTF-8"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0]["dropped"], 0);
}

TEST_F(LibraryLogTest, ALineOfAnotherLibraryHasItsNameAndSource) {
  WriteLibraryLine(
      {.library = Library::kGrpc, .file = "/some/where/chttp2.cc", .line = 7, .text = "no more descriptors\n{"});
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["library"], "grpc");
  EXPECT_EQ(lines[0]["source"], "chttp2.cc:7");
  EXPECT_EQ(lines[0]["text"], "no more descriptors\n{");
}

TEST_F(LibraryLogTest, AFloodIsBoundedAndCounted) {
  for (int message = 0; message < 1000; ++message) {
    ParseInvalidText();
  }
  EXPECT_EQ(Lines().size(), 10u);
  clock_.Advance(std::chrono::seconds(10));
  ParseInvalidText();
  ParseInvalidText();
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["dropped"], 990);
}

TEST_F(LibraryLogTest, AFloodOfOneLibraryDoesNotSilenceTheOther) {
  for (int message = 0; message < 100; ++message) {
    ParseInvalidText();
  }
  Lines();
  WriteLibraryLine({.library = Library::kGrpc, .file = "a.cc", .line = 1, .text = "here"});
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(LibraryLogTest, TheLastLineOfAProcessIsWrittenAfterAFlood) {
  for (int message = 0; message < 100; ++message) {
    ParseInvalidText();
  }
  Lines();
  library_log_->Write({.file = "a.cc", .line = 3, .text = "CHECK failed", .is_last = true});
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["level"], "error");
}

TEST_F(LibraryLogTest, LongTextIsCut) {
  const std::string text(100'000, 'x');
  library_log_->Write({.file = "a.cc", .text = text});
  EXPECT_EQ(Lines().at(0)["text"].get<std::string>().size(), 1024u);
}

TEST_F(LibraryLogTest, NothingIsWrittenAfterItsEnd) {
  library_log_.reset();
  ParseInvalidText();
  EXPECT_EQ(Lines().size(), 0u);
}

}  // namespace
}  // namespace rnicd::library_log
