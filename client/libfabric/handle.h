#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdint>

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

}  // namespace rnicd::fi
