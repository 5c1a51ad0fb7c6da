#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "daemon/core/memory/ticket_table.h"

namespace rnicd::pipes {

inline constexpr size_t kRequestBytesMax = 512;

struct Hello {};
struct GiveSection {
  core::FdTicket ticket{};
  // Value of the handle in the client, never 0.
  uint32_t handle = 0;
};
struct TakeSection {
  core::FdTicket ticket{};
};
using Request = std::variant<Hello, GiveSection, TakeSection>;

// Errors: FD_PACKET_MALFORMED.
absl::StatusOr<Request> ParseRequest(std::string_view bytes);

// Replies, never empty: a message without bytes would read as the end.
std::string HelloReply(uint16_t port, const std::string& secret);
// `handle` is the client's new handle; 0 for none.
std::string SectionReply(const absl::StatusOr<uint32_t>& handle);
std::string ErrorReply(const absl::Status& error);

}  // namespace rnicd::pipes
