#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "client/libfabric/handle.h"

namespace rnicd::fi {

// Something with a descriptor that an event queue watches.
class Watched {
 public:
  // Called by the thread that reads the queue, with the queue's connection_mutex held.
  // May destroy the object.
  virtual void OnReady() = 0;

 protected:
  ~Watched() = default;
};

// An event queue (fi_eq(3)). Connections and listeners that belong to it progress when it is read, waited for
// or asked by fi_trywait. Its descriptor (FI_WAIT_FD) is an epoll of all that it watches.
// Threads: safe.
class EventQueue {
 public:
  // fi_ops_fabric::eq_open. Wait objects: none, any, a descriptor.
  // Errors: -FI_EINVAL unknown flags; -FI_ENOSYS another wait object; what the system says of its descriptors.
  static int Open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
  static EventQueue& Of(fid* eq) { return ObjectOf<fid_eq, EventQueue>(eq); }

  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Guards what is watched: the state of connections and listeners. Taken before the queue's own mutex, which only
  // guards the queued events: Report, ReportError and Forget may be called with or without this one.
  Mutex& connection_mutex() { return connection_mutex_; }

  // An endpoint has been bound to the queue, or one that was is closed. The queue closes when none is left.
  void Bind() { ++bound_; }
  void Unbind() { --bound_; }

  // Watches a descriptor for the events of epoll, level-triggered, until Unwatch. Calling it again changes the events.
  // These three: with the connection_mutex.
  int Watch(int fd, uint32_t events, Watched& watched);
  // Before the descriptor is closed.
  void Unwatch(int fd);
  // Does not watch a descriptor for now, because what it is ready for cannot be done. It is tried again when the queue
  // progresses next, and when another descriptor is about to be free.
  void Pause(int fd);

  // Peers that no queue pair of this adapter can reach: what connects to one again is refused at once, for RxM would
  // try for ever. With the connection_mutex.
  std::set<std::string>& unreachable() { return unreachable_; }

  // Queues FI_CONNECTED or FI_SHUTDOWN of an endpoint, or FI_CONNREQ with its `info`, and the private data.
  void Report(uint32_t event, fid& of, std::span<const std::byte> data = {}, OwnedInfo info = nullptr);
  // Queues FI_SHUTDOWN of an endpoint whose session has ended. The read that notices the end does not report it yet: a
  // program that reads completion queues before event queues has the error there first. RxM must, because it drops
  // receives of a connection that ends, and with a part of a message 1.17 never returns.
  void ReportEnd(fid& of);
  // Queues an error for fi_eq_readerr; `error` is a positive errno value.
  void ReportError(fid& of, int error, std::span<const std::byte> data);
  // Drops all events of an object that is being closed.
  void Forget(fid& of);

  // Handles what is ready, without waiting.
  void Progress();
  // fi_trywait: 0 when the descriptor will become readable for the next event, -FI_EAGAIN when there is one already.
  int TryWait();

 private:
  struct Event {
    uint32_t event = 0;
    // Zero but for errors.
    int error = 0;
    // Null for what the program has written.
    fid* of = nullptr;
    // From the next progress on it can be read.
    bool later = false;
    // Only FI_CONNREQ has one.
    OwnedInfo info;
    std::vector<std::byte> data;
  };
  struct WatchEntry {
    Watched* watched;
    uint32_t events;
    // Tells an event of epoll for this watch from one for another that had the same descriptor.
    uint32_t generation;
  };

  EventQueue(const fid_fabric* fabric, const fi_eq_attr& attr, void* context);
  ~EventQueue() = default;

  static int Close(fid* eq);
  static int Control(fid* eq, int command, void* argument);
  static ssize_t Read(fid_eq* eq, uint32_t* event, void* buffer, size_t bytes, uint64_t flags);
  static ssize_t ReadError(fid_eq* eq, fi_eq_err_entry* entry, uint64_t flags);
  static ssize_t Write(fid_eq* eq, uint32_t event, const void* buffer, size_t bytes, uint64_t flags);
  static const char* Text(fid_eq* eq, int error, const void* data, char* buffer, size_t bytes);
  static ssize_t WaitAndRead(fid_eq* eq, uint32_t* event, void* buffer, size_t bytes, int timeout, uint64_t flags);

  void ResumePaused();
  bool SetEpoll(int operation, int fd, const WatchEntry& watch, uint32_t events);
  void Add(Event event);
  void DropFirst() RNICD_REQUIRES(mutex_);
  void SetReadable(bool readable) RNICD_REQUIRES(mutex_);
  ssize_t Take(uint32_t* event, void* buffer, size_t bytes, bool peek);

  Handle<fid_eq, EventQueue> handle_;
  const bool has_wait_object_;
  const bool takes_writes_;
  // Whether the program may give fi_eq_readerr a buffer: since version 1.5 of the interface.
  const bool copies_error_data_;
  UniqueFd epoll_;
  // In the epoll, and readable while an event is queued.
  UniqueFd queued_;

  std::atomic<int> bound_ = 0;

  Mutex connection_mutex_;
  // These four: guarded by the connection_mutex_.
  std::set<std::string> unreachable_;
  std::unordered_map<int, WatchEntry> watches_;
  std::vector<int> paused_;
  uint32_t generations_ = 0;

  Mutex mutex_;
  std::deque<Event> events_ RNICD_GUARDED_BY(mutex_);
  // What fi_eq_readerr gave last.
  std::vector<std::byte> error_data_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::fi
