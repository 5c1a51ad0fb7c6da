#include "client/cpp/logical_mapping.h"

#include <utility>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/session/connection.h"
#include "wire/memory.h"

namespace rnicd::inline client {
namespace {

v1::ReleaseLamRequest ReleaseRequest(LogicalMappingId id) {
  v1::ReleaseLamRequest request;
  request.set_lam_id(id.value);
  return request;
}

}  // namespace

// Id of the mapping in the daemon.
struct LogicalMapping::Built {
  ~Built() {
    if (!closed) {
      connection->Release(kReleaseLam, ReleaseRequest(id));
    }
  }

  std::shared_ptr<Connection> connection;
  LogicalMappingId id;
  std::vector<LogicalAddress> pages;
  uint32_t fbo = 0;
  uint64_t length = 0;
  VirtualAddress address;
  bool closed = false;
  // The memory under the mapping, which must not be released before it.
  std::vector<std::shared_ptr<const void>> memory;
};

absl::StatusOr<LogicalMapping> LogicalMapping::Build(const Memory& memory) { return Build(memory, memory.bytes()); }

absl::StatusOr<LogicalMapping> LogicalMapping::Build(const Memory& memory, std::span<const std::byte> part) {
  RNICD_ASSIGN_OR_RETURN(const MdlEntry entry, memory.Entry(part));
  return BuildOn(memory.connection(), std::span(&entry, 1), part.size());
}

absl::StatusOr<LogicalMapping> LogicalMapping::BuildChain(const Client& client, std::span<const MdlEntry> chain,
                                                          uint64_t length) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  return BuildOn(client.connection(), chain, length);
}

absl::StatusOr<LogicalMapping> LogicalMapping::BuildOn(std::shared_ptr<Connection> connection,
                                                       std::span<const MdlEntry> chain, uint64_t length) {
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  v1::BuildLamRequest request;
  request.set_adapter_id(adapter.value);
  *request.mutable_mdl_chain() = wire::ToWire(chain);
  request.set_length(length);
  RNICD_ASSIGN_OR_RETURN(const v1::BuildLamResponse response, connection->Call(kBuildLam, request));
  const auto built = std::make_shared<Built>();
  built->connection = std::move(connection);
  built->id = LogicalMappingId{response.lam_id()};
  built->pages.reserve(static_cast<size_t>(response.adapter_page_array_size()));
  for (const uint64_t page : response.adapter_page_array()) {
    built->pages.push_back(LogicalAddress{page});
  }
  built->fbo = response.fbo();
  built->length = length;
  for (const MdlEntry& entry : chain) {
    built->memory.push_back(entry.owner);
  }
  if (!chain.empty()) {
    built->address = chain.front().virtual_address;
  }
  return LogicalMapping(built);
}

LogicalMappingId LogicalMapping::id() const { return built_ == nullptr ? LogicalMappingId{} : built_->id; }

std::span<const LogicalAddress> LogicalMapping::pages() const {
  return built_ == nullptr ? std::span<const LogicalAddress>() : built_->pages;
}

uint32_t LogicalMapping::fbo() const { return built_ == nullptr ? 0 : built_->fbo; }

uint64_t LogicalMapping::length() const { return built_ == nullptr ? 0 : built_->length; }

FastRegistration LogicalMapping::AsRegistration() const {
  if (built_ == nullptr) {
    return {};
  }
  return FastRegistration{
      .pages = built_->pages, .fbo = built_->fbo, .length = built_->length, .base_address = built_->address};
}

absl::Status LogicalMapping::Release() { return CloseNow(built_, kReleaseLam, ReleaseRequest); }

}  // namespace rnicd::inline client
