#include <optional>
#include <utility>

#include "base/status.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/objects/pending_call.h"
#include "client/cpp/objects/region_requests.h"
#include "client/cpp/session/connection.h"
#include "wire/error_detail.h"
#include "wire/memory.h"

namespace rnicd::inline client {
namespace {

absl::Status OutcomeOf(const absl::StatusOr<v1::RequestCompleted>& completed) {
  if (!completed.ok()) {
    return completed.status();
  }
  if (completed->ntstatus() == static_cast<uint32_t>(NtStatus::kSuccess)) {
    return absl::OkStatus();
  }
  return wire::StatusFromDetail(completed->error(), absl::StatusCode::kUnknown);
}

}  // namespace

void MemoryRegion::RegisterAsync(const Memory& memory, std::span<const std::byte> part, uint32_t flags,
                                 RegisterCallback callback) {
  absl::StatusOr<MdlEntry> entry = memory.Entry(part);
  if (!entry.ok()) {
    callback(entry.status());
    return;
  }
  absl::StatusOr<MemoryRegion> created = Create(memory.connection());
  if (!created.ok()) {
    callback(created.status());
    return;
  }
  v1::RegisterMrRequest request = RegisterRequest(created->id(), std::span(&*entry, 1), part.size(), flags);
  // The region keeps the connection, and so the event stream, alive while the request is pending. The entry keeps the
  // memory alive.
  const auto region = std::make_shared<MemoryRegion>(*std::move(created));
  const auto complete = [region, entry = *std::move(entry),
                         callback = std::move(callback)](const absl::StatusOr<v1::RequestCompleted>& completed) {
    const absl::Status outcome = OutcomeOf(completed);
    if (!outcome.ok()) {
      // Closed first, so that nothing is left when the callback runs.
      {
        const MemoryRegion refused(std::move(*region));
      }
      callback(outcome);
      return;
    }
    region->Adopt(wire::FromWire(completed->registration()), std::span(&entry, 1));
    callback(std::move(*region));
  };
  CallPending(memory.connection(), kRegisterMr, std::move(request), complete);
}

void MemoryRegion::CloseAsync(MemoryRegion region, CloseCallback callback) {
  const std::shared_ptr<Connection> connection = region.connection_;
  if (connection == nullptr) {
    callback(MakeError(ErrorReason::OBJECT_NOT_FOUND));
    return;
  }
  v1::CloseMrRequest request = CloseRequest(region.id());
  const auto closing = std::make_shared<MemoryRegion>(std::move(region));
  const auto complete = [closing,
                         callback = std::move(callback)](const absl::StatusOr<v1::RequestCompleted>& completed) {
    const absl::Status outcome = OutcomeOf(completed);
    if (outcome.ok()) {
      closing->Reset();
    }
    callback(outcome);
  };
  CallPending(connection, kCloseMr, std::move(request), complete);
}

}  // namespace rnicd::inline client
