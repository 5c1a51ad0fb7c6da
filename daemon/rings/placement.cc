#include "daemon/rings/placement.h"

namespace rnicd::rings {
namespace {

// How long a client that shares the processor is expected to go on.
constexpr std::chrono::milliseconds kClientStays{1};

}  // namespace

ring::Processors Placement::Choose(size_t thread, const ring::Processors& clients, Instant now) {
  MutexLock lock(mutex_);
  threads_[thread] = {.clients = clients, .at = now};
  ring::Processors busy;
  for (const Seen& seen : threads_) {
    // Not what a thread has seen that sleeps since.
    if (now - seen.at < 2 * ThreadPlace::kPeriod) {
      busy |= seen.clients;
    }
  }
  const bool all_busy = (allowed_ & ~busy).none();
  const ring::Processors own = clients & allowed_;
  return all_busy && own.any() ? own : allowed_;
}

bool ThreadPlace::IsAClients(Instant now) const {
  return client_here_.has_value() && now - *client_here_ < kClientStays;
}

void ThreadPlace::Move(const ring::Processors& clients, Instant now) {
  moved_ = now;
  const ring::Processors wanted = placement_.Choose(thread_, clients, now);
  if (wanted != runs_on_) {
    ring::RunOn(wanted);
    runs_on_ = wanted;
  }
}

}  // namespace rnicd::rings
