#include "client/cpp/memory_region.h"

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/region_requests.h"
#include "client/cpp/session/connection.h"
#include "wire/memory.h"

namespace rnicd::inline client {

absl::StatusOr<MemoryRegion> MemoryRegion::Register(const Memory& memory, uint32_t flags) {
  return Register(memory, memory.bytes(), flags);
}

absl::StatusOr<MemoryRegion> MemoryRegion::Register(const Memory& memory, std::span<const std::byte> part,
                                                    uint32_t flags) {
  RNICD_ASSIGN_OR_RETURN(const MdlEntry entry, memory.Entry(part));
  RNICD_ASSIGN_OR_RETURN(MemoryRegion region, Create(memory.connection()));
  RNICD_RETURN_IF_ERROR(region.RegisterNow(std::span(&entry, 1), part.size(), flags));
  return region;
}

absl::StatusOr<MemoryRegion> MemoryRegion::RegisterChain(const Client& client, std::span<const MdlEntry> chain,
                                                         uint64_t length, uint32_t flags) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(MemoryRegion region, Create(client.connection()));
  RNICD_RETURN_IF_ERROR(region.RegisterNow(chain, length, flags));
  return region;
}

absl::StatusOr<MemoryRegion> MemoryRegion::Create(std::shared_ptr<Connection> connection) {
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, connection->ProtectionDomain());
  RNICD_ASSIGN_OR_RETURN(const v1::CreateMrResponse response, connection->Call(kCreateMr, CreateRequest(domain)));
  return MemoryRegion(std::move(connection), MemoryRegionId{response.mr_id()});
}

absl::Status MemoryRegion::RegisterNow(std::span<const MdlEntry> chain, uint64_t length, uint32_t flags) {
  if (const auto registered = connection_->rings().Register(id_, chain, length, flags); registered.has_value()) {
    RNICD_RETURN_IF_ERROR(registered->status());
    Adopt(**registered, chain);
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(const v1::RegisterMrResponse response,
                         connection_->Call(kRegisterMr, RegisterRequest(id_, chain, length, flags)));
  Adopt(wire::FromWire(response.registration()), chain);
  return absl::OkStatus();
}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : connection_(std::move(other.connection_)),
      id_(other.id_),
      registered_(other.registered_),
      registration_(other.registration_),
      memory_(std::move(other.memory_)) {
  other.Reset();
}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  if (this != &other) {
    // The destructor of `old` releases what this region held.
    const MemoryRegion old(std::move(*this));
    connection_ = std::move(other.connection_);
    id_ = other.id_;
    registered_ = other.registered_;
    registration_ = other.registration_;
    memory_ = std::move(other.memory_);
    other.Reset();
  }
  return *this;
}

MemoryRegion::~MemoryRegion() {
  if (connection_ != nullptr) {
    connection_->Release(kCloseMr, CloseRequest(id_));
  }
}

absl::Status MemoryRegion::Deregister() {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::REGION_NOT_REGISTERED);
  }
  if (const auto deregistered = connection_->rings().Deregister(id_); deregistered.has_value()) {
    RNICD_RETURN_IF_ERROR(*deregistered);
  } else {
    v1::DeregisterMrRequest request;
    request.set_mr_id(id_.value);
    RNICD_RETURN_IF_ERROR(connection_->Call(kDeregisterMr, request).status());
  }
  registered_ = false;
  registration_ = {};
  memory_.clear();
  return absl::OkStatus();
}

absl::Status MemoryRegion::Close() {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_RETURN_IF_ERROR(connection_->Call(kCloseMr, CloseRequest(id_)).status());
  Reset();
  return absl::OkStatus();
}

void MemoryRegion::Adopt(const Registration& registration, std::span<const MdlEntry> chain) {
  registered_ = true;
  registration_ = registration;
  for (const MdlEntry& entry : chain) {
    if (entry.owner != nullptr && (memory_.empty() || memory_.back() != entry.owner)) {
      memory_.push_back(entry.owner);
    }
  }
}

void MemoryRegion::Reset() {
  id_ = MemoryRegionId{};
  registered_ = false;
  registration_ = {};
  memory_.clear();
  connection_.reset();
}

}  // namespace rnicd::inline client
