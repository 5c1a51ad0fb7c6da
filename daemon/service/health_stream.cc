#include "daemon/service/health_stream.h"

#include <optional>
#include <utility>

#include "base/mutex.h"

namespace rnicd::service {

using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus ToServingStatus(bool serves) {
  return serves ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

namespace {

// Lifetime: shared by the board's listener, which may be called once after it was removed, and by the client's end.
// Threads:  the connection's, and those that change the board.
class HealthStream {
 public:
  HealthStream(std::shared_ptr<gate::ClientEnd> end, const health::HealthBoard& board, HealthQuestion question)
      : end_(std::move(end)), board_(board), question_(question) {}

  // Writes the status if it has changed, unless a message is on its way.
  void Pump() {
    HealthCheckResponse response;
    {
      MutexLock lock(mutex_);
      const HealthCheckResponse::ServingStatus current =
          question_ == nullptr ? HealthCheckResponse::SERVICE_UNKNOWN : ToServingStatus((board_.*question_)());
      if (writing_ || told_ == current) {
        return;
      }
      writing_ = true;
      told_ = current;
      response.set_status(current);
    }
    end_->Write(response);
  }

  void OnWritten() {
    {
      MutexLock lock(mutex_);
      writing_ = false;
    }
    Pump();
  }

 private:
  const std::shared_ptr<gate::ClientEnd> end_;
  const health::HealthBoard& board_;
  const HealthQuestion question_;
  Mutex mutex_;
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
  // The status written last.
  std::optional<HealthCheckResponse::ServingStatus> told_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace

// Subscribes before the first response, so that no change is missed.
void WatchHealth(const std::shared_ptr<gate::Call>& call, health::HealthBoard& board, HealthQuestion question) {
  const auto stream = std::make_shared<HealthStream>(call->end(), board, question);
  call->end()->SetOnWritten([stream] { stream->OnWritten(); });
  call->end()->BeginStream();
  const uint64_t subscription = board.Subscribe([stream] { stream->Pump(); });
  // Keeps the call until it ends.
  call->SetOnEnd([call, &board, subscription] { board.Unsubscribe(subscription); });
  stream->Pump();
}

}  // namespace rnicd::service
