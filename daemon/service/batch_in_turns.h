#pragma once

#include <atomic>
#include <memory>
#include <type_traits>

#include "daemon/service/batch.h"

namespace rnicd::service {

// A batch whose items begin a few at a time: each of the few turns begins its next item when its last one has ended.
// Lifetime: shared by the replies that are outstanding.
// Threads:  safe; a turn goes on on the thread that ended its item, with a guard of its own.
template <typename Request, typename Response, typename ItemRequest, typename ItemResponse>
class BatchInTurns : public std::enable_shared_from_this<BatchInTurns<Request, Response, ItemRequest, ItemResponse>> {
 public:
  using Operation = void (*)(const core::SessionGuard&, const ItemRequest&, const Reply<ItemResponse>&);

  BatchInTurns(std::shared_ptr<gate::Call> call, const Request& request, Response* response, Operation operation)
      : outcomes_(std::move(call), request.items_size(), response), request_(request), operation_(operation) {}

  void Run(const core::SessionGuard& session) {
    for (int turn = 0; turn < kTurns; ++turn) {
      TakeTurn(session);
    }
  }

 private:
  // A quarter of what an owner may have waiting in a bulkhead.
  static constexpr int kTurns = 16;

  void TakeTurn(const core::SessionGuard& session) {
    for (int index = next_.fetch_add(1); index < request_.items_size(); index = next_.fetch_add(1)) {
      // The second of the two to get here goes on: the reply, or this loop.
      const auto is_second = std::make_shared<std::atomic<bool>>(false);
      operation_(session, request_.items(index),
                 [self = this->shared_from_this(), index, is_second](const absl::StatusOr<ItemResponse>& reply) {
                   self->outcomes_.Set(index, reply);
                   if (is_second->exchange(true)) {
                     self->GoOn();
                   }
                 });
      if (!is_second->exchange(true)) {
        return;
      }
    }
  }

  void GoOn() {
    const absl::StatusOr<core::SessionGuard> session = outcomes_.call().session()->Begin();
    if (session.ok()) {
      TakeTurn(*session);
      return;
    }
    for (int index = next_.fetch_add(1); index < request_.items_size(); index = next_.fetch_add(1)) {
      outcomes_.Set(index, absl::StatusOr<ItemResponse>(session.status()));
    }
  }

  BatchOutcomes<Response> outcomes_;
  const Request& request_;
  const Operation operation_;
  // At most kTurns above the number of items.
  std::atomic<int> next_{0};
};

// As RunBatch, in turns.
template <typename Request, typename Response, typename ItemRequest, typename ItemResponse>
void RunBatchInTurns(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session, const Request& request,
                     Response* response,
                     void (*operation)(const core::SessionGuard&, const ItemRequest&, const Reply<ItemResponse>&)) {
  if (!IsBatchSize(request.items_size())) {
    call->Finish(MakeError(ErrorReason::BATCH_SIZE, "items"));
    return;
  }
  std::make_shared<BatchInTurns<Request, Response, ItemRequest, ItemResponse>>(call, request, response, operation)
      ->Run(session);
}

}  // namespace rnicd::service
