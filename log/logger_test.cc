#include "log/logger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace rnicd::log {
namespace {

TEST(FormatText, PlainWordsAndNumbersStandAsTheyAre) {
  EXPECT_EQ(FormatText("session opened", {{"uid", 65534}, {"cause", "closed"}, {"bytes", UINT64_MAX}, {"pid", -1}}),
            "session opened uid=65534 cause=closed bytes=18446744073709551615 pid=-1");
  EXPECT_EQ(FormatText("ready", {}), "ready");
}

TEST(FormatText, TextThatCouldBeTakenForSomethingElseIsQuoted) {
  EXPECT_EQ(FormatText("m", {{"label", "a b"}}), R"(m label="a b")");
  EXPECT_EQ(FormatText("m", {{"label", ""}}), R"(m label="")");
  EXPECT_EQ(FormatText("m", {{"label", "a=b"}}), R"(m label="a=b")");
  EXPECT_EQ(FormatText("m", {{"label", "say \"x\""}}), R"(m label="say \"x\"")");
  EXPECT_EQ(FormatText("m", {{"label", "a\\b"}}), R"(m label="a\\b")");
}

TEST(FormatText, NoByteOfAFieldBreaksTheLine) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string line = FormatText("m", {{"label", std::string("x") + static_cast<char>(byte) + "level=error"}});
    for (const char c : line) {
      EXPECT_TRUE(c >= ' ' && c <= '~') << "byte " << byte << " gave " << line;
    }
  }
}

TEST(FormatJson, AnyBytesGiveOneValidObject) {
  std::string hostile;
  for (int byte = 0; byte < 256; ++byte) {
    hostile += static_cast<char>(byte);
  }
  const std::string line = "{" + FormatJson("call refused", {{"field", hostile}, {"uid", 0u}, {"code", -5}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << line;
  EXPECT_EQ(parsed["message"], "call refused");
  EXPECT_EQ(parsed["uid"], 0);
  EXPECT_EQ(parsed["code"], -5);
  EXPECT_TRUE(parsed["field"].is_string());
}

TEST(FormatJson, NumbersKeepEveryBit) {
  const auto parsed = nlohmann::json::parse("{" + FormatJson("m", {{"id", UINT64_MAX}, {"low", INT64_MIN}}));
  EXPECT_EQ(parsed["id"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(parsed["low"].get<int64_t>(), INT64_MIN);
}

TEST(LevelFromName, KnowsFourWordsAndNoOther) {
  EXPECT_EQ(LevelFromName("debug"), Level::kDebug);
  EXPECT_EQ(LevelFromName("info"), Level::kInfo);
  EXPECT_EQ(LevelFromName("warning"), Level::kWarning);
  EXPECT_EQ(LevelFromName("error"), Level::kError);
  for (const char* const word : {"", "INFO", "warn", "trace", "error "}) {
    EXPECT_EQ(LevelFromName(word), std::nullopt) << word;
  }
}

TEST(Logger, WritesLinesOfItsLevelAndAboveToStderr) {
  testing::internal::CaptureStderr();
  const Logger logger({.level = Level::kWarning});
  logger.Debug("one");
  logger.Info("two");
  logger.Warning("three", {{"uid", 1}});
  logger.Error("four {} %v");
  EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("one"), std::string::npos);
  EXPECT_EQ(written.find("two"), std::string::npos);
  EXPECT_NE(written.find("Z warning three uid=1\n"), std::string::npos) << written;
  EXPECT_NE(written.find("Z error four {} %v\n"), std::string::npos) << "a message is no format: " << written;
}

TEST(Logger, InJsonEachLineIsAnObjectWithTimeAndLevel) {
  testing::internal::CaptureStderr();
  const Logger logger({.level = Level::kDebug, .json = true});
  logger.Info("ready", {{"path", "a\"b\n%v{}"}});
  EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  const std::string written = testing::internal::GetCapturedStderr();
  const auto parsed = nlohmann::json::parse(written, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << written;
  EXPECT_EQ(parsed["level"], "info");
  EXPECT_EQ(parsed["message"], "ready");
  EXPECT_EQ(parsed["path"], "a\"b\n%v{}");
  EXPECT_EQ(parsed["time"].get<std::string>().size(), std::string("2026-01-02T03:04:05.678Z").size());
}

}  // namespace
}  // namespace rnicd::log
