#include "daemon/service/cq_poll.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rnicd::service {
namespace {

// Keeps a response below the limit of gRPC's clients for a message.
constexpr uint32_t kMaxResults = 16384;

}  // namespace

void PollCq(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session, const CqPoll& poll,
            const std::function<void(const Completion&)>& append) {
  // False when the client has given up; the queue then keeps the results.
  const auto finish = [call, append](const absl::StatusOr<std::vector<Completion>>& results) {
    return call->Finish(results.status(), [&] {
      if (results.ok()) {
        std::for_each(results->begin(), results->end(), append);
      }
    });
  };
  absl::StatusOr<core::PolledCq> polled = session.queues().Poll(poll.queue, std::min(poll.max, kMaxResults), poll.wait,
                                                                [call, finish](const auto& results) {
                                                                  call->DoNotMeasure();
                                                                  return finish(results);
                                                                });
  if (!polled.ok()) {
    finish(polled.status());
  } else if (polled->results.has_value()) {
    finish(*std::move(polled->results));
  } else {
    call->OnCancel(std::move(polled->end));
  }
}

}  // namespace rnicd::service
