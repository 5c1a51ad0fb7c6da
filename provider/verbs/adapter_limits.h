#pragma once

#include <infiniband/verbs.h>

#include "base/ndk_adapter_info.h"
#include "provider/verbs/verbs_options.h"

namespace rnicd::provider {

// What a queue pair uses besides the requests of its owner: a probe whether the peer lives.
inline constexpr uint32_t kExtraSendRequests = 1;

// NDK_ADAPTER_INFO of a card: its own limits, cut where NDK's fields are narrower, where the options say so, and where
// one completion queue must hold what a queue pair's two queues can bring.
NdkAdapterInfo AdapterLimits(const ibv_device_attr& device, const ibv_port_attr& port, uint32_t max_inline_bytes,
                             const VerbsOptions& options);

}  // namespace rnicd::provider
