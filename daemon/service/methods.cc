#include "daemon/service/methods.h"

#include <iterator>
#include <utility>
#include <vector>

#include "daemon/service/admin/admin_service.h"
#include "daemon/service/memory/memory_service.h"
#include "daemon/service/service_methods.h"

namespace rnicd::service {

gate::MethodIndex AllMethods(core::Node& node, core::SessionRegistry& registry, ProcessControl& process,
                             health::HealthBoard& health) {
  std::vector<gate::Method> all;
  const auto add = [&all](std::vector<gate::Method> methods) {
    all.insert(all.end(), std::make_move_iterator(methods.begin()), std::make_move_iterator(methods.end()));
  };
  add(SessionMethods(registry));
  add(AdapterMethods(node.provider));
  add(MemoryMethods(node.tickets));
  add(QueueMethods());
  add(ConnectionMethods());
  add(RingMethods());
  add(AdminMethods(node, registry, process));
  add(HealthMethods(health));
  return gate::MethodIndex(std::move(all));
}

}  // namespace rnicd::service
