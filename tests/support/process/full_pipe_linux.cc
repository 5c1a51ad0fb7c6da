#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/support/process/full_pipe.h"

namespace rnicd::test {

FullPipe::FullPipe() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
  const std::string filling = std::string(static_cast<size_t>(fcntl(ends[1], F_GETPIPE_SZ)) - 1, '.') + "\n";
  EXPECT_EQ(write(ends[1], filling.data(), filling.size()), static_cast<ssize_t>(filling.size()));
}

}  // namespace rnicd::test
