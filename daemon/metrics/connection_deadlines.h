#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::metrics {

// Limits on what slow clients can hold of a server.
struct ConnectionLimits {
  // Time from the start of a connection until its request is complete.
  std::chrono::nanoseconds request_time;
  // Time from the beginning of a response until its client has taken all of it.
  std::chrono::nanoseconds response_time;
  // Connections whose request is not complete.
  size_t requests;
  // Connections whose response is not taken yet, and the bytes of their bodies.
  size_t responses;
  size_t response_bytes;
};

// The open connections of a server. A connection past its time is cut off, and so is the oldest one where a new one
// exceeds a limit: slow clients then displace each other, and never a quick client. To cut off is to shut the socket
// down, which the server's event loop sees; the server closes it.
// Lifetime: outlived by the clock; the server calls Remove for all connections before the destructor.
// Threads: safe.
class ConnectionDeadlines {
 public:
  ConnectionDeadlines(const ConnectionLimits& limits, const Clock& clock);
  ~ConnectionDeadlines();
  ConnectionDeadlines(const ConnectionDeadlines&) = delete;
  ConnectionDeadlines& operator=(const ConnectionDeadlines&) = delete;

  void Add(int fd) RNICD_EXCLUDES(mutex_);
  // No time is limited until the response begins: the server itself is at work.
  void FinishRequest(int fd) RNICD_EXCLUDES(mutex_);
  void BeginResponse(int fd, size_t bytes) RNICD_EXCLUDES(mutex_);
  // To be called before `fd` is closed: afterwards its number may be that of another connection.
  void Remove(int fd) RNICD_EXCLUDES(mutex_);

 private:
  enum class Phase : uint8_t { kRequest, kAtWork, kResponse, kCutOff };
  struct Connection {
    Phase phase = Phase::kRequest;
    // Instant::max() where no time is limited.
    Instant deadline = Instant::max();
    size_t response_bytes = 0;
  };
  struct Use {
    size_t connections = 0;
    size_t bytes = 0;
  };

  void Run() RNICD_EXCLUDES(mutex_);
  // Returns the deadline of the next connection to be cut off; Instant::max() if there is none.
  Instant CutOffLate(Instant now) RNICD_REQUIRES(mutex_);
  void CutOffOldest(Phase phase) RNICD_REQUIRES(mutex_);
  Use UseOf(Phase phase) const RNICD_REQUIRES(mutex_);
  void SetDeadline(Connection& connection, Instant deadline) RNICD_REQUIRES(mutex_);

  const ConnectionLimits limits_;
  const Clock& clock_;
  Mutex mutex_;
  ConditionVariable changed_;
  // The key is the descriptor.
  std::map<int, Connection> connections_ RNICD_GUARDED_BY(mutex_);
  // Time of the thread's next check without a wake-up.
  Instant next_look_ RNICD_GUARDED_BY(mutex_) = Instant::max();
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::metrics
