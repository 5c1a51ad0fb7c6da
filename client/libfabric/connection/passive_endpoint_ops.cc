// The tables of a passive endpoint. What it has no use for is refused.
#include "client/libfabric/connection/passive_endpoint_ops.h"

#include "client/libfabric/handle.h"

namespace rnicd::fi {
fi_ops* PassiveEndpoint::FidOps() {
  static fi_ops ops = FidOperations(Close, Bind, Control);
  return &ops;
}

fi_ops_ep* PassiveEndpoint::EndpointOps() {
  static fi_ops_ep ops = {.size = sizeof(fi_ops_ep),
                          .cancel = Unsupported,
                          .getopt = GetOption,
                          .setopt = Unsupported,
                          .tx_ctx = Unsupported,
                          .rx_ctx = Unsupported,
                          .rx_size_left = Unsupported,
                          .tx_size_left = Unsupported};
  return &ops;
}

fi_ops_cm* PassiveEndpoint::ConnectionOps() {
  static fi_ops_cm ops = {.size = sizeof(fi_ops_cm),
                          .setname = SetName,
                          .getname = GetName,
                          .getpeer = Unsupported,
                          .connect = Unsupported,
                          .listen = Listen,
                          .accept = Unsupported,
                          .reject = Reject,
                          .shutdown = Unsupported,
                          .join = Unsupported};
  return &ops;
}

}  // namespace rnicd::fi
