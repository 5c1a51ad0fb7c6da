#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "provider/engine/engine_request.h"

namespace rnicd::provider {

// The receive queue: receives are filled in any order and reported from the front, by one thread at a time. A part of a
// QueuePairEngine, used under its lock.
class EngineReceives {
 public:
  explicit EngineReceives(size_t depth) : depth_(depth) {}

  // Errors: QP_NOT_CONNECTED after Shut; QUEUE_FULL.
  absl::Status CheckRoom() const;
  // After Fail, it is cancelled at once.
  EngineRequest& Push(std::unique_ptr<EngineRequest> request);
  // A refused one, done at once, if there is room. False after Shut.
  bool PushRefused(std::unique_ptr<EngineRequest> request);
  // Takes back the last one.
  std::unique_ptr<EngineRequest> UndoPush() { return queue_.PopBack(); }
  void Fail();
  // True at the first call.
  bool Shut();

  // Takes the oldest that is not taken yet; null when there is none, and then a sender waits.
  EngineRequest* TakeOldest();
  // The one with that serial; null when it has ended.
  EngineRequest* Take(uint64_t serial);
  // False when it has been abandoned meanwhile.
  bool End(uint64_t serial, const Completion& result);
  // Cancels all that are not taken.
  void Abandon();
  // True, once, when a sender waits and there is a receive for it.
  bool WakesSender();

  // The next to report, until EndReport; null when there is none, or another thread reports.
  std::unique_ptr<EngineRequest> BeginReport();
  void EndReport() { reporting_ = false; }
  bool MayReport() const { return !reporting_ && queue_.FrontIsDone(); }
  bool idle() const { return !reporting_ && queue_.empty(); }

 private:
  enum class Gate : uint8_t { kOpen, kFailed, kShut };

  // Null when it has ended.
  EngineRequest* Find(uint64_t serial) const;

  const size_t depth_;
  Gate gate_ = Gate::kOpen;
  RequestQueue queue_;
  bool sender_waits_ = false;
  bool reporting_ = false;
};

}  // namespace rnicd::provider
