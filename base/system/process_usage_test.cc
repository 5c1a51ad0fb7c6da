#include "base/system/process_usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "base/files/any_descriptor_fixture.h"
#include "base/files/unique_fd.h"

namespace rnicd {
namespace {

TEST(ProcessUsage, EachOpenDescriptorCounts) {
  const uint64_t before = ReadProcessUsage().open_fds;
  std::vector<UniqueFd> open_fds;
  for (int count = 0; count < 5; ++count) {
    open_fds.push_back(OpenAnyDescriptor());
  }
  EXPECT_EQ(ReadProcessUsage().open_fds, before + 5);
}

TEST(ProcessUsage, TheProcessHasMemoryThreadsAndALimit) {
  const ProcessUsage usage = ReadProcessUsage();
  EXPECT_GE(usage.threads, 1u);
  EXPECT_GT(usage.resident_bytes, 0u);
  EXPECT_GT(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GE(usage.max_fds, usage.open_fds);
}

TEST(ProcessUsage, ProcessorTimeOnlyGrows) {
  const double before = ReadProcessUsage().cpu_seconds;
  double after = before;
  // Ten ticks of the clock that counts processor time.
  for (uint64_t work = 0; after < before + 0.1; ++work) {
    after = work % 1000 == 0 ? ReadProcessUsage().cpu_seconds : after;
  }
  EXPECT_GE(ReadProcessUsage().cpu_seconds, after);
}

TEST(ProcessUsage, TheStartIsATimeOfThisDay) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double now_seconds = std::chrono::duration<double>(now).count();
  const double started = ReadProcessStart();
  EXPECT_LE(started, now_seconds + 1);
  EXPECT_GT(started, now_seconds - 24 * 3600);
}

}  // namespace
}  // namespace rnicd
