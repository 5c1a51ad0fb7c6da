#include "daemon/app/soft_flags.h"

#include <string>

ABSL_FLAG(int64_t, soft_adapters, 1, "soft provider: number of adapters (soft0, soft1, ...); 1 to 64");
ABSL_FLAG(int64_t, soft_max_registration_bytes, int64_t{1} << 40,
          "soft provider: the largest registration, what adapters report as max_registration_size; 4096 or more");
ABSL_FLAG(int64_t, soft_max_regions, 0, "soft provider: registrations an adapter has room for; 0: 8388608");
ABSL_FLAG(std::string, soft_hold_reads_while, "",
          "soft provider: a file; while it exists, the bytes of RDMA reads do not land. For tests and trials");
ABSL_FLAG(int64_t, soft_max_fast_register_pages, 65536,
          "soft provider: the most pages a fast-register region can be made ready for; 16 or more");
ABSL_FLAG(
    std::string, soft_adapter_flags, "0x10113",
    "soft provider: NDK_ADAPTER_FLAG_ bits that adapters report and obey: 0x1 in-order DMA, 0x2 read sink needs no "
    "right, 0x10 read with local invalidate, 0x100 CQ resize, 0x10000 loopback");

namespace rnicd::app {

provider::SoftOptions ReadSoftFlags(FlagReader& reader) {
  provider::SoftOptions options;
  options.adapters = static_cast<uint32_t>(reader.Number(FLAGS_soft_adapters, 1, 64));
  options.max_registration_bytes = reader.Number(FLAGS_soft_max_registration_bytes, kRegistrationBytesMin, kUnbounded);
  options.max_regions = reader.Limit(FLAGS_soft_max_regions);
  options.hold_reads = reader.PresenceOf(FLAGS_soft_hold_reads_while);
  options.read_delay = std::chrono::milliseconds(options.hold_reads == nullptr ? 0 : 1);
  options.max_fast_register_pages =
      static_cast<uint32_t>(reader.Number(FLAGS_soft_max_fast_register_pages, kFastRegisterPagesMin, UINT32_MAX));
  options.adapter_flags = reader.Bits(FLAGS_soft_adapter_flags, provider::SoftOptions().adapter_flags);
  return options;
}

}  // namespace rnicd::app
