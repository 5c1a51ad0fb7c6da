#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstddef>

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

}  // namespace rnicd::fi
