#include "client/kubernetes/kubelet_options.h"

#include "client/kubernetes/resource.h"

namespace rnicd::kubernetes {

std::string SocketPath(const KubeletOptions& options, std::string_view resource) {
  return options.folder + "/" + options.socket_prefix + std::string(TypeOf(resource)) + ".sock";
}

}  // namespace rnicd::kubernetes
