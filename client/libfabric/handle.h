#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "client/libfabric/limits.h"

namespace rnicd::fi {

// What a user of libfabric holds: one of its structs, and behind that the object that it stands for.
template <typename Fid, typename Object>
struct Handle {
  Fid api{};
  Object* object = nullptr;
};

// The object of a handle. `api` is the first member of a Handle, and begins with its fid.
template <typename Fid, typename Object>
Object& ObjectOf(fid* api) {
  return *reinterpret_cast<Handle<Fid, Object>*>(api)->object;
}

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using OwnedInfo = std::unique_ptr<fi_info, FreeInfo>;

// Entry of an operation table for what the provider does not have.
template <typename Result, typename... Arguments>
Result Unsupported(Arguments...) {
  return static_cast<Result>(-FI_ENOSYS);
}

// The table of an object's fid, which has no more than these.
inline fi_ops FidOperations(int (*close)(fid*), int (*bind)(fid*, fid*, uint64_t) = Unsupported,
                            int (*control)(fid*, int, void*) = Unsupported) {
  return {.size = sizeof(fi_ops),
          .close = close,
          .bind = bind,
          .control = control,
          .ops_open = Unsupported,
          .tostr = Unsupported,
          .ops_set = Unsupported};
}

// The table of an endpoint and of a passive one: the one option that they have says how much private data a connect can
// carry.
inline fi_ops_ep& EndpointOperations() {
  static fi_ops_ep operations = {.size = sizeof(fi_ops_ep),
                                 .cancel = Unsupported,
                                 .getopt =
                                     [](fid* /*endpoint*/, int level, int name, void* value, size_t* bytes) {
                                       if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
                                         return -FI_ENOPROTOOPT;
                                       }
                                       if (std::exchange(*bytes, sizeof(size_t)) < sizeof(size_t)) {
                                         return -FI_ETOOSMALL;
                                       }
                                       *static_cast<size_t*>(value) = kConnectDataMax;
                                       return 0;
                                     },
                                 .setopt = Unsupported,
                                 .tx_ctx = Unsupported,
                                 .rx_ctx = Unsupported,
                                 .rx_size_left = Unsupported,
                                 .tx_size_left = Unsupported};
  return operations;
}

}  // namespace rnicd::fi
