#include "tests/vm/bench/direct.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/unique_fd.h"

#include "tests/support/process/memory_file.h"

namespace rnicd::vm_bench {
namespace {

std::string Errno(const std::string& call) { return call + ": " + std::strerror(errno); }

}  // namespace

DirectCard::DirectCard() {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  Require(devices != nullptr, Errno("ibv_get_device_list"));
  for (ibv_device** device = devices; *device != nullptr; ++device) {
    if (std::strcmp(ibv_get_device_name(*device), kCard) == 0) {
      context_ = ibv_open_device(*device);
    }
  }
  ibv_free_device_list(devices);
  Require(context_ != nullptr, std::string("there is no card ") + kCard + "; run this in the guest (scripts/bench)");
  pd_ = ibv_alloc_pd(context_);
  Require(pd_ != nullptr, Errno("ibv_alloc_pd"));
}

DirectCard::~DirectCard() {
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

ibv_mr* DirectCard::Register(std::span<std::byte> bytes) {
  ibv_mr* const region = ibv_reg_mr(pd_, bytes.data(), bytes.size(),
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  Require(region != nullptr, Errno("ibv_reg_mr"));
  return region;
}

void DirectCard::Deregister(ibv_mr* region) { Require(ibv_dereg_mr(region) == 0, Errno("ibv_dereg_mr")); }

OwnMemory::OwnMemory(Source source, uint64_t size) {
  UniqueFd file;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (source == Source::kFile) {
    file = test::MakeMemfd(size, 0);
    Require(file.valid(), Errno("memfd_create"));
    flags = MAP_SHARED;
  } else if (source == Source::kHugePages) {
    flags |= MAP_HUGETLB;
  }
  void* const address = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  Require(address != MAP_FAILED, Errno("mmap"));
  bytes_ = {static_cast<std::byte*>(address), size};
  if (source == Source::kSmallPages) {
    Require(madvise(address, size, MADV_NOHUGEPAGE) == 0, Errno("madvise(MADV_NOHUGEPAGE)"));
  } else if (source == Source::kAnyPages) {
    Require(madvise(address, size, MADV_HUGEPAGE) == 0, Errno("madvise(MADV_HUGEPAGE)"));
  }
}

OwnMemory::~OwnMemory() { munmap(bytes_.data(), bytes_.size()); }

void OwnMemory::Populate(std::span<std::byte> bytes) {
  Require(madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE) == 0, Errno("madvise(MADV_POPULATE_WRITE)"));
}

void OwnMemory::Touch() {
  for (uint64_t offset = 0; offset < bytes_.size(); offset += kSmallPage) {
    *const_cast<volatile std::byte*>(&bytes_[offset]) = std::byte{1};
  }
}

void RegisterAndDeregister(DirectCard& card, std::span<std::byte> memory, uint64_t bytes, size_t count) {
  std::vector<ibv_mr*> regions;
  regions.reserve(count);
  for (size_t index = 0; index < count; ++index) {
    regions.push_back(card.Register(memory.subspan(index * bytes, bytes)));
  }
  for (ibv_mr* const region : regions) {
    DirectCard::Deregister(region);
  }
}

}  // namespace rnicd::vm_bench
