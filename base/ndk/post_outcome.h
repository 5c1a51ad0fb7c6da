#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"

namespace rnicd {

// The remote token issued for a posted FastRegister or Bind.
struct IssuedToken {
  // Index of the request in the chain.
  uint32_t request_index = 0;
  // For peers; valid once the request is executed.
  RemoteToken remote_token;
};

// Result of Post: how many requests were accepted, and why the next was refused.
struct PostOutcome {
  // Number of requests from the start of the chain that were posted; they will be executed.
  uint32_t posted = 0;
  // Why the next request was refused, with a field that begins with "requests[N]"; ok when all were posted.
  absl::Status failure;
  // One token for each posted FastRegister and Bind, in order.
  std::vector<IssuedToken> issued_tokens;

  // The token issued for this request of the chain; 0 if none.
  RemoteToken TokenOf(size_t request_index) const {
    const auto found =
        std::find_if(issued_tokens.begin(), issued_tokens.end(),
                     [request_index](const IssuedToken& issued) { return issued.request_index == request_index; });
    return found != issued_tokens.end() ? found->remote_token : RemoteToken{};
  }
};

}  // namespace rnicd
