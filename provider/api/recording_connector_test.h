#pragma once

// Listeners for the tests of connections by address of every provider.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "provider/api/connection.h"
#include "provider/api/recording_listener_test.h"

namespace rnicd::provider {

// "accepted", "established", "disconnected", and the reasons of failures.
using Events = std::vector<std::string>;

// Records the events of one connector, and fails the test when two come at a time.
class RecordingConnector final : public ConnectorListener {
 public:
  void OnAccepted(const ConnectionOffer& offer) override { Record("accepted", offer); }
  void OnEstablished() override { Record("established", {}); }
  void OnFailed(const absl::Status& status, std::string_view private_data) override {
    Record(RowOf(ErrorInfoOf(status).reason).name, {.private_data = std::string(private_data)});
  }
  void OnDisconnected() override { Record("disconnected", {}); }

  // What has come until there were `count` events, or until the timeout.
  Events WaitFor(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kWaitTimeout;
    MutexLock lock(mutex_);
    while (events_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return events_;
  }
  // With the last event; a failure has private data only.
  ConnectionOffer offer() const {
    MutexLock lock(mutex_);
    return offer_;
  }

  // Called before an event is recorded. Set before anything can be reported.
  std::function<void(std::string_view event)> on_event;

 private:
  void Record(std::string_view event, const ConnectionOffer& offer) {
    EXPECT_FALSE(inside_.exchange(true)) << "two events of one connector at a time";
    if (on_event) {
      on_event(event);
    }
    inside_ = false;
    MutexLock lock(mutex_);
    events_.emplace_back(event);
    offer_ = offer;
    changed_.NotifyAll();
  }

  std::atomic<bool> inside_{false};
  mutable Mutex mutex_;
  ConditionVariable changed_;
  Events events_ RNICD_GUARDED_BY(mutex_);
  ConnectionOffer offer_ RNICD_GUARDED_BY(mutex_);
};

// Keeps the requests that come, until the test takes them.
class RecordingRequests final : public RequestListener {
 public:
  struct Taken {
    ConnectionRequest request;
    std::shared_ptr<RecordingConnector> events;
  };

  std::shared_ptr<ConnectorListener> OnRequest(ConnectionRequest request) override {
    auto events = std::make_shared<RecordingConnector>();
    if (on_request && !on_request(request, *events)) {
      return nullptr;
    }
    MutexLock lock(mutex_);
    taken_.push_back({std::move(request), events});
    changed_.NotifyAll();
    return events;
  }

  // The oldest; without a connector after a timeout.
  Taken Take() {
    const auto deadline = std::chrono::steady_clock::now() + kWaitTimeout;
    MutexLock lock(mutex_);
    while (taken_.empty()) {
      if (!changed_.WaitUntil(mutex_, deadline)) {
        ADD_FAILURE() << "no request";
        return {};
      }
    }
    Taken oldest = std::move(taken_.front());
    taken_.pop_front();
    return oldest;
  }

  // False rejects the request. Set before one can come.
  std::function<bool(ConnectionRequest& request, RecordingConnector& events)> on_request;

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Taken> taken_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
