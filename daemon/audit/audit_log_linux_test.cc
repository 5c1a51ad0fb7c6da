#include "daemon/audit/audit_log.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files/foreign_file_linux_test.h"
#include "daemon/audit/audit_fixture_linux_test.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::audit {
namespace {

using Json = nlohmann::ordered_json;

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(size_t waiting_max = 16384, uint64_t bytes_per_second = 0) {
    auto log = AuditLog::Open({.path = path_,
                               .waiting_max = waiting_max,
                               .bytes_per_second = bytes_per_second,
                               .stop_timeout = std::chrono::minutes(10)},
                              clock_, logger_);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  static void WriteAndWait(AuditLog& log, const std::string& note) {
    log.Write({.what = "x", .note = note});
    EXPECT_TRUE(log.WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
  }
  core::Decision Refused() const {
    return {.what = "x", .caller = &caller_, .status = MakeError(ErrorReason::OBJECT_NOT_FOUND, "mr_id")};
  }
  // Every line of the file, with a test failure for each that is not an audit line.
  static std::vector<Json> Lines(const std::string& path) {
    const std::string text = ReadAll(path);
    EXPECT_TRUE(text.empty() || text.back() == '\n') << "the last line is not whole";
    std::vector<Json> lines;
    for (const std::string& line : LinesOf(text)) {
      lines.push_back(Json::parse(line, nullptr, /*allow_exceptions=*/false));
      EXPECT_TRUE(lines.back().is_object()) << line;
    }
    return lines;
  }
  static std::vector<std::string> Notes(const std::string& path) {
    std::vector<std::string> notes;
    for (const Json& line : Lines(path)) {
      notes.push_back(line.value("what", "") == "audit.lost" ? "lost " + line["count"].dump() : line.value("note", ""));
    }
    return notes;
  }

  const Folder folder_;
  const std::string path_ = folder_ / "audit.log";
  const core::Caller caller_{.uid = 5};
  ManualClock clock_;
  const log::Logger logger_{{.level = log::Level::kInfo}};
};

TEST_F(AuditLogTest, ALogThatCannotBeOpenedIsAnError) {
  EXPECT_FALSE(AuditLog::Open({.path = folder_ / "none/audit.log"}, clock_, logger_).ok());
}

TEST_F(AuditLogTest, LinesComeInTheirOrder) {
  const auto log = Open();
  for (const char* note : {"1", "2", "3"}) {
    log->Write({.what = "x", .note = note});
  }
  ASSERT_TRUE(log->WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(log->lost(), 0u);
}

TEST_F(AuditLogTest, TheEndWritesWhatStillWaits) {
  constexpr int kLines = 5000;
  {
    const auto log = Open();
    for (int line = 0; line < kLines; ++line) {
      log->Write({.what = "x"});
    }
  }
  EXPECT_EQ(Lines(path_).size(), size_t{kLines});
}

TEST_F(AuditLogTest, ASecondRunContinuesTheFile) {
  WriteAndWait(*Open(), "first");
  WriteAndWait(*Open(), "second");
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{"first", "second"}));
}

TEST_F(AuditLogTest, RotationByRenameLosesNothing) {
  const auto log = Open();
  WriteAndWait(*log, "before");
  std::filesystem::rename(path_, folder_ / "audit.log.1");
  WriteAndWait(*log, "after");
  EXPECT_EQ(Notes(folder_ / "audit.log.1"), (std::vector<std::string>{"before"}));
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{"after"}));
  EXPECT_EQ(log->lost(), 0u);
}

TEST_F(AuditLogTest, ADeletedFileIsMadeAnew) {
  const auto log = Open();
  WriteAndWait(*log, "before");
  std::filesystem::remove(path_);
  WriteAndWait(*log, "after");
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{"after"}));
}

TEST_F(AuditLogTest, AnotherUsersFileInItsPlaceGetsNoLine) {
  testing::internal::CaptureStderr();
  const auto log = Open();
  WriteAndWait(*log, "before");
  WriteOwn(folder_ / "foreign", "");
  const std::string cause = LetAnotherUserWrite(folder_ / "foreign");
  std::filesystem::rename(folder_ / "foreign", path_);
  WriteAndWait(*log, "lost");
  EXPECT_EQ(ReadAll(path_), "");
  EXPECT_EQ(log->lost(), 1u);
  std::filesystem::remove(path_);
  WriteAndWait(*log, "after");
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{"lost 1", "after"}));
  EXPECT_TRUE(logger_.FlushUntil(std::chrono::steady_clock::now() + kTimeout));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the audit log cannot be written"), std::string::npos) << said;
  EXPECT_NE(said.find(cause), std::string::npos) << said;
}

// Eight threads write while the file is renamed: every line is whole, in exactly one file, and in the order of its
// thread.
TEST_F(AuditLogTest, LinesOfManyThreadsAreWholeAcrossRotations) {
  constexpr int kThreads = 8;
  constexpr int kLines = 1000;
  constexpr int kRotations = 20;
  {
    const auto log = Open(size_t{kThreads} * kLines);
    std::vector<std::thread> writers;
    for (int thread = 0; thread < kThreads; ++thread) {
      writers.emplace_back([&log, thread] {
        const core::Caller caller{.pid = thread};
        for (int line = 0; line < kLines; ++line) {
          log->Write({.what = "x", .caller = &caller, .note = std::to_string(line)});
        }
      });
    }
    for (int rotation = 0; rotation < kRotations; ++rotation) {
      std::error_code absent_yet;
      std::filesystem::rename(path_, folder_ / ("audit.log." + std::to_string(rotation)), absent_yet);
      std::this_thread::yield();
    }
    for (std::thread& writer : writers) {
      writer.join();
    }
    ASSERT_TRUE(log->WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
    EXPECT_EQ(log->lost(), 0u);
  }
  std::map<int, int> next;
  for (int rotation = 0; rotation <= kRotations; ++rotation) {
    const std::string file = rotation == kRotations ? path_ : folder_ / ("audit.log." + std::to_string(rotation));
    for (const Json& line : Lines(file)) {
      EXPECT_EQ(line.value("note", ""), std::to_string(next[line.value("pid", -1)]++));
    }
  }
  ASSERT_EQ(next.size(), size_t{kThreads});
  for (const auto& [thread, lines] : next) {
    EXPECT_EQ(lines, kLines) << "thread " << thread;
  }
}

// A queue of one line: most lines are lost, and the number reported is exact.
TEST_F(AuditLogTest, WhatAFullQueueLosesIsCounted) {
  constexpr int kThreads = 4;
  constexpr uint64_t kLines = 5000;
  uint64_t lost = 0;
  {
    const auto log = Open(1);
    std::vector<std::thread> writers;
    for (int thread = 0; thread < kThreads; ++thread) {
      writers.emplace_back([&log] {
        for (uint64_t line = 0; line < kLines; ++line) {
          log->Write({.what = "x"});
        }
      });
    }
    for (std::thread& writer : writers) {
      writer.join();
    }
    ASSERT_TRUE(log->WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
    lost = log->lost();
  }
  uint64_t written = 0;
  uint64_t counted = 0;
  for (const Json& line : Lines(path_)) {
    const bool is_loss = line.value("what", "") == "audit.lost";
    written += is_loss ? 0 : 1;
    counted += is_loss ? line.value("count", uint64_t{0}) : 0;
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(counted, lost);
  EXPECT_EQ(written + lost, kThreads * kLines);
}

TEST_F(AuditLogTest, AFullDiskLosesLinesSaysSoAndRecovers) {
  testing::internal::CaptureStderr();
  const auto log = Open();
  // Longer than the captured output, whose file the full disk bounds as well.
  const std::string before(1000, 'b');
  WriteAndWait(*log, before);
  {
    const FullDisk full(std::filesystem::file_size(path_) + 20);
    WriteAndWait(*log, "lost");
    WriteAndWait(*log, "lost, too");
    EXPECT_EQ(log->lost(), 2u);
  }
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{before}));
  WriteAndWait(*log, "after");
  EXPECT_EQ(Notes(path_), (std::vector<std::string>{before, "lost 2", "after"}));
  WriteAndWait(*log, "and on");
  EXPECT_EQ(Notes(path_).size(), 4u) << "what was reported is not reported again";
  EXPECT_TRUE(logger_.FlushUntil(std::chrono::steady_clock::now() + kTimeout));
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("the audit log cannot be written"), std::string::npos) << output;
  EXPECT_NE(output.find("the audit log is written again lost=2"), std::string::npos) << output;
}

TEST_F(AuditLogTest, WhatWasLostLastIsSaidAtTheEnd) {
  testing::internal::CaptureStderr();
  {
    const auto log = Open();
    WriteAndWait(*log, std::string(1000, 'b'));
    const FullDisk full(std::filesystem::file_size(path_));
    WriteAndWait(*log, "lost");
    EXPECT_EQ(Notes(path_).size(), 1u);
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(Notes(path_).at(1), "lost 1");
}

TEST_F(AuditLogTest, ALineSaysTheTimeOfItsDecision) {
  WallTime now(std::chrono::seconds(1));
  auto log = AuditLog::Open({.path = path_, .now = [&now] { return now; }}, clock_, logger_);
  ASSERT_TRUE(log.ok());
  WriteAndWait(**log, "");
  EXPECT_EQ(Lines(path_).at(0).value("time", ""), "1970-01-01T00:00:01.000Z");
}

TEST_F(AuditLogTest, RepeatedRefusalsAreOneLine) {
  const auto log = Open();
  for (int count = 0; count < 100; ++count) {
    log->Write(Refused());
  }
  ASSERT_TRUE(log->WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(Lines(path_).size(), 1u);
  EXPECT_EQ(log->merged(), 99u);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Eventually([&] { return Lines(path_).size() == 2; }));
  EXPECT_EQ(Lines(path_).at(1).value("times", 0), 99);
}

TEST_F(AuditLogTest, TheEndTellsAllCounts) {
  {
    const auto log = Open();
    for (int count = 0; count < 100; ++count) {
      log->Write(Refused());
    }
  }
  ASSERT_EQ(Lines(path_).size(), 2u);
  EXPECT_EQ(Lines(path_).at(1).value("times", 0), 99);
}

TEST_F(AuditLogTest, AFlushTellsAllCounts) {
  const auto log = Open();
  log->Write(Refused());
  log->Write(Refused());
  EXPECT_TRUE(log->FlushUntil(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(Lines(path_).size(), 2u);
}

TEST_F(AuditLogTest, LinesAboveTheRateOfAnOwnerAreCounted) {
  constexpr uint64_t kLines = 1000;
  uint64_t left_out = 0;
  {
    const auto log = Open(16384, /*bytes_per_second=*/1024);
    for (uint64_t line = 0; line < kLines; ++line) {
      log->Write({.what = "x", .caller = &caller_});
    }
    left_out = log->left_out();
    EXPECT_EQ(log->lost(), 0u);
  }
  const std::vector<Json> lines = Lines(path_);
  EXPECT_GT(left_out, kLines / 2);
  EXPECT_EQ(lines.size() - 1 + left_out, kLines);
  EXPECT_EQ(lines.back().value("what", ""), "audit.left_out");
  EXPECT_EQ(lines.back().value("count", uint64_t{0}), left_out);
  EXPECT_LE(std::filesystem::file_size(path_), 64u * 1024 + 512);
}

// A lost count loses all decisions that it stands for.
TEST_F(AuditLogTest, ALostCountIsCountedInFull) {
  testing::internal::CaptureStderr();
  {
    const auto log = Open();
    WriteAndWait(*log, std::string(1000, 'b'));
    log->Write(Refused());
    ASSERT_TRUE(log->WaitUntilWritten(std::chrono::steady_clock::now() + kTimeout));
    for (int count = 0; count < 9; ++count) {
      log->Write(Refused());
    }
    const FullDisk full(std::filesystem::file_size(path_));
    EXPECT_TRUE(log->FlushUntil(std::chrono::steady_clock::now() + kTimeout));
    EXPECT_EQ(log->lost(), 9u);
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(Notes(path_).back(), "lost 9");
}

}  // namespace
}  // namespace rnicd::audit
