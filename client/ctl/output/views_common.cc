#include <algorithm>
#include <iterator>

#include "client/ctl/line/units.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

uint64_t PageBytes(v1::PageSize page_size) { return page_size == v1::PAGE_SIZE_2MIB ? 2u << 20 : 4096; }

std::string PageSizeName(v1::PageSize page_size) { return FormatBytes(PageBytes(page_size)); }

Json ResourcesJson(const ResourceUses& resources) {
  Json json = Json::object();
  for (const v1::ResourceUse& resource : resources) {
    json[resource.name()] = {{"used", resource.used()}, {"limit", resource.limit()}};
  }
  return json;
}

std::string WorkloadText(const v1::WorkloadName& workload) {
  if (workload.pod_name().empty()) {
    return "";
  }
  const std::string pod = workload.namespace_() + "/" + workload.pod_name();
  return workload.container().empty() ? pod : pod + "/" + workload.container();
}

Json WorkloadJson(const v1::WorkloadName& workload) {
  if (workload.pod_name().empty()) {
    return {};
  }
  return {{"namespace", workload.namespace_()}, {"pod", workload.pod_name()}, {"container", workload.container()}};
}

void AddGenerations(ItemGenerations generations, Table& table) {
  if (!generations.empty()) {
    std::vector<std::string> cells;
    std::ranges::transform(generations, std::back_inserter(cells), [](uint32_t each) { return std::to_string(each); });
    table.AddColumn({"GENERATION", Align::kRight}, cells);
  }
}

void AddGenerations(ItemGenerations generations, Json& list) {
  for (size_t index = 0; index < generations.size(); ++index) {
    list[index]["generation"] = generations[index];
  }
}

v1::ResourceUse UseOf(const ResourceUses& resources, std::string_view name) {
  for (const v1::ResourceUse& resource : resources) {
    if (resource.name() == name) {
      return resource;
    }
  }
  v1::ResourceUse none;
  none.set_name(std::string(name));
  return none;
}

std::string UseAmount(const v1::ResourceUse& use) {
  const std::string used = ResourceAmount(use.name(), use.used());
  return use.limit() == 0 ? used : used + " / " + ResourceAmount(use.name(), use.limit());
}

std::string UseBar(const v1::ResourceUse& use) {
  constexpr size_t kMarks = 10;
  if (use.limit() == 0) {
    return "";
  }
  const double share = static_cast<double>(use.used()) / static_cast<double>(use.limit());
  size_t marks = static_cast<size_t>(std::min(share, 1.0) * kMarks);
  marks = use.used() == 0 ? 0 : std::max<size_t>(marks, 1);
  marks = use.used() < use.limit() ? std::min(marks, kMarks - 1) : kMarks;
  return "[" + std::string(marks, '#') + std::string(kMarks - marks, '.') + "]";
}

std::string Counted(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string ResourceAmount(const std::string& name, uint64_t amount) {
  return name.ends_with("_bytes") ? FormatBytes(amount) : std::to_string(amount);
}

}  // namespace rnicd::ctl
