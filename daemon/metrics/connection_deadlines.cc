#include "daemon/metrics/connection_deadlines.h"

#include <algorithm>

#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

ConnectionDeadlines::ConnectionDeadlines(const ConnectionLimits& limits, const Clock& clock)
    : limits_(limits), clock_(clock) {
  thread_ = std::thread([this] { Run(); });
}

ConnectionDeadlines::~ConnectionDeadlines() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void ConnectionDeadlines::Add(int fd) {
  LimitKernel(fd, limits_.response_time);
  MutexLock lock(mutex_);
  if (UseOf(Phase::kRequest).connections >= limits_.requests) {
    CutOffOldest(Phase::kRequest);
  }
  SetDeadline(connections_[fd], clock_.Now() + limits_.request_time);
}

void ConnectionDeadlines::FinishRequest(int fd) {
  MutexLock lock(mutex_);
  const auto found = connections_.find(fd);
  if (found != connections_.end() && found->second.phase == Phase::kRequest) {
    found->second = {.phase = Phase::kAtWork};
  }
}

void ConnectionDeadlines::BeginResponse(int fd, size_t bytes) {
  MutexLock lock(mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end() || found->second.phase != Phase::kAtWork) {
    return;
  }
  for (Use use = UseOf(Phase::kResponse);
       use.connections > 0 && (use.connections >= limits_.responses || use.bytes + bytes > limits_.response_bytes);
       use = UseOf(Phase::kResponse)) {
    CutOffOldest(Phase::kResponse);
  }
  found->second = {.phase = Phase::kResponse, .response_bytes = bytes};
  SetDeadline(found->second, clock_.Now() + limits_.response_time);
}

void ConnectionDeadlines::Remove(int fd) {
  MutexLock lock(mutex_);
  connections_.erase(fd);
}

void ConnectionDeadlines::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    next_look_ = CutOffLate(clock_.Now());
    if (next_look_ == Instant::max()) {
      changed_.Wait(mutex_);
    } else {
      clock_.WaitUntil(changed_, mutex_, next_look_);
    }
  }
}

Instant ConnectionDeadlines::CutOffLate(Instant now) {
  Instant next = Instant::max();
  for (auto& [fd, connection] : connections_) {
    if (connection.deadline <= now) {
      ShutDown(fd);
      connection = {.phase = Phase::kCutOff};
    }
    next = std::min(next, connection.deadline);
  }
  return next;
}

// Within a phase the deadlines are in the order of age.
void ConnectionDeadlines::CutOffOldest(Phase phase) {
  const auto is_older = [phase](const auto& left, const auto& right) {
    const bool left_counts = left.second.phase == phase;
    const bool right_counts = right.second.phase == phase;
    return left_counts != right_counts ? left_counts : left.second.deadline < right.second.deadline;
  };
  const auto oldest = std::min_element(connections_.begin(), connections_.end(), is_older);
  if (oldest != connections_.end() && oldest->second.phase == phase) {
    ShutDown(oldest->first);
    oldest->second = {.phase = Phase::kCutOff};
  }
}

ConnectionDeadlines::Use ConnectionDeadlines::UseOf(Phase phase) const {
  Use use;
  for (const auto& [fd, connection] : connections_) {
    if (connection.phase == phase) {
      ++use.connections;
      use.bytes += connection.response_bytes;
    }
  }
  return use;
}

void ConnectionDeadlines::SetDeadline(Connection& connection, Instant deadline) {
  connection.deadline = deadline;
  if (deadline < next_look_) {
    changed_.NotifyOne();
  }
}

}  // namespace rnicd::metrics
