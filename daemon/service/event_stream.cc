#include "daemon/service/event_stream.h"

#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "daemon/core/session/session.h"
#include "daemon/service/messages/convert.h"

namespace rnicd::service {
namespace {

// Lifetime: shared by the session's event queue while it is attached, and by the call until that ends.
// Threads:  the connection's, and those that push events.
class EventStream {
 public:
  explicit EventStream(const std::shared_ptr<gate::Call>& call)
      : call_(call), session_(call->session()), end_(call->end()) {}

  // Writes the next event unless one is on its way.
  void Pump() {
    std::optional<core::Event> event;
    {
      MutexLock lock(mutex_);
      if (writing_) {
        return;
      }
      event = session_->events().Pop();
      writing_ = event.has_value();
    }
    if (event.has_value()) {
      end_->Write(ToWire(*event));
    } else if (session_->events().Drained()) {
      if (const std::shared_ptr<gate::Call> call = call_.lock(); call != nullptr) {
        call->Finish(absl::OkStatus());
      }
    }
  }

  void OnWritten() {
    {
      MutexLock lock(mutex_);
      writing_ = false;
    }
    Pump();
  }

 private:
  // Weak: the end of the call releases the stream.
  const std::weak_ptr<gate::Call> call_;
  const std::shared_ptr<core::Session> session_;
  const std::shared_ptr<gate::ClientEnd> end_;
  Mutex mutex_;
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace

void WatchEvents(const std::shared_ptr<gate::Call>& call, const v1::WatchEventsRequest& /*request*/) {
  const auto stream = std::make_shared<EventStream>(call);
  call->end()->SetOnWritten([stream] { stream->OnWritten(); });
  // Before the first event, which may come much later.
  call->end()->BeginStream();
  if (!call->session()->events().Attach([stream] { stream->Pump(); })) {
    call->Finish(MakeError(ErrorReason::EVENT_STREAM_ALREADY_OPEN));
    return;
  }
  // Keeps the call until it ends.
  call->SetOnEnd([call] { call->session()->events().Detach(); });
}

}  // namespace rnicd::service
