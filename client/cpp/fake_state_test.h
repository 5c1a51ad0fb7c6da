#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "rnicd/v1/error.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// A refusal as the daemon writes it.
inline v1::ErrorDetail DetailOf(ErrorReason reason, const std::string& field = {}) {
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(reason));
  detail.set_field(field);
  return detail;
}

inline grpc::Status Refusal(ErrorReason reason, const std::string& field = {}) {
  v1::RpcStatus rpc_status;
  rpc_status.add_details()->PackFrom(DetailOf(reason, field));
  return grpc::Status(static_cast<grpc::StatusCode>(RowOf(reason).code), "refused", rpc_status.SerializeAsString());
}

// The event stream's server side: writes what is queued, ends when told to.
class FakeEventWriter final : public grpc::ServerWriteReactor<v1::WatchEventsResponse> {
 public:
  void Push(v1::WatchEventsResponse event) {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(event));
    WriteNext();
  }
  void End(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (!end_.has_value()) {
      end_ = status;
      WriteNext();
    }
  }
  void OnWriteDone(bool) override {
    MutexLock lock(mutex_);
    writing_ = false;
    queue_.pop_front();
    WriteNext();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override { self_.reset(); }

  std::shared_ptr<FakeEventWriter> self_;

 private:
  void WriteNext() RNICD_REQUIRES(mutex_) {
    if (!writing_ && !queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front());
    } else if (!writing_ && end_.has_value() && !finished_) {
      finished_ = true;
      Finish(*end_);
    }
  }

  Mutex mutex_;
  std::deque<v1::WatchEventsResponse> queue_ RNICD_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ RNICD_GUARDED_BY(mutex_);
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
  bool finished_ RNICD_GUARDED_BY(mutex_) = false;
};

// Counts and rules of the fake, shared by its services. Regions refuse a length above refuse_length_above.
struct FakeState {
  std::atomic<bool> pend = false;
  std::atomic<bool> refuse_event_stream = false;
  std::atomic<uint64_t> refuse_length_above = UINT64_MAX;
  std::atomic<int> sessions_open = 0;
  std::atomic<int> rpcs = 0;

  Mutex mutex;
  std::set<uint64_t> memory RNICD_GUARDED_BY(mutex);
  std::set<uint64_t> regions RNICD_GUARDED_BY(mutex);
  std::set<uint64_t> mappings RNICD_GUARDED_BY(mutex);
  std::set<uint64_t> windows RNICD_GUARDED_BY(mutex);
  std::set<uint64_t> completion_queues RNICD_GUARDED_BY(mutex);
  std::set<uint64_t> queue_pairs RNICD_GUARDED_BY(mutex);
  std::map<uint64_t, uint64_t> pending_contexts RNICD_GUARDED_BY(mutex);
  uint64_t next_id RNICD_GUARDED_BY(mutex) = 100;
  std::shared_ptr<FakeEventWriter> events RNICD_GUARDED_BY(mutex);

  size_t LiveMemory() {
    MutexLock lock(mutex);
    return memory.size();
  }
  size_t LiveRegions() {
    MutexLock lock(mutex);
    return regions.size();
  }
  // Mappings, windows, completion queues and queue pairs.
  size_t LiveOthers() {
    MutexLock lock(mutex);
    return mappings.size() + windows.size() + completion_queues.size() + queue_pairs.size();
  }
  uint64_t NewIdIn(std::set<uint64_t>& ids) RNICD_REQUIRES(mutex) { return *ids.insert(next_id++).first; }
  // Takes the id out of a set; OBJECT_NOT_FOUND when it is not there.
  static grpc::Status EraseFrom(std::set<uint64_t>& ids, uint64_t id) {
    return ids.erase(id) == 1 ? grpc::Status::OK : Refusal(ErrorReason::OBJECT_NOT_FOUND);
  }
  std::shared_ptr<FakeEventWriter> Events() {
    MutexLock lock(mutex);
    return events;
  }
};

}  // namespace rnicd::inline client
