#pragma once

#include <rdma/fabric.h>

namespace rnicd::fi {

// Makes FI_RNICD_ADAPTER known to the library. Called once, by fi_prov_ini.
void DefineParameters();

// The adapter that a domain's name stands for, as rnicd_session_options::adapter_name: NULL, the first, for "rnicd".
const char* AdapterOf(const char* domain_name);

// fi_provider::getinfo. Opens no session: all it asks of the daemon is whether its socket is there, and with
// FI_PROV_ATTR_ONLY not even that. One fi_info at most.
// Errors: -FI_ENODATA nothing that satisfies the hints, or no daemon (FI_LOG_LEVEL=info says what); -FI_EINVAL
// FI_SOURCE without node and service; -FI_ENOMEM. Source: fi_getinfo(3), fi_provider(3).
int GetInfo(uint32_t version, const char* node, const char* service, uint64_t flags, const fi_info* hints,
            fi_info** info);

}  // namespace rnicd::fi
