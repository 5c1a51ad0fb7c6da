#pragma once

// Include only in files for Windows.
#include <windows.h>

#include <cstdint>
#include <functional>

namespace rnicd::pipes {

// An operation that a Loop is told of.
// Lifetime: from its begin until `on_done`, which may destroy it.
struct Operation : OVERLAPPED {
  Operation() : OVERLAPPED{} {}
  // `error` is one of Windows, 0 for success.
  std::function<void(uint32_t bytes, uint32_t error)> on_done;
};

}  // namespace rnicd::pipes
