#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "provider/verbs/connection/cm_channel.h"

namespace rnicd::provider {

// The only tables from the connection manager's errors to reasons.

// Errors of an id that cannot be bound, or cannot listen.
//   EADDRINUSE             ADDRESS_IN_USE
//   EADDRNOTAVAIL, ENODEV  ADDRESS_INVALID: not one of this host, or not of a card
//   anything else          as VerbStatus
absl::Status BindStatus(int error, std::string_view call);
// Errors of a call for a connection.
//   EINVAL, ECONNRESET     CONNECTION_ABORTED: the kernel has ended it, because the peer has
//   ENETUNREACH            NETWORK_UNREACHABLE
//   EHOSTUNREACH           HOST_UNREACHABLE
//   ECONNREFUSED           CONNECTION_REFUSED: nobody listens, of iWARP
//   ETIMEDOUT              CONNECTION_TIMED_OUT: a silent host, of iWARP
//   anything else          as VerbStatus
absl::Status CmStatus(int error, std::string_view call);
// Why a connection was not made, of an event that ends the attempt.
absl::Status FailureOf(const CmEvent& event);
// The same for the side that has accepted. The kernel rejects for a peer that gives up as a peer does that rejects, so
// a rejection without data counts as the first.
absl::Status FailureOfAccept(const CmEvent& event);

}  // namespace rnicd::provider
