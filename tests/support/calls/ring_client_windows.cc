// librnicd has no rings on Windows, and neither have the tests.
#include "tests/support/calls/ring_client.h"

namespace rnicd::test {

RingClient::RingClient(const UniqueFd& memory, uint64_t file_bytes, UniqueFd doorbell)
    : mapping_(memory.get(), file_bytes), doorbell_(std::move(doorbell)) {}

std::optional<RingReply> RingClient::Execute(const RingRequest& /*request*/) { return std::nullopt; }

bool RingClient::Holds(const RingRequest& /*request*/) const { return false; }

uint32_t RingClient::end_reason() const { return 0; }

}  // namespace rnicd::test
