#include "provider/networkdirect/memory/nd_registration.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "provider/engine/byte_runs.h"
#include "provider/networkdirect/card/nd_status.h"

namespace rnicd::provider {

ULONG NdAccessFlags(const AccessRights& rights) {
  return (rights.local_write ? kNdMrLocalWrite : 0) | (rights.remote_read ? kNdMrRemoteRead : 0) |
         (rights.remote_write ? kNdMrRemoteWrite : 0) | (rights.read_sink ? kNdMrReadSink : 0);
}

absl::StatusOr<std::unique_ptr<NdRegistration>> NdRegistration::Make(std::shared_ptr<NdDomain> domain,
                                                                     std::span<const std::span<std::byte>> runs,
                                                                     ULONG flags) {
  NdDevice& device = domain->device();
  if (device.removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED);
  }
  const std::vector<std::span<std::byte>> merged = JoinRuns(runs);
  if (merged.size() > domain->node().options.max_pieces) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_NOT_CAPABLE, "too many pieces of memory");
  }
  std::unique_ptr<NdRegistration> registration(new NdRegistration(std::move(domain)));
  for (const std::span<std::byte> bytes : merged) {
    RNICD_RETURN_IF_ERROR(registration->Add(bytes, flags));
  }
  return registration;
}

absl::Status NdRegistration::Add(std::span<std::byte> bytes, ULONG flags) {
  NdDevice& device = domain_->device();
  NdOpening& opening = *domain_->opening();
  RNICD_RETURN_IF_ERROR(device.AddRegions(1));
  ComPtr<IND2MemoryRegion> region;
  HRESULT result =
      device.Observe(opening.adapter().CreateMemoryRegion(kIidNd2MemoryRegion, opening.registrations(), region.out()));
  if (NdFailed(result)) {
    device.RemoveRegions(1);
    return NdStatus(result, "IND2Adapter::CreateMemoryRegion");
  }
  result = device.Observe(domain_->node().registrations.Await(
      *region, [&](OVERLAPPED* call) { return region->Register(bytes.data(), bytes.size(), flags, call); }));
  if (NdFailed(result)) {
    device.RemoveRegions(1);
    return NdRegistrationStatus(result, "IND2MemoryRegion::Register");
  }
  pieces_.push_back({.region = region,
                     .bytes = bytes,
                     .local_token = region->GetLocalToken(),
                     .remote_token = region->GetRemoteToken()});
  return absl::OkStatus();
}

NdRegistration::~NdRegistration() {
  End().IgnoreError();
  for (Piece& piece : pieces_) {
    domain_->Orphan(std::move(piece.region));
  }
}

std::shared_ptr<const CardRange> NdRegistration::RangeAt(VirtualAddress base, const AccessRights& rights) const {
  CardRange range{.base = base, .rights = rights};
  for (const Piece& piece : pieces_) {
    range.length += piece.bytes.size();
    range.segments.push_back({.address = reinterpret_cast<uint64_t>(piece.bytes.data()),
                              .length = piece.bytes.size(),
                              .local_token = piece.local_token,
                              .remote_token = piece.remote_token});
  }
  return std::make_shared<const CardRange>(std::move(range));
}

IND2MemoryRegion* NdRegistration::RegionOf(std::span<const std::byte> bytes) const {
  const auto has_all = [bytes](const Piece& piece) {
    return bytes.data() >= piece.bytes.data() && bytes.data() + bytes.size() <= piece.bytes.data() + piece.bytes.size();
  };
  const auto found = std::ranges::find_if(pieces_, has_all);
  return found != pieces_.end() ? found->region.get() : nullptr;
}

absl::Status NdRegistration::EndPiece(Piece& piece) {
  const HRESULT result = domain_->device().Observe(domain_->node().registrations.Await(
      *piece.region, [&](OVERLAPPED* call) { return piece.region->Deregister(call); }));
  if (NdFailed(result) && !domain_->device().removed()) {
    return NdRegistrationStatus(result, "IND2MemoryRegion::Deregister");
  }
  domain_->device().RemoveRegions(1);
  return absl::OkStatus();
}

absl::Status NdRegistration::End() {
  while (!pieces_.empty()) {
    RNICD_RETURN_IF_ERROR(EndPiece(pieces_.back()));
    pieces_.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace rnicd::provider
