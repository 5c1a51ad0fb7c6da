#include "daemon/core/request/lease.h"

#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

// The socket of a dying process may close a moment before the process counts as exited.
constexpr std::chrono::milliseconds kExitGrace{5};

EndCause Refine(EndCause cause, const Caller& owner) {
  const bool died =
      cause == EndCause::kConnectionLost && owner.handle != nullptr && owner.handle->HasExited(kExitGrace);
  return died ? EndCause::kProcessExited : cause;
}

// The tenant's session limits, with the node's where the tenant sets none.
Limits SessionLimits(const Limits& of_tenant, const Limits& of_node) {
  Limits limits = of_node;
  for (size_t index = 0; index < kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (of_tenant[resource] != 0) {
      limits[resource] = of_tenant[resource];
    }
  }
  return limits;
}

absl::Status RateError(const RateLimiter& rate) {
  return MakeError(ErrorInfo{
      .reason = ErrorReason::RATE_LIMITED, .limit = rate.per_second(), .used = rate.per_second(), .requested = 1});
}

}  // namespace

SessionGuard::~SessionGuard() {
  if (lease_ != nullptr) {
    lease_->EndGuard();
  }
}

Lease::Lease(Node& node, SessionId id, Caller owner, std::string label, Charge charge, std::shared_ptr<Tenant> tenant)
    : node_(node),
      id_(id),
      owner_(std::move(owner)),
      label_(std::move(label)),
      opened_(node.clock.Now()),
      tenant_(std::move(tenant)),
      charge_(std::move(charge)),
      ledger_(
          std::make_shared<Ledger>(SessionLimits(tenant_->limits().session, node.limits.session), tenant_->ledger())),
      rate_(node.clock, tenant_->limits().session_rate) {}

absl::Status Lease::AdmitCall(std::chrono::nanoseconds* wait) {
  if (const auto own = rate_.Take(); own.has_value()) {
    *wait = *own;
    return RateError(rate_);
  }
  if (const auto shared = tenant_->rate().Take(); shared.has_value()) {
    rate_.Undo();
    *wait = *shared;
    return RateError(tenant_->rate());
  }
  return absl::OkStatus();
}

void Lease::CountBytes(uint64_t bytes, uint64_t per_request) {
  rate_.Count(bytes / per_request);
  tenant_->rate().Count(bytes / per_request);
}

void Lease::ReportDecision(std::string_view what, std::string object, const absl::Status& status,
                           std::string_view note) const {
  if (!status.ok()) {
    tenant_->tally()->CountRefusal(status);
  }
  ReportDetail(what, std::move(object), status, note);
}

void Lease::ReportDetail(std::string_view what, std::string object, const absl::Status& status,
                         std::string_view note) const {
  node_.observer.Report(Decision{.what = what,
                                 .caller = &owner_,
                                 .tenant = tenant_->name(),
                                 .workload = tenant_->workload(),
                                 .session = id_,
                                 .object = std::move(object),
                                 .status = status,
                                 .note = note});
}

absl::StatusOr<SessionGuard> Lease::Begin() {
  MutexLock lock(life_mutex_);
  if (life_.ending) {
    return MakeError(ErrorReason::SESSION_ENDING);
  }
  ++life_.running;
  return SessionGuard(shared_from_this());
}

SessionGuard Lease::Hold() {
  MutexLock lock(life_mutex_);
  ++life_.running;
  return SessionGuard(shared_from_this());
}

void Lease::EndGuard() {
  MutexLock lock(life_mutex_);
  --life_.running;
  if (life_.running == 0 && life_.ending) {
    node_.reapers.PostFor(tenant_->number(), [self = shared_from_this()] { self->TearDown(); });
  }
}

bool Lease::ending() const {
  MutexLock lock(life_mutex_);
  return life_.ending;
}

bool Lease::ended() const {
  MutexLock lock(life_mutex_);
  return life_.ended;
}

EndCause Lease::end_cause() const {
  MutexLock lock(life_mutex_);
  return life_.cause;
}

void Lease::End(EndCause cause, std::function<void(const Reclaimed&)> on_ended) {
  Reclaimed reclaimed;
  {
    MutexLock lock(life_mutex_);
    if (!life_.ended) {
      life_.on_ended.push_back(std::move(on_ended));
      if (!life_.ending) {
        life_.ending = true;
        life_.cause = cause;
        // Held until the queue is cancelled; the last request to finish then starts the teardown.
        ++life_.running;
        auto held = std::make_shared<SessionGuard>(SessionGuard(shared_from_this()));
        node_.reapers.PostFor(tenant_->number(), [this, held = std::move(held)] { CancelWaiting(); });
      }
      return;
    }
    reclaimed = life_.reclaimed;
  }
  on_ended(reclaimed);
}

void Lease::TearDown() {
  const EndCause cause = Refine(end_cause(), owner_);
  const Reclaimed reclaimed = Reclaim(cause);
  // Reported before the session's charge is refunded: a reader that sees no holdings also sees these counts.
  node_.observer.Report(SessionEnded{.id = id_, .caller = owner_, .cause = cause, .reclaimed = reclaimed});
  ReportDecision("session.end", "", absl::OkStatus(), EndCauseName(cause));
  charge_.Refund();
  events_.Finish(SessionEnding{cause});
  std::vector<std::function<void(const Reclaimed&)>> on_ended;
  {
    MutexLock lock(life_mutex_);
    life_.ended = true;
    life_.cause = cause;
    life_.reclaimed = reclaimed;
    on_ended.swap(life_.on_ended);
  }
  for (const auto& callback : on_ended) {
    callback(reclaimed);
  }
}

}  // namespace rnicd::core
