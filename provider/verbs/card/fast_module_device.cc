// The real module, by its device.

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "base/files/unique_fd.h"
#include "provider/verbs/card/domain_numbers.h"
#include "provider/verbs/card/fast_module.h"

namespace rnicd::provider {
namespace {

constexpr const char* kDevice = "/dev/rnicd_fr";

int Call(int file, unsigned long request, void* argument) {
  int result = 0;
  do {
    result = ioctl(file, request, argument);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

class DeviceModule final : public FastModule {
 public:
  explicit DeviceModule(UniqueFd control) : control_(std::move(control)) {}

  // libibverbs does not expose the kernel's number of a domain. The module takes only the one with this handle of this
  // file, so all of the card can be tried; it is usually among the first.
  int Take(ibv_pd* pd, uint8_t port, uint8_t gid_index, rnicd_fr_take& out) override {
    const int index = ibv_get_device_index(pd->context->device);
    if (index < 0) {
      return ENODEV;
    }
    int error = ENOENT;
    for (const uint32_t number : DomainNumbers(static_cast<uint32_t>(index))) {
      out = {.device_index = static_cast<uint32_t>(index),
             .uverbs_fd = pd->context->cmd_fd,
             .pd_id = number,
             .pd_handle = pd->handle,
             .port = port,
             .gid_index = gid_index,
             .domain_fd = -1,
             .region_pages_max = 0};
      error = Call(control_.get(), RNICD_FR_TAKE, &out);
      if (error != ENOENT) {
        break;
      }
    }
    return error;
  }
  void Close(int domain) override { UniqueFd(domain).Reset(-1); }
  int Map(int domain, std::span<std::byte> pages, uint32_t& mapping) override {
    rnicd_fr_map map = {};
    map.address = reinterpret_cast<uint64_t>(pages.data());
    map.length = pages.size();
    const int error = Call(domain, RNICD_FR_MAP, &map);
    mapping = map.mapping;
    return error;
  }
  int Unmap(int domain, uint32_t mapping) override {
    rnicd_fr_unmap unmap = {.mapping = mapping, .reserved = 0};
    return Call(domain, RNICD_FR_UNMAP, &unmap);
  }
  int CreateRegion(int domain, uint32_t pages, rnicd_fr_create_region& region) override {
    region = {.pages = pages, .region = 0, .keys = {}};
    return Call(domain, RNICD_FR_CREATE_REGION, &region);
  }
  int DestroyRegion(int domain, uint32_t region) override {
    rnicd_fr_destroy_region destroy = {.region = region, .reserved = 0};
    return Call(domain, RNICD_FR_DESTROY_REGION, &destroy);
  }
  int Submit(int domain, std::span<rnicd_fr_op> ops, std::span<const rnicd_fr_run> runs) override {
    rnicd_fr_submit submit = {};
    submit.ops = reinterpret_cast<uint64_t>(ops.data());
    submit.runs = reinterpret_cast<uint64_t>(runs.data());
    submit.op_count = static_cast<uint32_t>(ops.size());
    submit.run_count = static_cast<uint32_t>(runs.size());
    return Call(domain, RNICD_FR_SUBMIT, &submit);
  }

 private:
  const UniqueFd control_;
};

}  // namespace

std::unique_ptr<FastModule> OpenFastModule() {
  UniqueFd control(open(kDevice, O_RDWR | O_CLOEXEC));
  if (!control.valid()) {
    return nullptr;
  }
  rnicd_fr_info info = {};
  const int error = Call(control.get(), RNICD_FR_INFO, &info);
  if (error != 0 || info.abi != RNICD_FR_ABI) {
    errno = error != 0 ? error : EPROTO;
    return nullptr;
  }
  return std::make_unique<DeviceModule>(std::move(control));
}

}  // namespace rnicd::provider
