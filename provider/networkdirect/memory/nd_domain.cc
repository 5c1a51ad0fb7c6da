#include "provider/networkdirect/memory/nd_domain.h"

#include <utility>

#include "base/status.h"
#include "provider/networkdirect/card/nd_status.h"

namespace rnicd::provider {

absl::StatusOr<std::shared_ptr<NdOpening>> NdOpening::Open(NdNode& node, const NdDevice& device) {
  if (device.removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED);
  }
  std::shared_ptr<NdOpening> opening(new NdOpening());
  const HRESULT result = device.provider().OpenAdapter(kIidNd2Adapter, device.id(), opening->adapter_.out());
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Provider::OpenAdapter");
  }
  RNICD_RETURN_IF_ERROR(opening->OpenFile(node.events, opening->events_));
  RNICD_RETURN_IF_ERROR(opening->OpenFile(node.registrations, opening->registrations_));
  return opening;
}

absl::Status NdOpening::OpenFile(CompletionLoop& loop, HANDLE& file) {
  if (const HRESULT result = adapter_->CreateOverlappedFile(&file); NdFailed(result)) {
    file = nullptr;
    return NdStatus(result, "IND2Adapter::CreateOverlappedFile");
  }
  return loop.Associate(file) ? absl::OkStatus()
                              : MakeErrorWithDetail(ErrorReason::DEVICE_FAILED, "CreateIoCompletionPort");
}

NdOpening::~NdOpening() {
  for (const HANDLE file : {events_, registrations_}) {
    if (file != nullptr) {
      CompletionPort::CloseFile(file);
    }
  }
}

absl::StatusOr<std::shared_ptr<NdDomain>> NdDomain::Create(std::shared_ptr<NdNode> node,
                                                           std::shared_ptr<NdDevice> device,
                                                           std::shared_ptr<NdMappings> mappings) {
  absl::StatusOr<std::shared_ptr<NdOpening>> opening = NdOpening::Open(*node, *device);
  RNICD_RETURN_IF_ERROR(opening.status());
  return std::shared_ptr<NdDomain>(
      new NdDomain(std::move(node), std::move(device), std::move(mappings), *std::move(opening)));
}

NdDomain::~NdDomain() {
  MutexLock lock(mutex_);
  if (listener_ != nullptr) {
    listener_->Close();
  }
  for (const ComPtr<IND2MemoryRegion>& region : orphans_) {
    const HRESULT result =
        node_->registrations.Await(*region, [&](OVERLAPPED* call) { return region->Deregister(call); });
    if (!NdFailed(result)) {
      device_->RemoveRegions(1);
    }
  }
}

bool NdDomain::InvalidateRemote(uint32_t token, std::optional<uint64_t> arrived_at) {
  const std::shared_ptr<Invalidatable> owner = remote_tokens_.Find(token).owner.lock();
  return owner != nullptr && owner->InvalidateToken(token, arrived_at);
}

absl::StatusOr<std::shared_ptr<NdListener>> NdDomain::Listener() {
  MutexLock lock(mutex_);
  if (listener_ == nullptr || listener_->broken()) {
    RNICD_ASSIGN_OR_RETURN(listener_, NdListener::Open(node_->events, opening_, device_->address()));
  }
  return listener_;
}

void NdDomain::Orphan(ComPtr<IND2MemoryRegion> region) {
  MutexLock lock(mutex_);
  orphans_.push_back(std::move(region));
}

}  // namespace rnicd::provider
