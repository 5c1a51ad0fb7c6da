#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

namespace rnicd::fi {

// What an application asks of fi_getinfo, with all parts present: zero stands for no wish.
struct Hints {
  // `hints` may be NULL: no wishes, and every mode is accepted.
  // Lifetime: names and addresses are those of `hints`.
  Hints(uint32_t version, const fi_info* hints);

  uint32_t api_version;
  // Without domain attributes the application says nothing about memory registration.
  bool has_domain = false;
  // Its pointers to attributes are not used.
  fi_info info{};
  fi_tx_attr transmit{};
  fi_rx_attr receive{};
  fi_ep_attr endpoint{};
  fi_domain_attr domain{};
  fi_fabric_attr fabric{};
};

}  // namespace rnicd::fi
