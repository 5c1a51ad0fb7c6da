#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/error_reason.h"
#include "base/mutex.h"
#include "base/status.h"
#include "daemon/core/request/request_turns.h"
#include "daemon/core/session/session.h"
#include "daemon/gate/gate.h"
#include "daemon/service/memory/memory_operations.h"
#include "daemon/service/messages/field_checks.h"
#include "wire/error_detail.h"

namespace rnicd::service {

inline constexpr int kMaxBatchItems = 16384;

// Counts the outcomes of a batch for its audit line.
// Threads: safe.
class BatchTally {
 public:
  explicit BatchTally(int items) : items_(items), remaining_(items) {}

  // Records one outcome. Returns true for the last one.
  bool Add(int index, const absl::Status& status) {
    MutexLock lock(mutex_);
    if (!status.ok()) {
      ++refused_;
      if (index < first_index_) {
        first_index_ = index;
        first_reason_ = RowOf(ErrorInfoOf(status).reason).name;
      }
    }
    return --remaining_ == 0;
  }
  // "refused=3 of=64 first=QUOTA_REGIONS": the reason is that of the first refused item in the request.
  std::string Note() const {
    MutexLock lock(mutex_);
    std::string note = "refused=" + std::to_string(refused_) + " of=" + std::to_string(items_);
    return refused_ == 0 ? note : note.append(" first=").append(first_reason_);
  }

 private:
  const int items_;
  mutable Mutex mutex_;
  int remaining_ RNICD_GUARDED_BY(mutex_);
  int refused_ RNICD_GUARDED_BY(mutex_) = 0;
  int first_index_ RNICD_GUARDED_BY(mutex_) = kMaxBatchItems;
  std::string_view first_reason_ RNICD_GUARDED_BY(mutex_);
};

// The error of an item: its field names the item too, "items[3].length", or "items[3]" if no field is at fault.
inline v1::ErrorDetail ErrorOfItem(int index, const absl::Status& status) {
  v1::ErrorDetail detail = wire::ToErrorDetail(status);
  detail.set_field(At("items", index) + (detail.field().empty() ? "" : "." + detail.field()));
  return detail;
}

inline bool IsBatchSize(int items) { return items > 0 && items <= kMaxBatchItems; }

// The outcomes of a call's items, in their order, whichever is ready first: each has its own slot. The last one
// finishes the call. Request and response live as long as the call.
// Threads: safe.
template <typename Response>
class BatchOutcomes {
 public:
  // `undelivered` runs if the client had given up before the last outcome; may be null.
  BatchOutcomes(std::shared_ptr<gate::Call> call, int count, Response* response,
                std::function<void()> undelivered = nullptr)
      : call_(std::move(call)), response_(response), undelivered_(std::move(undelivered)), tally_(count) {
    response->mutable_outcomes()->Reserve(count);
    for (int index = 0; index < count; ++index) {
      response->add_outcomes();
    }
  }

  const gate::Call& call() const { return *call_; }
  // Set or Fail must be called once for each item.
  template <typename T>
  void Set(int index, const absl::StatusOr<T>& reply) {
    if (!reply.ok()) {
      Fail(index, reply.status());
      return;
    }
    call_->WhileLive([&] { *response_->mutable_outcomes(index)->mutable_response() = *reply; });
    Count(index, absl::OkStatus());
  }
  void Fail(int index, const absl::Status& status) {
    call_->WhileLive([&] { *response_->mutable_outcomes(index)->mutable_error() = ErrorOfItem(index, status); });
    Count(index, status);
  }

 private:
  void Count(int index, const absl::Status& status) {
    if (tally_.Add(index, status)) {
      call_->SetNote(tally_.Note());
      if (!call_->Finish(absl::OkStatus()) && undelivered_ != nullptr) {
        undelivered_();
      }
    }
  }

  const std::shared_ptr<gate::Call> call_;
  Response* const response_;
  const std::function<void()> undelivered_;
  BatchTally tally_;
};

// Does some items of a batch, in order: each begins when the one before it has its outcome, unless they may overlap.
// Lifetime: shared by the replies that are outstanding; the session and the request live until `then` is called.
// Threads:  one at a time; it continues on the thread that replied.
template <typename ItemRequest, typename Request, typename Response, typename Operation>
class ItemsInOrder : public std::enable_shared_from_this<ItemsInOrder<ItemRequest, Request, Response, Operation>> {
 public:
  struct Items {
    int next = 0;
    int end = 0;
    bool overlapping = false;
  };

  ItemsInOrder(std::shared_ptr<BatchOutcomes<Response>> outcomes, const core::SessionGuard& session,
               const Request& request, const Operation& operation, Items items, std::function<void()> then)
      : outcomes_(std::move(outcomes)),
        session_(session),
        request_(request),
        operation_(operation),
        items_(items),
        then_(std::move(then)) {}

  void GoOn() {
    while (items_.next < items_.end) {
      const int index = items_.next++;
      // Whichever arrives second continues: the reply, or this loop.
      is_second_.store(items_.overlapping);
      operation_(session_, request_.items(index), [self = this->shared_from_this(), index](const auto& reply) {
        const bool overlapping = self->items_.overlapping;
        self->outcomes_->Set(index, reply);
        if (!overlapping && self->is_second_.exchange(true)) {
          self->GoOn();
        }
        return true;
      });
      if (!is_second_.exchange(true)) {
        return;
      }
    }
    then_();
  }

 private:
  const std::shared_ptr<BatchOutcomes<Response>> outcomes_;
  const core::SessionGuard& session_;
  const Request& request_;
  const Operation operation_;
  Items items_;
  const std::function<void()> then_;
  std::atomic<bool> is_second_{false};
};

// How a batch does its items.
template <typename ItemRequest>
struct BatchRule {
  // Bytes that an item has registered or deregistered; null: hardly any.
  uint64_t (*bytes_of)(core::SessionRegions& regions, const ItemRequest& item) = nullptr;
  // Items may be done by several threads at the same time.
  bool parallel = false;
  // Items begin without waiting for those before them: what takes effect when it begins, or may wait for the client.
  bool overlapping = false;
};

// Runs `operation` on every item and finishes the call with the last outcome.
template <typename ItemRequest, typename Request, typename Response, typename Operation>
void RunBatch(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session, const Request& request,
              Response* response, const BatchRule<ItemRequest>& rule, Operation operation,
              std::function<void()> undelivered = nullptr) {
  const int count = request.items_size();
  if (!IsBatchSize(count)) {
    call->Finish(MakeError(ErrorReason::BATCH_SIZE, "items"));
    return;
  }
  const auto outcomes = std::make_shared<BatchOutcomes<Response>>(call, count, response, std::move(undelivered));
  core::ItemPlan plan = {.items = static_cast<uint32_t>(count)};
  if (rule.parallel) {
    plan.threads = session.requests().node().registering_threads;
  }
  if (rule.bytes_of != nullptr) {
    plan.bytes_of = [&request, &regions = session.regions(), bytes_of = rule.bytes_of](uint32_t index) {
      return bytes_of(regions, request.items(static_cast<int>(index)));
    };
  }
  plan.run = [outcomes, &request, operation, overlapping = rule.overlapping](
                 const core::SessionGuard& held_session, uint32_t first, uint32_t end, const absl::Status& start,
                 const std::function<void()>& then) {
    using InOrder = ItemsInOrder<ItemRequest, Request, Response, Operation>;
    const typename InOrder::Items items = {static_cast<int>(first), static_cast<int>(end), overlapping};
    if (start.ok()) {
      std::make_shared<InOrder>(outcomes, held_session, request, operation, items, then)->GoOn();
      return;
    }
    for (int index = items.next; index < items.end; ++index) {
      outcomes->Fail(index, start);
    }
    then();
  };
  core::RequestTurns::Run(session.requests(), std::move(plan));
}

}  // namespace rnicd::service
