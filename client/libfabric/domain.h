#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "client/c/rnicd.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/memory.h"

namespace rnicd::fi {

class Endpoint;

// An opened domain (fi_domain(3)): one session with the daemon.
class Domain {
 public:
  // fi_ops_fabric::domain.
  // Errors: those of rnicd_open_session.
  static int Open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);
  static Domain& Of(fid* domain) { return ObjectOf<fid_domain, Domain>(domain); }

  rnicd_session* session() const { return session_; }
  Memory& memory() { return memory_; }

  // Handles what the daemon has to say: the end of peers, and of the session. Nothing if another thread is at it.
  void Progress();
  // Readable when Progress has something to do.
  int descriptor() const { return rnicd_fd(session_); }

  // Endpoints that are told of the session's end.
  void Add(Endpoint& endpoint);
  void Remove(Endpoint& endpoint);
  // Queues and endpoints that a program must close before the domain.
  void AddUser() { ++users_; }
  void RemoveUser() { --users_; }

 private:
  Domain() = default;

  ~Domain() = default;
  friend std::default_delete<Domain>;
  static int Close(fid* domain);
  static void OnSessionEnded(void* context, const rnicd_error* why);

  Handle<fid_domain, Domain> handle_;
  rnicd_session* session_ = nullptr;
  Memory memory_{*this};
  std::atomic<int> users_ = 0;
  std::atomic<bool> in_progress_ = false;
  Mutex mutex_;
  std::vector<Endpoint*> endpoints_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::fi
