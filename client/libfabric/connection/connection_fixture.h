#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "client/libfabric/connection/connectable.h"
#include "client/libfabric/connection/connection.h"
#include "client/libfabric/connection/event_queue.h"

namespace rnicd::fi {

std::span<const std::byte> BytesOf(std::string_view text);
std::string TextOf(std::span<const std::byte> bytes);
// 127.0.0.1
sockaddr_storage Loopback(uint16_t port);

// An endpoint whose queue pair is a name.
class FakeEndpoint final : public Connectable {
 public:
  explicit FakeEndpoint(std::string_view name) : name_(name) { fid_.fclass = FI_CLASS_EP; }
  fid& Fid() override { return fid_; }
  std::span<const std::byte> QueuePairAddress() const override { return BytesOf(name_); }
  int ConnectQueuePair(std::span<const std::byte> address) override {
    connected_with = TextOf(address);
    return connect_result;
  }
  void OnPeerGone() override { ++times_peer_gone; }

  std::string connected_with;
  int connect_result = 0;
  int times_peer_gone = 0;

 private:
  std::string name_;
  struct fid fid_ = {};
};

// What came from an event queue. `error` is positive for one of fi_eq_readerr.
struct Seen {
  ssize_t result = 0;
  uint32_t event = 0;
  int error = 0;
  fid* of = nullptr;
  std::string data;
  // Null but for FI_CONNREQ.
  std::unique_ptr<fi_info, void (*)(fi_info*)> info{nullptr, fi_freeinfo};
};

// An event queue as a program uses it.
class Queue {
 public:
  explicit Queue(fi_wait_obj wait = FI_WAIT_FD, uint64_t flags = FI_WRITE);
  ~Queue();
  EventQueue& operator*() const { return EventQueue::Of(&eq->fid); }
  // The next event, waited for; a result of -FI_EAGAIN only when it fails to come.
  Seen Next();
  // What has come, without waiting.
  Seen Read();
  bool Readable() const;

  fid_eq* eq = nullptr;

 private:
  Seen Finish(Seen seen, std::span<const std::byte> buffer) const;
};

// Waits for an event and reads others' queues meanwhile, as they have no thread.
Seen Next(Queue& queue, const std::vector<Queue*>& others);

// A passive endpoint that listens at a free port of 127.0.0.1.
class Listening {
 public:
  explicit Listening(Queue& queue);
  ~Listening();
  void Close();
  const sockaddr_storage& address() const { return address_; }

  fid_pep* pep = nullptr;

 private:
  sockaddr_storage address_ = {};
};

// While it lives, connections are Unix sockets in a new folder.
class FolderOfSockets {
 public:
  FolderOfSockets();
  ~FolderOfSockets();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A peer that speaks for itself: a connected socket, by TCP or in the folder.
UniqueFd RawPeer(const sockaddr_storage& address);
// Waits until the other side has closed it.
bool ClosedByPeer(const UniqueFd& socket, Queue& progress);

}  // namespace rnicd::fi
