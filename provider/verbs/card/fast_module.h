#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernel/rnicd_fr/rnicd_fr.h"

namespace rnicd::provider {

// The requests to the kernel module rnicd_fr, one to one, so that tests can substitute a module of their own. A domain
// file is named by its descriptor.
// Results: 0 or a positive errno; those that make something return it in the last argument.
// Threads: safe.
// Source: kernel/rnicd_fr/rnicd_fr.h.
class FastModule {
 public:
  virtual ~FastModule() = default;
  // RNICD_FR_TAKE for the protection domain. `out.domain_fd` must be passed to Close before the domain is freed.
  virtual int Take(ibv_pd* pd, uint8_t port, uint8_t gid_index, rnicd_fr_take& out) = 0;
  virtual void Close(int domain) = 0;
  // Whole pages.
  virtual int Map(int domain, std::span<std::byte> pages, uint32_t& mapping) = 0;
  virtual int Unmap(int domain, uint32_t mapping) = 0;
  virtual int CreateRegion(int domain, uint32_t pages, rnicd_fr_create_region& region) = 0;
  virtual int DestroyRegion(int domain, uint32_t region) = 0;
  // The results are in the operations; the error is that of the call as a whole.
  virtual int Submit(int domain, std::span<rnicd_fr_op> ops, std::span<const rnicd_fr_run> runs) = 0;
};

// Opens /dev/rnicd_fr. Needs CAP_NET_ADMIN, so it must be called before the process drops its capabilities. Null when
// there is no such device, it may not be opened, or it is of another version; errno has the cause (EPROTO: the
// version).
std::unique_ptr<FastModule> OpenFastModule();

// A domain that the module has taken.
// Lifetime: shared by what is made in it; outlived by its protection domain.
class ModuleDomain {
 public:
  ModuleDomain(FastModule& module, const rnicd_fr_take& taken)
      : module_(module), file_(taken.domain_fd), region_pages_max_(taken.region_pages_max) {}
  ModuleDomain(const ModuleDomain&) = delete;
  ModuleDomain& operator=(const ModuleDomain&) = delete;
  ~ModuleDomain() { module_.Close(file_); }

  FastModule& module() const { return module_; }
  int file() const { return file_; }
  uint32_t region_pages_max() const { return region_pages_max_; }

 private:
  FastModule& module_;
  const int file_;
  const uint32_t region_pages_max_;
};

}  // namespace rnicd::provider
