#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {
namespace {

// More than any test registers, and little enough to be exceeded.
constexpr uint64_t kMaxRegistrationBytes = uint64_t{1} << 30;

UINT32 Swapped(UINT32 token) { return __builtin_bswap32(token); }

}  // namespace

// --- regions ---

MemoryRegion::MemoryRegion(std::shared_ptr<Model> model, DomainPointer region_domain, HANDLE file)
    : OverlappedObject(std::move(model), file, region_domain->card), domain(std::move(region_domain)) {}

// Pages of a region that is released while it is registered stay locked in a real card.
MemoryRegion::~MemoryRegion() {
  if (registered) {
    model().Violate("a memory region was released while it was registered");
    End();
  }
  for (QueuePair* const pair : model().pairs) {
    for (Request& request : pair->initiators) {
      request.region = request.region == this ? nullptr : request.region;
    }
  }
}

HRESULT MemoryRegion::TryRegister(const void* buffer, SIZE_T bytes, ULONG flags) {
  if (const HRESULT result = model().Check("IND2MemoryRegion::Register", domain->card); NdFailed(result)) {
    return result;
  }
  if (registered) {
    return kNdInvalidDeviceRequest;
  }
  if (buffer == nullptr || bytes > kMaxRegistrationBytes) {
    return kNdInvalidParameter;
  }
  if (bytes == 0) {
    return kNdInvalidBufferSize;
  }
  registered = true;
  base = reinterpret_cast<uint64_t>(buffer);
  length = bytes;
  rights = flags;
  local_token = model().NextToken();
  remote_token = Swapped(model().NextToken());
  model().local_tokens[local_token] = this;
  model().remote_tokens[remote_token] = this;
  ++model().regions;
  return kNdSuccess;
}

void MemoryRegion::End() {
  registered = false;
  model().local_tokens.erase(local_token);
  model().remote_tokens.erase(remote_token);
  --model().regions;
}

HRESULT MemoryRegion::TryDeregister() {
  if (model().removed.contains(domain->card)) {
    if (registered) {
      End();
    }
    return kNdDeviceRemoved;
  }
  if (const HRESULT result = model().Check("IND2MemoryRegion::Deregister", domain->card); NdFailed(result)) {
    return result;
  }
  if (!registered) {
    return kNdInvalidDeviceRequest;
  }
  if (windows > 0) {
    return kNdDeviceBusy;
  }
  End();
  return kNdSuccess;
}

HRESULT MemoryRegion::Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  return calls.Finish(call, TryRegister(buffer, bytes, flags));
}

HRESULT MemoryRegion::Deregister(OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  return calls.Finish(call, TryDeregister());
}

// --- windows ---

MemoryWindow::MemoryWindow(std::shared_ptr<Model> model, DomainPointer window_domain)
    : Object(std::move(model)), domain(std::move(window_domain)) {}

MemoryWindow::~MemoryWindow() {
  Unbind();
  for (QueuePair* const each : model().pairs) {
    for (Request& request : each->initiators) {
      request.window = request.window == this ? nullptr : request.window;
    }
  }
}

void MemoryWindow::Unbind() {
  if (region != nullptr) {
    model().window_tokens.erase(token);
    --region->windows;
    --model().bound;
    region = nullptr;
    pair = nullptr;
  }
}

}  // namespace rnicd::provider::model
