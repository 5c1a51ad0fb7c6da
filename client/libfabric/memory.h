#pragma once

#include <rdma/fi_domain.h>

#include <map>
#include <memory>

#include "base/mutex.h"
#include "client/c/rnicd.h"
#include "client/libfabric/owned_pages.h"

namespace rnicd::fi {

class Domain;

// The registered memory of a domain. The daemon's pages take the place of the program's, at the same addresses and with
// their contents, while a region needs them.
class Memory {
 public:
  explicit Memory(Domain& domain) : domain_(domain) {}

  // Registers a buffer for what `access` says (FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE).
  // Errors: -FI_EOPNOTSUPP the buffer shares a page with something else, or its pages cannot be replaced; the log says
  //         which ways there are. -FI_ENOMEM. Those of rnicd_replace_memory and rnicd_register_mr.
  int Register(const void* buffer, size_t bytes, uint64_t access, void* context, fid_mr** region);
  bool Empty();
  // Token of a buffer that a program has named by fi_mr_desc; 0, which no region has, for null.
  static uint32_t LocalToken(const void* descriptor);

 private:
  // Replaced pages, as long as a region uses them.
  struct Pages {
    ~Pages() { rnicd_close_memory(memory); }
    // Not where the program has freed them, against the rules.
    bool AreInPlace() const { return file != 0 && FileUnder(range) == file; }

    PageRange range;
    rnicd_memory* memory = nullptr;
    uint64_t file = 0;
  };
  struct Region;

  static int Close(fid* region);
  int FindOrReplace(const PageRange& wanted, std::shared_ptr<Pages>* pages) RNICD_REQUIRES(mutex_);
  int Replace(const PageRange& wanted, std::shared_ptr<Pages>* pages) RNICD_REQUIRES(mutex_);

  Domain& domain_;
  Mutex mutex_;
  std::map<uintptr_t, std::weak_ptr<Pages>> replaced_ RNICD_GUARDED_BY(mutex_);
  size_t regions_ RNICD_GUARDED_BY(mutex_) = 0;
};

// fi_ops_domain::mr.
fi_ops_mr& MemoryOperations();

}  // namespace rnicd::fi
