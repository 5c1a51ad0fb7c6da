#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "base/ndk/sge.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd {

// One request for a queue pair, as its owner posts it, unchecked: objects are named by their ids. Views live as long as
// the call. Rules: work_request.proto.
// Source: NDK_FN_SEND, _SEND_AND_INVALIDATE, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND.
struct WorkRequest {
  struct Send {
    Sges sges;
  };
  struct SendAndInvalidate {
    Sges sges;
    // The receiver's remote token, which the receiver invalidates.
    RemoteToken token;
  };
  struct Receive {
    Sges sges;
  };
  struct Read {
    Sges sges;
    RemoteMemory remote;
  };
  struct Write {
    Sges sges;
    RemoteMemory remote;
  };
  // Address A of the region becomes byte (A - base_address + fbo) of the pages laid end to end.
  struct FastRegister {
    MemoryRegionId region;
    // Values of LogicalAddress.
    std::span<const uint64_t> pages;
    // Bytes into the first page at which the region begins.
    uint32_t fbo = 0;
    // Bytes.
    uint64_t length = 0;
    VirtualAddress base_address;
  };
  struct Invalidate {
    // Object to invalidate; empty when the request named neither.
    std::variant<std::monostate, MemoryRegionId, MemoryWindowId> target;
  };
  struct Bind {
    MemoryRegionId region;
    MemoryWindowId window;
    VirtualAddress address;
    // Bytes.
    uint64_t length = 0;
  };
  // Empty when the request named none.
  using Operation =
      std::variant<std::monostate, Send, SendAndInvalidate, Receive, Read, Write, FastRegister, Invalidate, Bind>;

  // Returned with the completion; any value.
  uint64_t request_context = 0;
  // kOpFlag values of base/ndk/op_flags.h combined by OR.
  uint32_t flags = 0;
  Operation operation;
};

}  // namespace rnicd
