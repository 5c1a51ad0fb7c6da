#include "daemon/status_page/session_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/status_page/status_page.h"

namespace rnicd::status_page {
namespace {

using core::Resource;
using core::SessionRegistry;
using Regions = std::vector<std::pair<MemoryRegionId, core::RegionView>>;

// Ids have 64 bits, more than a number in JavaScript can represent.
template <typename Id>
std::string Text(Id id) {
  return std::to_string(id.value);
}

Json SessionRow(const SessionRegistry::Listed& listed, Instant now) {
  const core::Session& session = *listed.session;
  return {{"id", Text(session.id())},
          {"tenant", session.tenant().name()},
          {"pid", session.owner().pid},
          {"uid", session.owner().uid},
          {"label", session.label()},
          {"pod", session.owner().container.pod_uid},
          {"age_ms", std::chrono::duration_cast<std::chrono::milliseconds>(now - session.opened()).count()},
          {"connections", listed.connections},
          {"ending", session.ending()},
          {"pinned_bytes", session.ledger().used(Resource::kPinnedBytes)},
          {"registered_bytes", session.ledger().used(Resource::kRegisteredBytes)},
          {"regions", session.ledger().used(Resource::kRegions)},
          {"rings", session.ledger().used(Resource::kRings)}};
}

std::string RightsOf(const AccessRights& rights) {
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) {
      text += (text.empty() ? "" : ", ") + std::string(name);
    }
  };
  add(rights.local_write, "local write");
  add(rights.remote_read, "remote read");
  add(rights.remote_write, "remote write");
  add(rights.read_sink, "read sink");
  return text;
}

Json RegionRow(const std::string& session, MemoryRegionId id, const core::RegionView& region) {
  return {{"session", session},
          {"id", Text(id)},
          {"adapter", region.adapter_name},
          {"kind", region.fast_register ? "fast" : "normal"},
          {"state", region.state},
          {"length", region.length},
          {"pages", region.pages},
          {"page_bytes", region.page_bytes},
          {"rights", RightsOf(region.rights)}};
}

Regions RegionsOf(const core::Session& session) {
  Regions regions = session.ViewRegions();
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return regions;
}

// Number of regions shown for each session: an equal share first, then the rest in the order of sessions.
std::vector<size_t> Shares(const std::vector<Regions>& regions) {
  std::vector<size_t> shares(regions.size());
  size_t left = StatusPage::kRegionsMost;
  for (const size_t most : {regions.empty() ? 0 : StatusPage::kRegionsMost / regions.size(), left}) {
    for (size_t index = 0; index < regions.size(); ++index) {
      const size_t wanted = std::min(most, regions[index].size());
      const size_t added = std::min(left, wanted - std::min(wanted, shares[index]));
      shares[index] += added;
      left -= added;
    }
  }
  return shares;
}

}  // namespace

SessionRows ReadSessions(const SessionRegistry& registry, Instant now) {
  const std::vector<SessionRegistry::Listed> listed = registry.List();
  const size_t shown = std::min(listed.size(), StatusPage::kSessionsMost);
  Json sessions = Json::array();
  std::vector<Regions> regions;
  for (size_t index = 0; index < shown; ++index) {
    sessions.push_back(SessionRow(listed[index], now));
    regions.push_back(RegionsOf(*listed[index].session));
  }
  const std::vector<size_t> shares = Shares(regions);
  Json region_rows = Json::array();
  size_t more = 0;
  for (size_t index = 0; index < shown; ++index) {
    for (size_t region = 0; region < shares[index]; ++region) {
      const auto& [id, view] = regions[index][region];
      region_rows.push_back(RegionRow(Text(listed[index].session->id()), id, view));
    }
    more += regions[index].size() - shares[index];
  }
  return {.sessions = {{"rows", std::move(sessions)}, {"more", listed.size() - shown}},
          .regions = {{"rows", std::move(region_rows)}, {"more", more}}};
}

}  // namespace rnicd::status_page
