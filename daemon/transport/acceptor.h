#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/door/bulkhead.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/inbox.h"

namespace rnicd::transport {

// A thread that accepts the connections of some doors, in turns, and passes those on that are let in.
// Lifetime: what it is given outlives it.
// Threads:  Listen and Post from any; Stop once more does nothing.
class Acceptor {
 public:
  using OnAdmitted = std::function<void(AdmittedConnection)>;

  // While `blocked_max` sockets wait to be closed nobody is accepted: each takes a descriptor. `on_admitted` is called
  // on the acceptor's thread.
  Acceptor(Admission admission, core::Node& node, const log::Logger& logger, door::Bulkhead& closers,
           size_t blocked_max, OnAdmitted on_admitted);
  ~Acceptor();

  // Accepts from this listener. An earlier one of the door is closed after those who wait in it have been accepted.
  absl::Status Listen(Door door, SocketKind kind, UniqueFd listener);
  // Errors: kUnavailable without descriptors.
  absl::Status Start();
  // Refuses whoever still waits to be accepted, and ends the thread.
  void Stop();
  // Runs the task on the thread, between two connections.
  void Post(Inbox::Task task) { inbox_.Post(std::move(task)); }

 private:
  void Run();
  void AcceptSome(Door door);
  struct Listener {
    SocketKind kind;
    UniqueFd socket;
  };
  void Take(Door door, Listener listener);

  // False when no connection is left to accept.
  bool AcceptOne(Door door, const Listener& listener);
  // After a failed accept: false when nobody can be accepted for now.
  bool GoesOnAfter(int error, const Listener& listener);
  // Accepts one with the spare descriptor, to close it. False when there is none to accept.
  bool TurnAway(const Listener& listener);
  // Stops to accept for a moment, or goes on.
  void Pause(bool paused);
  void Watch();
  // Closes a listener and all that wait in it.
  void Close(Listener listener);

  Admission admission_;
  core::Node& node_;
  const log::Logger& logger_;
  door::Bulkhead& closers_;
  const size_t blocked_max_;
  const OnAdmitted on_admitted_;
  UniqueFd epoll_;
  Inbox inbox_;
  // Closed to make room for one accept when no descriptor is left, so that the connection can be refused.
  UniqueFd spare_;
  std::map<Door, Listener> listeners_;
  bool paused_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rnicd::transport
