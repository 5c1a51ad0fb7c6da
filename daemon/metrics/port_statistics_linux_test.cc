#include "daemon/metrics/port_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rnicd::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A port's folder as the kernel lays it out.
class PortStatisticsTest : public ::testing::Test {
 protected:
  PortStatisticsTest() : folder_(std::filesystem::temp_directory_path() / ("rnicd_port." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_ / "counters");
    std::filesystem::create_directories(folder_ / "hw_counters");
  }
  ~PortStatisticsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  PortStatistics Read() const { return ReadPortStatistics(folder_.string()); }

  const std::filesystem::path folder_;
};

TEST_F(PortStatisticsTest, CountsOfBothFoldersAreRead) {
  Write("state", "4: ACTIVE\n");
  Write("counters/port_rcv_data", "18446744073709551615\n");
  Write("hw_counters/duplicate_request", "3\n");
  const PortStatistics read = Read();
  EXPECT_EQ(read.state, "active");
  EXPECT_THAT(read.counts, ElementsAre(Pair("duplicate_request", 3u), Pair("port_rcv_data", 18446744073709551615u)));
}

TEST_F(PortStatisticsTest, WhatIsNoCountIsLeftOut) {
  Write("counters/port_xmit_data", "N/A (no PMA)\n");
  Write("counters/empty", "");
  Write("counters/negative", "-1\n");
  Write("hw_counters/lifespan", "10\n");
  EXPECT_THAT(Read().counts, IsEmpty());
}

TEST_F(PortStatisticsTest, ANameInBothFoldersIsReportedOnce) {
  Write("counters/errors", "1\n");
  Write("hw_counters/errors", "2\n");
  EXPECT_THAT(Read().counts, ElementsAre(Pair("errors", 1u)));
}

TEST_F(PortStatisticsTest, AStateThatNobodyKnowsIsUnknown) {
  Write("state", "9: DREAMING\n");
  EXPECT_EQ(Read().state, "unknown");
  EXPECT_EQ(ReadPortStatistics("/nowhere").state, "unknown");
  EXPECT_THAT(ReadPortStatistics("/nowhere").counts, IsEmpty());
}

}  // namespace
}  // namespace rnicd::metrics
