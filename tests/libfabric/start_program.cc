#include "tests/libfabric/start_program.h"

#include <cstdlib>
#include <utility>

#include <gtest/gtest.h>

namespace rnicd::fi {

std::unique_ptr<test::ChildProcess> StartProgram(std::vector<std::string> words, std::vector<std::string> wrapper) {
  const char* const path = std::getenv("RNICD_LIBFABRIC_PROCESS");
  EXPECT_NE(path, nullptr) << "RNICD_LIBFABRIC_PROCESS names the program";
  words.insert(words.begin(), path != nullptr ? path : "");
  absl::StatusOr<std::unique_ptr<test::ChildProcess>> started =
      test::ChildProcess::Start({.command = std::move(words), .wrapper = std::move(wrapper)});
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

std::vector<std::string> OnThePreloadedHeap() {
  const char* const path = std::getenv("RNICD_LIBFABRIC_HEAP");
  EXPECT_NE(path, nullptr) << "RNICD_LIBFABRIC_HEAP names librnicd-heap.so";
  return {"env", std::string("LD_PRELOAD=") + (path != nullptr ? path : "")};
}

}  // namespace rnicd::fi
