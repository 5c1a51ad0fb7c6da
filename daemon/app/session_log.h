#pragma once

#include "daemon/audit/audit_log.h"
#include "daemon/core/observer.h"
#include "daemon/log/logger.h"

namespace rnicd::app {

// Passes everything on to the metrics, and decisions to the audit log; writes a line for the life of each session.
// Threads: safe.
class SessionLog final : public core::Observer {
 public:
  // All outlive this. `audit` is null when no audit log is kept.
  SessionLog(core::Observer& metrics, const log::Logger& logger, audit::AuditLog* audit)
      : metrics_(metrics), logger_(logger), audit_(audit) {}

  void OnRpc(std::string_view method, absl::StatusCode code,
             std::optional<std::chrono::nanoseconds> duration) override {
    metrics_.OnRpc(method, code, duration);
  }
  void OnConnectionRefused(std::string_view reason) override { metrics_.OnConnectionRefused(reason); }
  void OnSessionOpened(SessionId id, const core::Caller& caller) override;
  void OnSessionEnded(SessionId id, const core::Caller& caller, core::EndCause cause,
                      const core::Reclaimed& reclaimed) override;
  void OnRegistered(const core::RegistrationReport& report) override { metrics_.OnRegistered(report); }
  void OnDeregistered(const absl::Status& status) override { metrics_.OnDeregistered(status); }
  void OnTokensIssued(uint64_t local, uint64_t remote) override { metrics_.OnTokensIssued(local, remote); }
  void OnTokensRevoked(uint64_t pairs, std::string_view cause) override { metrics_.OnTokensRevoked(pairs, cause); }
  void OnDecision(const core::Decision& decision) override {
    metrics_.OnDecision(decision);
    if (audit_ != nullptr) {
      audit_->Write(decision);
    }
  }

 private:
  core::Observer& metrics_;
  const log::Logger& logger_;
  audit::AuditLog* const audit_;
};

}  // namespace rnicd::app
