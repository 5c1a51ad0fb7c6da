#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

uint64_t PageBytes(v1::PageSize page_size) { return page_size == v1::PAGE_SIZE_2MIB ? 2u << 20 : 4096; }

std::string PageSizeName(v1::PageSize page_size) { return FormatBytes(PageBytes(page_size)); }

Json ResourcesJson(const google::protobuf::RepeatedPtrField<v1::ResourceUse>& resources) {
  Json json = Json::object();
  for (const v1::ResourceUse& resource : resources) {
    json[resource.name()] = {{"used", resource.used()}, {"limit", resource.limit()}};
  }
  return json;
}

std::string ResourceAmount(const std::string& name, uint64_t amount) {
  return name.ends_with("_bytes") ? FormatBytes(amount) : std::to_string(amount);
}

}  // namespace rnicd::ctl
