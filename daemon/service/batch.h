#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "daemon/gate/gate.h"
#include "daemon/service/memory_operations.h"
#include "daemon/wire/error_detail.h"

namespace rnicd::service {

inline constexpr int kMaxBatchItems = 16384;

// Runs `operation` on every item in order and finishes the call when the last outcome is in. Outcomes stand in the
// order of the items, whichever is ready first: each writes to its own slot.
// `request` and `response` live as long as the call, as gRPC promises.
template <typename Request, typename Response, typename Operation>
void RunBatch(const std::shared_ptr<gate::Call>& call, const Request& request, Response* response,
              Operation operation) {
  const int count = request.items_size();
  if (count == 0 || count > kMaxBatchItems) {
    call->Finish(MakeError(ErrorReason::BATCH_SIZE, "items"));
    return;
  }
  response->mutable_outcomes()->Reserve(count);
  for (int index = 0; index < count; ++index) {
    response->add_outcomes();
  }
  const auto remaining = std::make_shared<std::atomic<int>>(count);
  for (int index = 0; index < count; ++index) {
    auto* outcome = response->mutable_outcomes(index);
    operation(*call->session(), request.items(index), [call, outcome, remaining](const auto& reply) {
      call->WhileLive([&] {
        if (reply.ok()) {
          *outcome->mutable_response() = *reply;
        } else {
          *outcome->mutable_error() = wire::ToErrorDetail(reply.status());
        }
      });
      if (remaining->fetch_sub(1) == 1) {
        call->Finish(absl::OkStatus());
      }
    });
  }
}

}  // namespace rnicd::service
