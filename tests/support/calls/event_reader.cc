#include "tests/support/calls/event_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::test {

EventReader::EventReader(RawClient& client, Callback on_event)
    : client_(client),
      context_(std::make_unique<grpc::ClientContext>()),
      thread_([this, on_event = std::move(on_event)] { Run(on_event); }) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  MutexLock lock(mutex_);
  while (!stands_ && changed_.WaitUntil(mutex_, deadline)) {
  }
}

EventReader::~EventReader() {
  context_->TryCancel();
  thread_.join();
}

void EventReader::Run(const Callback& on_event) {
  const auto stub = v1::SessionService::NewStub(client_.channel());
  auto stream = stub->WatchEvents(context_.get(), v1::WatchEventsRequest());
  // The daemon sends the initial metadata as soon as it has accepted the stream.
  stream->WaitForInitialMetadata();
  {
    MutexLock lock(mutex_);
    stands_ = true;
    changed_.NotifyAll();
  }
  v1::WatchEventsResponse event;
  while (stream->Read(&event)) {
    if (on_event != nullptr) {
      on_event(event);
    }
    MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  }
  const CallOutcome end = OutcomeOf(stream->Finish());
  MutexLock lock(mutex_);
  end_ = end;
  changed_.NotifyAll();
}

std::optional<v1::WatchEventsResponse> EventReader::Next(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (events_.empty()) {
    if (end_.has_value() || !changed_.WaitUntil(mutex_, deadline)) {
      return std::nullopt;
    }
  }
  v1::WatchEventsResponse event = std::move(events_.front());
  events_.pop_front();
  return event;
}

v1::RequestCompleted EventReader::NextCompletion() {
  const std::optional<v1::WatchEventsResponse> event = Next();
  if (!event.has_value() || !event->has_request_completed()) {
    ADD_FAILURE() << "expected a completion, got "
                  << (event.has_value() ? event->ShortDebugString() : std::string("no event"));
    return v1::RequestCompleted();
  }
  return event->request_completed();
}

std::vector<v1::WatchEventsResponse> EventReader::RestUntilEnd() {
  EXPECT_TRUE(End().has_value()) << "the event stream does not end";
  std::vector<v1::WatchEventsResponse> events;
  MutexLock lock(mutex_);
  std::move(events_.begin(), events_.end(), std::back_inserter(events));
  events_.clear();
  return events;
}

std::optional<CallOutcome> EventReader::End(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (!end_.has_value() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return end_;
}

int CountCompletions(const std::vector<v1::WatchEventsResponse>& events, uint64_t request_context) {
  return static_cast<int>(std::count_if(events.begin(), events.end(), [&](const v1::WatchEventsResponse& event) {
    return event.has_request_completed() && event.request_completed().request_context() == request_context;
  }));
}

}  // namespace rnicd::test
