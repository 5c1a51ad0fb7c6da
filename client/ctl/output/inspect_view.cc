#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string InspectText(const v1::InspectSessionResponse& inspected) {
  const v1::SessionInfo& session = inspected.session();
  std::string text = KeyValueLines({
      {"session", std::to_string(session.session_id()) + (session.ending() ? " (ending)" : "")},
      {"tenant", session.tenant()},
      {"label", OrDash(session.label())},
      {"pid", std::to_string(session.pid())},
      {"uid", session.sid().empty() ? FormatUid(session.uid()) : session.sid()},
      {"gid", FormatUid(session.gid())},
      {"pod", OrDash(session.pod_uid())},
      {"container", OrDash(session.container_id())},
      {"age", FormatMilliseconds(session.age_ms())},
      {"connections", std::to_string(session.connections())},
  });
  Table resources({{"RESOURCE"}, {"USED", Align::kRight}, {"LIMIT", Align::kRight}, {""}});
  for (const v1::ResourceUse& use : session.resources()) {
    resources.AddRow({use.name(), ResourceAmount(use.name(), use.used()),
                      use.limit() == 0 ? "no limit" : ResourceAmount(use.name(), use.limit()), UseBar(use)});
  }
  text += "\n" + resources.Text();
  if (inspected.regions_size() > 0) {
    text += "\n" + RegionsText({inspected.regions().begin(), inspected.regions().end()});
  }
  return text;
}

Json InspectJson(const v1::InspectSessionResponse& inspected) {
  Json json = RegionsJson({inspected.regions().begin(), inspected.regions().end()});
  return {{"session", SessionJson(inspected.session())}, {"regions", json["regions"]}};
}

std::string EvictedText(uint64_t session_id, const v1::EvictSessionResponse& evicted) {
  return "evicted session " + std::to_string(session_id) +
         "; taken back: " + Counted(evicted.reclaimed_regions(), "region") + ", " +
         FormatBytes(evicted.reclaimed_pinned_bytes()) + " pinned, " + FormatBytes(evicted.reclaimed_memory_bytes()) +
         " of memory\n";
}

Json EvictedJson(uint64_t session_id, const v1::EvictSessionResponse& evicted) {
  return {{"session_id", std::to_string(session_id)},
          {"reclaimed_regions", evicted.reclaimed_regions()},
          {"reclaimed_pinned_bytes", evicted.reclaimed_pinned_bytes()},
          {"reclaimed_memory_bytes", evicted.reclaimed_memory_bytes()}};
}

}  // namespace rnicd::ctl
