#include "client/libfabric/info/info.h"

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "client/libfabric/handle.h"
#include "client/libfabric/info/address.h"
#include "client/libfabric/info/attributes.h"
#include "client/libfabric/info/hint_rules.h"
#include "client/libfabric/info/hints.h"
#include "client/libfabric/provider.h"

namespace rnicd::fi {
namespace {

constexpr char kAdapterParameter[] = "adapter";

// The adapter that FI_RNICD_ADAPTER names, else "rnicd".
const char* DomainName() {
  char* adapter = nullptr;
  const int error = fi_param_get_str(&Provider(), kAdapterParameter, &adapter);
  return error == 0 && adapter != nullptr && *adapter != '\0' ? adapter : kName;
}

bool HasDaemon() {
  const char* folder = std::getenv("RNICD_SOCKET_DIR");
  const std::string socket = std::string(folder != nullptr && *folder != '\0' ? folder : "/run/rnicd") + "/rpc.sock";
  if (access(socket.c_str(), W_OK) == 0) {
    return true;
  }
  RNICD_FI_INFO(FI_LOG_CORE, "no daemon: %s: %s\n", socket.c_str(), fi_strerror(errno));
  return false;
}

}  // namespace

void DefineParameters() {
  fi_param_define(&Provider(), kAdapterParameter, FI_PARAM_STRING,
                  "adapter of the node that is used, and name of its domain (default: the first one, as domain rnicd)");
}

const char* AdapterOf(const char* domain_name) {
  return domain_name == nullptr || std::strcmp(domain_name, kName) == 0 ? nullptr : domain_name;
}

int GetInfo(uint32_t version, const char* node, const char* service, uint64_t flags, const fi_info* hints,
            fi_info** info) {
  *info = nullptr;
  const char* const domain = DomainName();
  const Hints asked(version, hints);
  if (const auto refusal = CheckHints(asked, domain)) {
    RNICD_FI_INFO(FI_LOG_CORE, "hints->%s: asked %s\n", refusal->field, refusal->reason.c_str());
    return -FI_ENODATA;
  }
  if ((flags & FI_PROV_ATTR_ONLY) == 0 && !HasDaemon()) {
    return -FI_ENODATA;
  }
  OwnedInfo offer(fi_allocinfo());
  if (offer == nullptr) {
    return -FI_ENOMEM;
  }
  int error = SetAttributes(asked, domain, *offer);
  if (error == 0) {
    error = SetAddresses({.node = node, .service = service, .flags = flags, .hints = asked.info}, *offer);
  }
  if (error == 0) {
    *info = offer.release();
  }
  return error;
}

}  // namespace rnicd::fi
