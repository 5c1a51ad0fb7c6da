#include <utility>

#include "base/status.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/objects/batch_outcomes.h"
#include "client/cpp/objects/region_requests.h"
#include "client/cpp/session/connection.h"
#include "client/cpp/transport_failure.h"
#include "wire/memory.h"

namespace rnicd::inline client {
namespace {

absl::StatusOr<std::vector<MdlEntry>> EntriesOf(const Memory& memory,
                                                std::span<const std::span<const std::byte>> parts) {
  std::vector<MdlEntry> entries;
  entries.reserve(parts.size());
  for (size_t index = 0; index < parts.size(); ++index) {
    absl::StatusOr<MdlEntry> entry = memory.Entry(parts[index]);
    if (!entry.ok()) {
      return WithFieldPrefix(entry.status(), "parts[" + std::to_string(index) + "].");
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

// Consecutive regions that share a connection: one RPC can close them.
absl::Status CloseRun(Connection& connection, std::span<const MemoryRegionId> ids) {
  v1::BatchCloseMrRequest request;
  for (const MemoryRegionId id : ids) {
    *request.add_items() = CloseRequest(id);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::BatchCloseMrResponse response, connection.Call(kBatchCloseMr, request));
  absl::Status first_failure;
  for (const v1::CloseMrOutcome& outcome : response.outcomes()) {
    if (outcome.has_error()) {
      first_failure.Update(FailureOf(outcome.error()));
    }
  }
  return first_failure;
}

}  // namespace

absl::StatusOr<MemoryRegion::Outcomes> MemoryRegion::CreateBatch(const std::shared_ptr<Connection>& connection,
                                                                 size_t count) {
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, connection->ProtectionDomain());
  v1::BatchCreateMrRequest request;
  for (size_t index = 0; index < count; ++index) {
    *request.add_items() = CreateRequest(domain);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::BatchCreateMrResponse response, connection->Call(kBatchCreateMr, request));
  RNICD_RETURN_IF_ERROR(CheckOutcomeCount(response, count));
  Outcomes outcomes;
  for (const v1::CreateMrOutcome& outcome : response.outcomes()) {
    if (outcome.has_error()) {
      outcomes.emplace_back(FailureOf(outcome.error()));
    } else {
      outcomes.emplace_back(MemoryRegion(connection, MemoryRegionId{outcome.response().mr_id()}));
    }
  }
  return outcomes;
}

absl::StatusOr<MemoryRegion::Outcomes> MemoryRegion::RegisterBatch(const Memory& memory,
                                                                   std::span<const std::span<const std::byte>> parts,
                                                                   uint32_t flags) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<MdlEntry> entries, EntriesOf(memory, parts));
  const std::shared_ptr<Connection> connection = memory.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_ASSIGN_OR_RETURN(Outcomes outcomes, CreateBatch(connection, entries.size()));
  v1::BatchRegisterMrRequest request;
  std::vector<size_t> created;
  for (size_t index = 0; index < entries.size(); ++index) {
    if (outcomes[index].ok()) {
      const MdlEntry& entry = entries[index];
      *request.add_items() = RegisterRequest(outcomes[index]->id(), std::span(&entry, 1), entry.byte_count, flags);
      created.push_back(index);
    }
  }
  if (created.empty()) {
    return outcomes;
  }
  const absl::StatusOr<v1::BatchRegisterMrResponse> response = connection->Call(kBatchRegisterMr, request);
  absl::Status answered = response.ok() ? CheckOutcomeCount(*response, created.size()) : response.status();
  // Closed together: thousands of refused regions must not cost a call each.
  std::vector<MemoryRegion> refused;
  for (size_t item = 0; item < created.size(); ++item) {
    absl::StatusOr<MemoryRegion>& region = outcomes[created[item]];
    if (!answered.ok() || response->outcomes(static_cast<int>(item)).has_error()) {
      refused.push_back(*std::move(region));
      region = answered.ok() ? FailureOf(response->outcomes(static_cast<int>(item)).error()) : answered;
    } else {
      region->Adopt(wire::FromWire(response->outcomes(static_cast<int>(item)).response().registration()),
                    std::span(&entries[created[item]], 1));
    }
  }
  CloseBatch(std::move(refused)).IgnoreError();
  if (!answered.ok()) {
    return answered;
  }
  return outcomes;
}

absl::Status MemoryRegion::CloseBatch(std::vector<MemoryRegion> regions) {
  absl::Status first_failure;
  for (auto begin = regions.begin(); begin != regions.end();) {
    const std::shared_ptr<Connection> connection = begin->connection_;
    std::vector<MemoryRegionId> ids;
    auto end = begin;
    for (; end != regions.end() && end->connection_ == connection; ++end) {
      ids.push_back(end->id());
    }
    const absl::Status closed = connection != nullptr ? CloseRun(*connection, ids) : absl::OkStatus();
    first_failure.Update(closed);
    // After a transport failure the regions' destructors retry once.
    for (; begin != end; ++begin) {
      if (!IsTransportFailure(closed)) {
        begin->Reset();
      }
    }
  }
  return first_failure;
}

}  // namespace rnicd::inline client
