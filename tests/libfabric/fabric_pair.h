#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/libfabric/handle.h"
#include "client/libfabric/info/info.h"
#include "client/libfabric/provider.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::fi {

// Closes what libfabric's users close by fi_close.
template <typename Fid>
struct CloseFid {
  void operator()(Fid* object) const { EXPECT_EQ(fi_close(&object->fid), 0); }
};
template <typename Fid>
using Owned = std::unique_ptr<Fid, CloseFid<Fid>>;

using Info = OwnedInfo;

// A context that a test recognizes.
inline void* Context(uintptr_t number) { return reinterpret_cast<void*>(number); }

// Pages of their own, filled with a pattern of `seed`.
class Pages {
 public:
  explicit Pages(size_t bytes, unsigned char seed = 0);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  bool Equals(const Pages& other, size_t bytes) const;

 private:
  unsigned char* data_;
  size_t size_;
};

// What one program opens: a fabric, a domain, and its queues.
struct Program {
  explicit Program(const fi_info* hints = nullptr, fi_wait_obj wait = FI_WAIT_FD);

  Owned<fid_mr> Register(const void* buffer, size_t bytes, uint64_t access) const;
  // The next event, with the entry's bytes; an error fails the test.
  uint32_t NextEvent(std::vector<std::byte>* entry = nullptr) const;
  // The next event, which must be an error.
  fi_eq_err_entry NextEventError() const;
  // The next completion; fails the test unless one comes.
  fi_cq_data_entry NextCompletion() const;
  fi_cq_err_entry NextError() const;
  // Endpoint of `of`, bound and enabled.
  Owned<fid_ep> MakeEndpoint(fi_info* of, uint64_t completion_flags = 0) const;

  Info info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_eq> events;
  Owned<fid_cq> completions;
};

// Two programs with connected endpoints, in one process.
struct Pair {
  explicit Pair(const fi_info* hints = nullptr, uint64_t completion_flags = 0);

  Program server;
  Program client;
  Owned<fid_ep> server_endpoint;
  Owned<fid_ep> client_endpoint;
};

// Hints that the provider satisfies.
Info Hints();

class LibfabricTest : public test::DaemonTest {
 protected:
  explicit LibfabricTest(const std::vector<std::string>& flags = {});
};

}  // namespace rnicd::fi
