#include "base/status.h"
#include "client/cpp/objects/callers_memory.h"

namespace rnicd::inline client {

absl::StatusOr<std::span<std::byte>> MapAt(VirtualAddress /*address*/, int /*fd*/, uint64_t /*size*/) {
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "address");
}

absl::Status CheckMapping(std::span<const std::byte> /*mapping*/, int /*fd*/) {
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "mapping");
}

std::optional<uint64_t> FileUnder(std::span<const std::byte> /*mapping*/) { return std::nullopt; }

absl::StatusOr<std::span<std::byte>> MapSpare(std::span<const std::byte> /*pages*/) {
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "pages");
}

absl::Status MoveOver(std::span<std::byte> /*mapping*/, std::span<std::byte> /*pages*/) {
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "pages");
}

}  // namespace rnicd::inline client
