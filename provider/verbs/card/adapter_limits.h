#pragma once

#include <infiniband/verbs.h>

#include "base/ndk/adapter_info.h"
#include "provider/verbs/card/verbs_options.h"

namespace rnicd::provider {

// Send requests of a queue pair beyond those of its owner: the probe for a dead peer.
inline constexpr uint32_t kExtraSendRequests = 1;

// NDK_ADAPTER_INFO of a card: its own limits, reduced where NDK's fields are narrower, where the options require it,
// and where one completion queue must hold all completions of a queue pair's two queues.
NdkAdapterInfo AdapterLimits(const ibv_device_attr& device, const ibv_port_attr& port, uint32_t max_inline_bytes,
                             const VerbsOptions& options, bool is_iwarp = false);

}  // namespace rnicd::provider
