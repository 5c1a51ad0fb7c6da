#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace rnicd::fi {

// What libfabric knows of this provider.
// Lifetime: static.
fi_provider& Provider();

}  // namespace rnicd::fi

// Says a sentence by fi_log (FI_LOG_LEVEL selects what is printed): RNICD_FI_WARN(FI_LOG_MR, "no page at %p\n",
// address).
#define RNICD_FI_WARN(subsystem, ...) FI_WARN(&::rnicd::fi::Provider(), subsystem, __VA_ARGS__)
#define RNICD_FI_INFO(subsystem, ...) FI_INFO(&::rnicd::fi::Provider(), subsystem, __VA_ARGS__)
