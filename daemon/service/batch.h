#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/error_reason.h"
#include "base/mutex.h"
#include "base/status.h"
#include "daemon/gate/gate.h"
#include "daemon/service/field_checks.h"
#include "daemon/service/memory_operations.h"
#include "wire/error_detail.h"

namespace rnicd::service {

inline constexpr int kMaxBatchItems = 16384;

// Counts the outcomes of a batch for its audit line. Threads: safe.
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

// Runs `operation` on every item in order and finishes the call with the last outcome. Outcomes have the order of the
// items, whichever is ready first: each has its own slot. Request and response live as long as the call.
template <typename Request, typename Response, typename Operation>
void RunBatch(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session, const Request& request,
              Response* response, Operation operation) {
  const int count = request.items_size();
  if (count == 0 || count > kMaxBatchItems) {
    call->Finish(MakeError(ErrorReason::BATCH_SIZE, "items"));
    return;
  }
  response->mutable_outcomes()->Reserve(count);
  for (int index = 0; index < count; ++index) {
    response->add_outcomes();
  }
  const auto tally = std::make_shared<BatchTally>(count);
  for (int index = 0; index < count; ++index) {
    auto* outcome = response->mutable_outcomes(index);
    operation(session, request.items(index), [call, outcome, index, tally](const auto& reply) {
      call->WhileLive([&] {
        if (reply.ok()) {
          *outcome->mutable_response() = *reply;
        } else {
          *outcome->mutable_error() = ErrorOfItem(index, reply.status());
        }
      });
      if (tally->Add(index, reply.status())) {
        call->SetNote(tally->Note());
        call->Finish(absl::OkStatus());
      }
    });
  }
}

}  // namespace rnicd::service
