#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/rendezvous.h"
#include "client/libfabric/connection/requests.h"

namespace rnicd::fi {

// A passive endpoint (fid_pep). It takes its name at fi_setname or fi_listen, and has a queue before it listens.
// Threads: as fi_domain(3) asks of its user: calls for one endpoint come one after the other, but for fi_reject and
// what
//          the queue does.
class PassiveEndpoint {
 public:
  static int Open(fi_info* info, fid_pep** endpoint, void* context);
  // Null for another object.
  static PassiveEndpoint* Of(fid* fid);
  bool GetBoundAddress(sockaddr_storage* address) const;

  PassiveEndpoint(const PassiveEndpoint&) = delete;
  PassiveEndpoint& operator=(const PassiveEndpoint&) = delete;

 private:
  struct Handle {
    fid_pep pep;
    PassiveEndpoint* endpoint;
  };

  // Takes over the info.
  PassiveEndpoint(fi_info* info, void* context);
  ~PassiveEndpoint();

  static fi_ops* FidOps();
  static fi_ops_ep* EndpointOps();
  static fi_ops_cm* ConnectionOps();

  static int Close(fid* endpoint);
  static int Bind(fid* endpoint, fid* to, uint64_t flags);
  static int Control(fid* endpoint, int command, void* argument);
  static int GetOption(fid* endpoint, int level, int name, void* value, size_t* bytes);
  static int SetName(fid* endpoint, void* address, size_t bytes);
  static int GetName(fid* endpoint, void* address, size_t* bytes);
  static int Listen(fid_pep* endpoint);
  static int Reject(fid_pep* endpoint, fid* request, const void* data, size_t bytes);

  int TakeName();

  Handle handle_ = {};
  fi_info* const info_;
  sockaddr_storage wanted_ = {};
  // The system has a limit of its own.
  int backlog_ = 4096;
  EventQueue* queue_ = nullptr;
  // Null without a name.
  std::unique_ptr<Listener> listener_;
  // Null before fi_listen. Ends before the listener, which it uses.
  std::unique_ptr<Requests> requests_;
};

}  // namespace rnicd::fi
