#include "provider/verbs/card/kernel_engine.h"

#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

absl::StatusOr<std::shared_ptr<KernelEngine>> KernelEngine::Take(VerbsContext& context, ibv_pd* pd) {
  FastModule& module = *context.node().options.fast_module;
  const VerbsDevice& device = context.device();
  RNICD_ASSIGN_OR_RETURN(const PortAddress address, device.CurrentAddress(context.node(), context.raw()));
  uint8_t gid_index = 0;
  if (address.ethernet) {
    RNICD_ASSIGN_OR_RETURN(gid_index, device.FindGid(context.node(), context.raw(), address.gid));
  }
  rnicd_fr_take taken = {};
  RNICD_RETURN_IF_ERROR(ModuleStatus(module.Take(pd, device.port(), gid_index, taken), 0));
  return std::make_shared<KernelEngine>(std::make_shared<ModuleDomain>(module, taken),
                                        context.pinned_pages().shared_from_this());
}

}  // namespace rnicd::provider
