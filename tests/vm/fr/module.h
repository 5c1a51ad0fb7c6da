#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/rnicd_fr/rnicd_fr.h"
#include "tests/vm/fr/card.h"

inline constexpr size_t kPage = 4096;

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void Close();

 private:
  int number_;
};

// 0, or the errno of the request.
int Call(int descriptor, unsigned long request, void* argument);

// Opens /dev/rnicd_fr; a number below 0 on failure, with errno.
int OpenControl();

// The request to take the card's domain. If the domain's number is not known, pd_id is no domain's.
rnicd_fr_take TakeRequest(const Card& card);

// Memory of whole pages, all zero at first.
class Pages {
 public:
  explicit Pages(size_t count);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint8_t* at(size_t page) const { return bytes_ + page * kPage; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(bytes_); }
  size_t bytes() const { return count_ * kPage; }

 private:
  size_t count_;
  uint8_t* bytes_;
};

// A registration of whole pages in the order of the runs, on a slot of a region.
struct Registration {
  uint32_t region = 0;
  uint32_t slot = 0;
  uint32_t key = 0;
  uint64_t base = 0;
  uint64_t length = kPage;
  uint32_t access = RNICD_FR_LOCAL_WRITE | RNICD_FR_REMOTE_READ | RNICD_FR_REMOTE_WRITE;
};

rnicd_fr_op RegisterOp(const Registration& registration, uint32_t first_run, uint32_t run_count);
rnicd_fr_op InvalidateOp(uint32_t region, uint32_t slot, uint32_t key);

// The domain of a card, taken by the module.
class Domain {
 public:
  Domain(int control, const Card& card);
  int file() const { return file_.number(); }
  uint32_t region_pages_max() const { return take_.region_pages_max; }
  void Close() { file_.Close(); }

  // Each returns 0 or an errno; the last argument gets the result.
  int Map(const Pages& pages, uint32_t& mapping);
  int Map(uint64_t address, uint64_t bytes, uint32_t& mapping);
  int Unmap(uint32_t mapping);
  int CreateRegion(uint32_t pages, rnicd_fr_create_region& region);
  int DestroyRegion(uint32_t region);
  // The call's errno; the results are in the operations.
  int Submit(std::span<rnicd_fr_op> ops, std::span<rnicd_fr_run> runs);
  // The result of one operation, or -errno of the call.
  int Run(rnicd_fr_op op, std::vector<rnicd_fr_run> runs);

 private:
  rnicd_fr_take take_;
  Descriptor file_;
};
