#include "provider/soft/soft_nic.h"

#include <utility>

#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

// Limits of a typical 100 Gbit/s card, so that software written against the soft card fits a real one.
NdkAdapterInfo InfoOf(const SoftOptions& options) {
  NdkAdapterInfo info;
  info.version = NdkVersion{1, 2};
  info.max_registration_size = options.max_registration_bytes;
  info.max_window_size = options.max_registration_bytes;
  info.frmr_page_count = 256;
  info.max_initiator_request_sge = 16;
  info.max_receive_request_sge = 16;
  info.max_read_request_sge = 16;
  info.max_transfer_length = 1U << 30;
  info.max_inline_data_size = 512;
  info.max_inbound_read_limit = 16;
  info.max_outbound_read_limit = 16;
  info.max_receive_queue_depth = 16384;
  info.max_initiator_queue_depth = 16384;
  info.max_srq_depth = 0;
  info.max_cq_depth = 65536;
  info.large_request_threshold = 65536;
  info.max_caller_data = 56;
  info.max_callee_data = 148;
  info.adapter_flags = options.adapter_flags;
  return info;
}

}  // namespace

SoftNic::SoftNic(std::string name, const IpAddress& address, const SoftOptions& options, RandomSource& random,
                 std::shared_ptr<SoftFabric> fabric)
    : name_(std::move(name)),
      address_(address),
      info_(InfoOf(options)),
      read_delay_(options.read_delay),
      hold_reads_(options.hold_reads),
      max_fast_register_pages_(options.max_fast_register_pages),
      fabric_(std::move(fabric)),
      keys_(options.max_regions, random) {
  fabric_->net().AddHost(address_);
}

AccessRights SoftNic::Resolve(AccessRights rights) const {
  rights.read_sink = rights.read_sink || (info_.adapter_flags & kAdapterFlagReadSinkNotRequired) != 0;
  return rights;
}

}  // namespace rnicd::provider
