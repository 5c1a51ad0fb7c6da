#include "client/cpp/work_chain.h"

#include <utility>

#include "client/cpp/fast_region.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/memory_window.h"

namespace rnicd::inline client {

WorkChain& WorkChain::Send(std::vector<Sge> sges, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Send{.sges = std::move(sges)}});
}

WorkChain& WorkChain::SendInline(std::span<const std::byte> bytes, const RequestOptions& options) {
  return AddInline({.options = options, .operation = WorkRequest::Send{}}, bytes);
}

WorkChain& WorkChain::SendAndInvalidate(std::vector<Sge> sges, RemoteToken token, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Send{.sges = std::move(sges), .invalidate = token}});
}

WorkChain& WorkChain::SendInlineAndInvalidate(std::span<const std::byte> bytes, RemoteToken token,
                                              const RequestOptions& options) {
  return AddInline({.options = options, .operation = WorkRequest::Send{.invalidate = token}}, bytes);
}

WorkChain& WorkChain::Receive(std::vector<Sge> sges, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Receive{.sges = std::move(sges)}});
}

WorkChain& WorkChain::Read(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Read{.sges = std::move(sges), .remote = remote}});
}

WorkChain& WorkChain::Write(std::vector<Sge> sges, const RemoteMemory& remote, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Write{.sges = std::move(sges), .remote = remote}});
}

WorkChain& WorkChain::WriteInline(std::span<const std::byte> bytes, const RemoteMemory& remote,
                                  const RequestOptions& options) {
  return AddInline({.options = options, .operation = WorkRequest::Write{.remote = remote}}, bytes);
}

WorkChain& WorkChain::FastRegister(const FastRegion& region, FastRegistration registration,
                                   const RequestOptions& options) {
  return Add({.options = options,
              .operation = WorkRequest::FastRegister{.region = region.id(), .registration = std::move(registration)}});
}

WorkChain& WorkChain::Invalidate(const FastRegion& region, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Invalidate{.target = region.id()}});
}

WorkChain& WorkChain::Invalidate(const MemoryWindow& window, const RequestOptions& options) {
  return Add({.options = options, .operation = WorkRequest::Invalidate{.target = window.id()}});
}

WorkChain& WorkChain::Bind(const MemoryRegion& region, const MemoryWindow& window, VirtualAddress address,
                           uint64_t length, const RequestOptions& options) {
  return Add({.options = options,
              .operation = WorkRequest::Bind{
                  .region = region.id(), .window = window.id(), .address = address, .length = length}});
}

WorkChain& WorkChain::Add(WorkRequest request) {
  requests_.push_back(std::move(request));
  return *this;
}

WorkChain& WorkChain::AddInline(WorkRequest request, std::span<const std::byte> bytes) {
  request.options.flags |= kOpFlagInline;
  request.inline_data.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Add(std::move(request));
}

}  // namespace rnicd::inline client
