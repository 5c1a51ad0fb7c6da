#include "daemon/audit/audit_log.h"

#include <string_view>
#include <utility>

#include "base/status.h"

namespace rnicd::audit {

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditOptions& options, const Clock& clock,
                                                         const log::Logger& logger) {
  RNICD_ASSIGN_OR_RETURN(AppendFile opened, AppendFile::Open(options.path));
  const auto file = std::make_shared<AppendFile>(std::move(opened));
  return std::make_unique<AuditLog>(
      options, clock, [file](std::string_view text) { return file->Append(text); }, logger);
}

AuditLog::AuditLog(const AuditOptions& options, const Clock& clock, AuditQueue::Append append,
                   const log::Logger& logger)
    : stop_timeout_(options.stop_timeout),
      logger_(logger),
      queue_(std::make_shared<AuditQueue>(options, clock, std::move(append), logger)),
      thread_([queue = queue_] { queue->Run(); }) {}

AuditLog::~AuditLog() {
  queue_->Stop();
  if (!thread_.EndBy(std::chrono::steady_clock::now() + stop_timeout_)) {
    queue_->Abandon();
    logger_.Error("the audit log did not take its last lines in time");
  }
}

}  // namespace rnicd::audit
