#include "client/cpp/work_chain.h"

#include <utility>

#include "client/cpp/fast_region.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/memory_window.h"

namespace rnicd::inline client {
namespace {

RequestOptions Inline(RequestOptions options) {
  options.flags |= kOpFlagInline;
  return options;
}

}  // namespace

WorkChain& WorkChain::Send(std::vector<Sge> sges, const RequestOptions& options) {
  return Add(WorkRequest::Send{.sges = std::move(sges)}, options);
}

WorkChain& WorkChain::SendInline(std::span<const std::byte> bytes, const RequestOptions& options) {
  return Add(WorkRequest::Send{.sges = KeepInline(bytes)}, Inline(options));
}

WorkChain& WorkChain::SendAndInvalidate(std::vector<Sge> sges, RemoteToken token, const RequestOptions& options) {
  return Add(WorkRequest::SendAndInvalidate{.sges = std::move(sges), .token = token}, options);
}

WorkChain& WorkChain::SendInlineAndInvalidate(std::span<const std::byte> bytes, RemoteToken token,
                                              const RequestOptions& options) {
  return Add(WorkRequest::SendAndInvalidate{.sges = KeepInline(bytes), .token = token}, Inline(options));
}

WorkChain& WorkChain::Receive(std::vector<Sge> sges, const RequestOptions& options) {
  return Add(WorkRequest::Receive{.sges = std::move(sges)}, options);
}

WorkChain& WorkChain::Read(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options) {
  return Add(WorkRequest::Read{.sges = std::move(sges), .remote = remote}, options);
}

WorkChain& WorkChain::Write(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options) {
  return Add(WorkRequest::Write{.sges = std::move(sges), .remote = remote}, options);
}

WorkChain& WorkChain::WriteInline(std::span<const std::byte> bytes, const RemoteMemory& remote,
                                  const RequestOptions& options) {
  return Add(WorkRequest::Write{.sges = KeepInline(bytes), .remote = remote}, Inline(options));
}

WorkChain& WorkChain::FastRegister(const FastRegion& region, const FastRegistration& registration,
                                   const RequestOptions& options) {
  return Add(WorkRequest::FastRegister{.region = region.id(),
                                       .pages = Keep(registration.pages),
                                       .fbo = registration.fbo,
                                       .length = registration.length,
                                       .base_address = registration.base_address},
             options);
}

WorkChain& WorkChain::Invalidate(const FastRegion& region, const RequestOptions& options) {
  return Add(WorkRequest::Invalidate{.target = region.id()}, options);
}

WorkChain& WorkChain::Invalidate(const MemoryWindow& window, const RequestOptions& options) {
  return Add(WorkRequest::Invalidate{.target = window.id()}, options);
}

WorkChain& WorkChain::Bind(const MemoryRegion& region, const MemoryWindow& window, VirtualAddress address,
                           uint64_t length, const RequestOptions& options) {
  return Add(WorkRequest::Bind{.region = region.id(), .window = window.id(), .address = address, .length = length},
             options);
}

WorkChain& WorkChain::Add(WorkRequest::Operation operation, const RequestOptions& options) {
  requests_.push_back({.request_context = options.context, .flags = options.flags, .operation = std::move(operation)});
  return *this;
}

Sges WorkChain::KeepInline(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return {};
  }
  const auto kept = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  kept_.push_back(kept);
  return {Sge::Inline(*kept)};
}

std::span<const uint64_t> WorkChain::Keep(const std::vector<LogicalAddress>& pages) {
  const auto kept = std::make_shared<std::vector<uint64_t>>();
  kept->reserve(pages.size());
  for (const LogicalAddress page : pages) {
    kept->push_back(page.value);
  }
  kept_.push_back(kept);
  return *kept;
}

}  // namespace rnicd::inline client
