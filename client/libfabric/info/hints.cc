#include "client/libfabric/info/hints.h"

namespace rnicd::fi {
namespace {

template <typename Attributes>
Attributes ValueOf(const Attributes* attributes) {
  return attributes == nullptr ? Attributes{} : *attributes;
}

// Applications of an older interface do not know these fields.
void ForgetFieldsSince15(fi_domain_attr& domain) {
  domain.cntr_cnt = 0;
  domain.mr_iov_limit = 0;
  domain.caps = 0;
  domain.mode = 0;
  domain.max_err_data = 0;
  domain.mr_cnt = 0;
}

}  // namespace

Hints::Hints(uint32_t version, const fi_info* hints) : api_version(version) {
  if (hints == nullptr) {
    info.mode = ~uint64_t{0};
    return;
  }
  info = *hints;
  has_domain = hints->domain_attr != nullptr;
  transmit = ValueOf(hints->tx_attr);
  receive = ValueOf(hints->rx_attr);
  endpoint = ValueOf(hints->ep_attr);
  domain = ValueOf(hints->domain_attr);
  fabric = ValueOf(hints->fabric_attr);
  if (FI_VERSION_LT(api_version, FI_VERSION(1, 5))) {
    ForgetFieldsSince15(domain);
  }
}

}  // namespace rnicd::fi
