#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "provider/engine/engine_card.h"
#include "provider/networkdirect/card/nd2.h"

namespace rnicd::provider {

// The only table from a card's result to a reason. `call` names the method for the detail: "IND2Adapter::Query".
//   DEVICE_REMOVED                                      DEVICE_REMOVED
//   INSUFFICIENT_RESOURCES, NO_MEMORY, NO_MORE_ENTRIES,
//   TOO_MANY_ADDRESSES                                  DEVICE_OUT_OF_RESOURCES
//   NOT_SUPPORTED                                       DEVICE_NOT_CAPABLE
//   anything else                                       DEVICE_FAILED
absl::Status NdStatus(HRESULT result, std::string_view call);
// Status of a failed registration, for which some results mean more:
//   ACCESS_VIOLATION                                    MEMORY_NOT_PINNABLE
//   DEVICE_BUSY (Deregister)                            REGION_HAS_WINDOWS
absl::Status NdRegistrationStatus(HRESULT result, std::string_view call);
// "ND_IO_TIMEOUT"; the number, "0xC0001234", of a result that is not in nd2.h.
std::string NdResultName(HRESULT result);

// The only table from the result of a request to NDK's status. The daemon has checked the local memory of a read or
// write, so a refused access was refused by the peer.
CardOutcome OutcomeOf(HRESULT result, ND2_REQUEST_TYPE type);

}  // namespace rnicd::provider
