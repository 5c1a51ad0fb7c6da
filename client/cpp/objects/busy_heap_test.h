#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace rnicd::inline client {

// Two threads that use the heap for as long as it lives, and expect their bytes to be as they left them.
class BusyHeap {
 public:
  BusyHeap() {
    for (std::jthread& thread : threads_) {
      thread = std::jthread([](const std::stop_token& stop) {
        for (size_t round = 0; !stop.stop_requested(); ++round) {
          Use(1 + round * 4099 % 300'000);
        }
      });
    }
  }

 private:
  static void Use(size_t size) {
    std::vector<unsigned char> block(size, static_cast<unsigned char>(size));
    std::vector<unsigned char> copy = block;
    copy.resize(2 * size, 1);
    EXPECT_EQ(std::memcmp(block.data(), copy.data(), size), 0);
    // Others need a processor, too.
    std::this_thread::yield();
  }

  std::array<std::jthread, 2> threads_;
};

}  // namespace rnicd::inline client
