#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::core {

// Work requests as their owner posts them, unchecked. Views live as long as the call. Meanings: work_request.proto.

struct Sge {
  uint64_t address = 0;
  uint32_t length = 0;
  LocalToken token;
  std::string_view inline_data;
};
using Sges = std::vector<Sge>;

struct SendOperation {
  Sges sges;
};
struct SendAndInvalidateOperation {
  Sges sges;
  RemoteToken token;
};
struct ReceiveOperation {
  Sges sges;
};
struct ReadOperation {
  Sges sges;
  VirtualAddress remote_address;
  RemoteToken remote_token;
};
struct WriteOperation {
  Sges sges;
  VirtualAddress remote_address;
  RemoteToken remote_token;
};
struct FastRegisterOperation {
  MemoryRegionId region;
  std::span<const uint64_t> pages;
  uint32_t fbo = 0;
  uint64_t length = 0;
  VirtualAddress base;
};
struct InvalidateOperation {
  // Object to invalidate; empty when the request named neither.
  std::variant<std::monostate, MemoryRegionId, MemoryWindowId> target;
};
struct BindOperation {
  MemoryRegionId region;
  MemoryWindowId window;
  VirtualAddress address;
  uint64_t length = 0;
};

struct WorkRequest {
  uint64_t request_context = 0;
  // NDK_OP_FLAG_ bits.
  uint32_t flags = 0;
  std::variant<std::monostate, SendOperation, SendAndInvalidateOperation, ReceiveOperation, ReadOperation,
               WriteOperation, FastRegisterOperation, InvalidateOperation, BindOperation>
      operation;
};

}  // namespace rnicd::core
