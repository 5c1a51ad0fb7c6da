#include "tests/vm/fr/module.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

void Descriptor::Close() {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

int Call(int descriptor, unsigned long request, void* argument) {
  return ioctl(descriptor, request, argument) == 0 ? 0 : errno;
}

int OpenControl() { return open("/dev/rnicd_fr", O_RDWR | O_CLOEXEC); }

rnicd_fr_take TakeRequest(const Card& card) {
  rnicd_fr_take take = {};
  take.device_index = card.index();
  take.uverbs_fd = card.context()->cmd_fd;
  take.pd_id = card.domain_id();
  take.pd_handle = card.pd()->handle;
  take.port = 1;
  take.gid_index = static_cast<uint32_t>(card.gid_slot());
  return take;
}

Pages::Pages(size_t count) : count_(count) {
  void* mapped = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  bytes_ = static_cast<uint8_t*>(mapped);
}

Pages::~Pages() { munmap(bytes_, bytes()); }

rnicd_fr_op RegisterOp(const Registration& registration, uint32_t first_run, uint32_t run_count) {
  rnicd_fr_op op = {};
  op.kind = RNICD_FR_REGISTER;
  op.region = registration.region;
  op.slot = registration.slot;
  op.key = registration.key;
  op.base = registration.base;
  op.length = registration.length;
  op.offset = static_cast<uint32_t>(registration.base % kPage);
  op.access = registration.access;
  op.first_run = first_run;
  op.run_count = run_count;
  return op;
}

rnicd_fr_op InvalidateOp(uint32_t region, uint32_t slot, uint32_t key) {
  rnicd_fr_op op = {};
  op.kind = RNICD_FR_INVALIDATE;
  op.region = region;
  op.slot = slot;
  op.key = key;
  return op;
}

namespace {

int TakeOrAbort(int control, rnicd_fr_take& take) {
  if (Call(control, RNICD_FR_TAKE, &take) != 0) {
    std::perror("RNICD_FR_TAKE");
    std::abort();
  }
  return take.domain_fd;
}

}  // namespace

Domain::Domain(int control, const Card& card) : take_(TakeRequest(card)), file_(TakeOrAbort(control, take_)) {}

int Domain::Map(const Pages& pages, uint32_t& mapping) { return Map(pages.address(), pages.bytes(), mapping); }

int Domain::Map(uint64_t address, uint64_t bytes, uint32_t& mapping) {
  rnicd_fr_map map = {};
  map.address = address;
  map.length = bytes;
  const int error = Call(file(), RNICD_FR_MAP, &map);
  mapping = map.mapping;
  return error;
}

int Domain::Unmap(uint32_t mapping) {
  rnicd_fr_unmap unmap = {.mapping = mapping, .reserved = 0};
  return Call(file(), RNICD_FR_UNMAP, &unmap);
}

int Domain::CreateRegion(uint32_t pages, rnicd_fr_create_region& region) {
  region = {};
  region.pages = pages;
  return Call(file(), RNICD_FR_CREATE_REGION, &region);
}

int Domain::DestroyRegion(uint32_t region) {
  rnicd_fr_destroy_region destroy = {.region = region, .reserved = 0};
  return Call(file(), RNICD_FR_DESTROY_REGION, &destroy);
}

int Domain::Submit(std::span<rnicd_fr_op> ops, std::span<rnicd_fr_run> runs) {
  rnicd_fr_submit submit = {};
  submit.ops = reinterpret_cast<uintptr_t>(ops.data());
  submit.op_count = static_cast<uint32_t>(ops.size());
  submit.runs = reinterpret_cast<uintptr_t>(runs.data());
  submit.run_count = static_cast<uint32_t>(runs.size());
  return Call(file(), RNICD_FR_SUBMIT, &submit);
}

int Domain::Run(rnicd_fr_op op, std::vector<rnicd_fr_run> runs) {
  const int error = Submit({&op, 1}, runs);
  return error == 0 ? op.result : -error;
}
