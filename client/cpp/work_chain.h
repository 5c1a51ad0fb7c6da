#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ndk/op_flags.h"
#include "base/ndk/sge.h"
#include "base/ndk/work_request.h"
#include "base/units.h"

namespace rnicd::inline client {

class FastRegion;
class MemoryRegion;
class MemoryWindow;

// Options of every request, besides its own parameters.
struct RequestOptions {
  // kOpFlag values of base/ndk/op_flags.h combined by OR; OpFlag in work_request.proto lists the operations that accept
  // each. kOpFlagInline is not allowed: the inline forms set it.
  uint32_t flags = 0;
  // Returned with the completion; any value.
  uint64_t context = 0;
};

// The mapping that one FastRegister request sets up in a region: address A of it is byte (A - base_address + fbo) of
// the pages laid end to end. Made by LogicalMapping::AsRegistration, or by hand.
struct FastRegistration {
  // Page addresses from LogicalMapping, in any order, repeats allowed; 1 up to FastRegionOptions::max_pages.
  std::vector<LogicalAddress> pages;
  // Offset in the first page at which the region begins, in bytes; 0 to 4095.
  uint32_t fbo = 0;
  // Length in bytes; at least 1, at most all pages less fbo.
  uint64_t length = 0;
  // Address of the first byte, as used by peers and SGEs: fbo plus a whole number of pages.
  VirtualAddress base_address;
};

// Work requests in the order in which they are posted. Each method adds one and returns the chain:
//
//     queue_pair.Post(WorkChain().FastRegister(region, mapping.AsRegistration(), {.flags = kOpFlagRemoteWrite})
//                                .SendInline(message, {.context = 7}));
//
// Lifetime: a value. Objects are named by their ids: they must live until the request is complete, and so must the
//           memory behind SGEs. Inline bytes and pages are copied here; the views in requests() are valid as long as
//           the chain or a copy of it.
// Errors:   none here; QueuePair::Post validates the requests.
// Source:   NDK_FN_SEND, _SEND_AND_INVALIDATE, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND.
class WorkChain {
 public:
  // Without SGEs the transfer has no bytes.
  WorkChain& Send(std::vector<Sge> sges, const RequestOptions& options);
  WorkChain& SendInline(std::span<const std::byte> bytes, const RequestOptions& options);
  // The receiver invalidates its token before its receive completes.
  WorkChain& SendAndInvalidate(std::vector<Sge> sges, RemoteToken token, const RequestOptions& options);
  WorkChain& SendInlineAndInvalidate(std::span<const std::byte> bytes, RemoteToken token,
                                     const RequestOptions& options);
  // Takes no flags.
  WorkChain& Receive(std::vector<Sge> sges, const RequestOptions& options);
  // Copies the peer's memory into the SGEs.
  WorkChain& Read(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options);
  // Copies the SGEs into the peer's memory.
  WorkChain& Write(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options);
  WorkChain& WriteInline(std::span<const std::byte> bytes, const RemoteMemory& remote, const RequestOptions& options);
  // The new remote token is in the PostOutcome; it is valid once the request is executed.
  WorkChain& FastRegister(const FastRegion& region, const FastRegistration& registration,
                          const RequestOptions& options);
  // Ends a fast registration. A MemoryRegion is deregistered instead.
  WorkChain& Invalidate(const FastRegion& region, const RequestOptions& options);
  // Ends a window's binding.
  WorkChain& Invalidate(const MemoryWindow& window, const RequestOptions& options);
  // Opens the window on `length` bytes of the region, starting at `address`. The new remote token is in the
  // PostOutcome; it works through this queue pair only.
  WorkChain& Bind(const MemoryRegion& region, const MemoryWindow& window, VirtualAddress address, uint64_t length,
                  const RequestOptions& options);

  const std::vector<WorkRequest>& requests() const { return requests_; }
  bool empty() const { return requests_.empty(); }
  size_t size() const { return requests_.size(); }

 private:
  WorkChain& Add(WorkRequest::Operation operation, const RequestOptions& options);
  // SGEs for the bytes, which are copied; none without bytes.
  Sges KeepInline(std::span<const std::byte> bytes);
  std::span<const uint64_t> Keep(const std::vector<LogicalAddress>& pages);

  std::vector<WorkRequest> requests_;
  // What the views in requests_ refer to. Shared and never changed, so that copies of the chain have the same views.
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace rnicd::inline client
