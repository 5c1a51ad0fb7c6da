// The entry of the provider: fi_prov_ini, which libfabric calls when it has loaded the library, and fabrics.

#include <rdma/fi_errno.h>

#include <cstdlib>

#include "client/libfabric/completion_queue.h"
#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/passive_endpoint.h"
#include "client/libfabric/domain.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/info/info.h"
#include "client/libfabric/owned_pages.h"
#include "client/libfabric/provider.h"

namespace rnicd::fi {
namespace {

int OpenDomain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, uint64_t flags, void* context) {
  return flags != 0 ? -FI_EINVAL : Domain::Open(fabric, info, domain, context);
}

int TryWait(fid_fabric* /*fabric*/, fid** objects, int count) {
  int result = 0;
  for (int index = 0; index < count && result == 0; ++index) {
    switch (objects[index]->fclass) {
      case FI_CLASS_CQ:
        result = CompletionQueue::Of(objects[index]).TryWait();
        break;
      case FI_CLASS_EQ:
        result = EventQueue::Of(objects[index]).TryWait();
        break;
      default:
        result = -FI_EINVAL;
    }
  }
  return result;
}

// A fabric has nothing of its own.
int CloseFabric(fid* fabric) {
  delete reinterpret_cast<fid_fabric*>(fabric);
  return 0;
}

int OpenFabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  if (attributes == nullptr) {
    return -FI_EINVAL;
  }
  static fi_ops fid_operations = FidOperations(CloseFabric);
  static fi_ops_fabric operations = {.size = sizeof(fi_ops_fabric),
                                     .domain = Domain::Open,
                                     .passive_ep = OpenPassiveEndpoint,
                                     .eq_open = EventQueue::Open,
                                     .wait_open = Unsupported,
                                     .trywait = TryWait,
                                     .domain2 = OpenDomain2};
  *fabric = new fid_fabric{.fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fid_operations},
                           .ops = &operations,
                           .api_version = attributes->api_version};
  return 0;
}

// How libfabric's RxM, which makes tagged messages of this provider's, must treat heap memory: messages above its own
// buffers travel in segments through these. It would register the program's buffers otherwise, for each message, and
// those share pages with whatever else is on the heap. What the user has set stays.
void SetUpRxm() {
  setenv("FI_OFI_RXM_SAR_LIMIT", "1099511627776", 0);
  setenv("FI_OFI_RXM_BUFFER_SIZE", "49152", 0);
}

}  // namespace

fi_provider& Provider() {
  static fi_provider provider = {.version = FI_VERSION(1, 0),
                                 .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                                 .context = {},
                                 .name = "rnicd",
                                 .getinfo = GetInfo,
                                 .fabric = OpenFabric,
                                 .cleanup = [] {}};
  return provider;
}

}  // namespace rnicd::fi

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  using rnicd::fi::Provider;
  // The structs of providers have no version of their own: another libfabric means other layouts.
  if (fi_version() != Provider().fi_version) {
    RNICD_FI_WARN(FI_LOG_CORE, "built for libfabric %d.%d, not for %d.%d\n", FI_MAJOR_VERSION, FI_MINOR_VERSION,
                  FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
    return nullptr;
  }
  rnicd::fi::DefineParameters();
  rnicd::fi::SetUpRxm();
  rnicd::fi::KeepBlocksMapped();
  return &Provider();
}
