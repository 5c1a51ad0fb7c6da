#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/observer.h"

namespace rnicd::app {

// Forwards every report to several observers, in their order.
// Threads: safe, as its observers are.
class Observers final : public core::Observer {
 public:
  // All outlive this.
  explicit Observers(std::vector<core::Observer*> all) : all_(std::move(all)) {}

  void OnRpc(std::string_view method, absl::StatusCode code,
             std::optional<std::chrono::nanoseconds> duration) override {
    ForEach([&](core::Observer& one) { one.OnRpc(method, code, duration); });
  }
  void OnConnectionRefused(std::string_view reason) override {
    ForEach([&](core::Observer& one) { one.OnConnectionRefused(reason); });
  }
  void OnSessionOpened(SessionId id, const core::Caller& caller) override {
    ForEach([&](core::Observer& one) { one.OnSessionOpened(id, caller); });
  }
  void OnSessionEnded(SessionId id, const core::Caller& caller, core::EndCause cause,
                      const core::Reclaimed& reclaimed) override {
    ForEach([&](core::Observer& one) { one.OnSessionEnded(id, caller, cause, reclaimed); });
  }
  void OnRegistered(const core::RegistrationReport& report) override {
    ForEach([&](core::Observer& one) { one.OnRegistered(report); });
  }
  void OnDeregistered(const absl::Status& status) override {
    ForEach([&](core::Observer& one) { one.OnDeregistered(status); });
  }
  void OnFastRegisterRefused() override {
    ForEach([](core::Observer& one) { one.OnFastRegisterRefused(); });
  }
  void OnCompletion(OperationType operation, NtStatus status) override {
    ForEach([&](core::Observer& one) { one.OnCompletion(operation, status); });
  }
  void OnTokensIssued(uint64_t local, uint64_t remote) override {
    ForEach([&](core::Observer& one) { one.OnTokensIssued(local, remote); });
  }
  void OnTokensRevoked(uint64_t pairs, std::string_view cause) override {
    ForEach([&](core::Observer& one) { one.OnTokensRevoked(pairs, cause); });
  }
  void OnDecision(const core::Decision& decision) override {
    ForEach([&](core::Observer& one) { one.OnDecision(decision); });
  }
  bool HeedsSuccesses() const override {
    return std::any_of(all_.begin(), all_.end(), [](const core::Observer* one) { return one->HeedsSuccesses(); });
  }

 private:
  template <typename Call>
  void ForEach(const Call& call) const {
    for (core::Observer* const one : all_) {
      call(*one);
    }
  }

  const std::vector<core::Observer*> all_;
};

}  // namespace rnicd::app
