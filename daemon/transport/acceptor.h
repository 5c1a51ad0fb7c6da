#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/door/bulkhead.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/handed_door.h"
#include "daemon/transport/inbox.h"

namespace rnicd::transport {

// A thread that accepts the connections of some listeners, in turns, and passes those on that are let in. A listener
// whose connections come too fast is left alone for a moment: then its clients wait in the kernel, where they cost
// nobody anything.
// Lifetime: what it is given outlives it.
// Threads:  Listen, Leave and Post from any; Lend, TakeBack and Stop from one. Stop once more does nothing.
class Acceptor {
 public:
  using OnAdmitted = std::function<void(AdmittedConnection)>;

  // While `blocked_max` sockets wait to be closed nobody is accepted: each takes a descriptor. `on_admitted` is called
  // on the acceptor's thread.
  Acceptor(Admission admission, core::Node& node, const log::Logger& logger, door::Bulkhead& closers,
           size_t blocked_max, OnAdmitted on_admitted);
  ~Acceptor();

  // Accepts from this listener. An earlier one of the same door and tenant is closed after those who wait in it have
  // been accepted. Errors: kUnavailable without memory for it.
  absl::Status Listen(SocketKind kind, NamedListener listening);
  // Closes a listener after it has turned away those who wait in it.
  void Discard(SocketKind kind, UniqueFd listening);
  // Closes the listeners of a grant's door, and then runs the task.
  void Leave(std::shared_ptr<core::Tenant> tenant, Inbox::Task done);
  // Errors: kUnavailable without descriptors.
  absl::Status Start();
  // Accepts nobody until TakeBack: copies of its listeners are for another daemon, and its end closes them for nobody
  // else. Errors: kUnavailable without descriptors.
  absl::StatusOr<std::vector<HandedSocket>> Lend();
  void TakeBack();
  // Refuses whoever still waits to be accepted, and ends the thread.
  void Stop();
  // Runs the task on the thread, between two connections.
  void Post(Inbox::Task task) { inbox_.Post(std::move(task)); }
  // For tasks on the thread.
  Admission& admission() { return admission_; }

 private:
  struct Listener;
  using Place = std::pair<Door, const core::Tenant*>;

  void Run();
  // Runs the task on the thread, and waits for it.
  void RunAndWait(Inbox::Task task);
  absl::StatusOr<std::vector<HandedSocket>> Copies() const;
  void AcceptSome(Listener& listener);
  void Take(std::shared_ptr<Listener> listener);

  // False when no connection is left to accept.
  bool AcceptOne(const Listener& listener);
  // After a failed accept: false when nobody can be accepted for now.
  bool GoesOnAfter(int error, const Listener& listener);
  // Accepts one with the spare descriptor, to close it. False when there is none to accept.
  bool TurnAway(const Listener& listener);
  // Stops to accept for a moment, or goes on.
  void Pause(bool paused);
  // Leaves one listener alone for a moment.
  void Rest(Listener& listener);
  // The tenant of the door, or null.
  void ReportStorm(core::Tenant* tenant) const;
  void WakeRested();
  // How long the thread may sleep, in milliseconds; -1 without a limit.
  int Timeout() const;
  void Watch(Listener& listener) const;
  // Closes a listener and all that wait in it.
  void Close(Listener& listener);

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
  std::map<Place, std::shared_ptr<Listener>> listeners_;
  // Listeners that are left alone, the first to be awakened in front.
  std::deque<std::weak_ptr<Listener>> resting_;
  bool paused_ = false;
  bool lent_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rnicd::transport
