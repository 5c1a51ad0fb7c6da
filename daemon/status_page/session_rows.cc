#include "daemon/status_page/session_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/status_page/status_page.h"

namespace rnicd::status_page {
namespace {

using core::Resource;
using core::SessionRegistry;
using RegionOf = std::pair<MemoryRegionId, core::RegionView>;
// With the adapter's name.
using ConnectionOf = std::pair<std::string, core::ConnectionView>;
using EndOf = std::variant<core::ListenerView, ConnectionOf>;

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

Json RowOf(const std::string& session, const RegionOf& held, Instant /*now*/) {
  const auto& [id, region] = held;
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

const char* TextOf(core::ConnectorState state) {
  switch (state) {
    case core::ConnectorState::kIdle:
      return "idle";
    case core::ConnectorState::kConnecting:
      return "connecting";
    case core::ConnectorState::kAnswered:
      return "answered";
    case core::ConnectorState::kCompleting:
      return "completing";
    case core::ConnectorState::kRequested:
      return "requested";
    case core::ConnectorState::kAccepting:
      return "accepting";
    case core::ConnectorState::kConnected:
      return "connected";
    case core::ConnectorState::kPeerGone:
      return "peer gone";
    case core::ConnectorState::kDisconnecting:
      return "disconnecting";
    case core::ConnectorState::kEnded:
      return "ended";
  }
  return "";
}

Json RowOf(const std::string& session, const core::ListenerView& listener, Instant /*now*/) {
  return {{"session", session},
          {"id", Text(listener.listener)},
          {"adapter", listener.adapter_name},
          {"side", "listener"},
          {"state", listener.paused ? "paused" : "listening"},
          {"local", listener.local.ToText()},
          {"listener", listener.name},
          {"reported", listener.reported},
          {"refused", listener.refused}};
}

Json RowOf(const std::string& session, const ConnectionOf& held, Instant now) {
  const auto& [adapter, connection] = held;
  return {{"session", session},
          {"id", Text(connection.connector)},
          {"adapter", adapter},
          {"side", connection.passive ? "passive" : "active"},
          {"state", TextOf(connection.state)},
          {"local", connection.addresses.local.ToText()},
          {"peer", connection.addresses.peer.ToText()},
          {"state_ms", std::chrono::duration_cast<std::chrono::milliseconds>(now - connection.since).count()},
          {"sent_bytes", connection.sent_bytes},
          {"received_bytes", connection.received_bytes}};
}

Json RowOf(const std::string& session, const EndOf& end, Instant now) {
  return std::visit([&](const auto& view) { return RowOf(session, view, now); }, end);
}

std::vector<RegionOf> RegionsOf(const core::Session& session) {
  std::vector<RegionOf> regions = session.ViewRegions();
  std::ranges::sort(regions, {}, &RegionOf::first);
  return regions;
}

// Listeners first.
std::vector<EndOf> EndsOf(const core::Session& session) {
  std::vector<core::ListenerView> listeners = session.ViewListeners();
  std::ranges::sort(listeners, {}, &core::ListenerView::listener);
  std::vector<ConnectionOf> connections = session.ViewConnections();
  std::ranges::sort(connections, {}, [](const ConnectionOf& held) { return held.second.connector; });
  std::vector<EndOf> ends(listeners.begin(), listeners.end());
  ends.insert(ends.end(), connections.begin(), connections.end());
  return ends;
}

// Number of rows shown for each session: an equal share first, then the rest in the order of sessions.
template <typename Held>
std::vector<size_t> Shares(const std::vector<std::vector<Held>>& held, size_t most) {
  std::vector<size_t> shares(held.size());
  size_t left = most;
  for (const size_t wish : {held.empty() ? 0 : most / held.size(), left}) {
    for (size_t index = 0; index < held.size(); ++index) {
      const size_t wanted = std::min(wish, held[index].size());
      const size_t added = std::min(left, wanted - std::min(wanted, shares[index]));
      shares[index] += added;
      left -= added;
    }
  }
  return shares;
}

// What the sessions hold, one list for each of `ids`.
template <typename Held>
Json ListOf(const std::vector<std::string>& ids, const std::vector<std::vector<Held>>& held, size_t most, Instant now) {
  const std::vector<size_t> shares = Shares(held, most);
  Json rows = Json::array();
  size_t more = 0;
  for (size_t index = 0; index < held.size(); ++index) {
    for (size_t row = 0; row < shares[index]; ++row) {
      rows.push_back(RowOf(ids[index], held[index][row], now));
    }
    more += held[index].size() - shares[index];
  }
  return {{"rows", std::move(rows)}, {"more", more}};
}

}  // namespace

SessionRows ReadSessions(const SessionRegistry& registry, Instant now) {
  const std::vector<SessionRegistry::Listed> listed = registry.List();
  const size_t shown = std::min(listed.size(), StatusPage::kSessionsMost);
  Json sessions = Json::array();
  std::vector<std::string> ids;
  std::vector<std::vector<RegionOf>> regions;
  std::vector<std::vector<EndOf>> ends;
  for (size_t index = 0; index < shown; ++index) {
    const core::Session& session = *listed[index].session;
    sessions.push_back(SessionRow(listed[index], now));
    ids.push_back(Text(session.id()));
    regions.push_back(RegionsOf(session));
    ends.push_back(EndsOf(session));
  }
  return {.sessions = {{"rows", std::move(sessions)}, {"more", listed.size() - shown}},
          .regions = ListOf(ids, regions, StatusPage::kRegionsMost, now),
          .ends = ListOf(ids, ends, StatusPage::kEndsMost, now)};
}

}  // namespace rnicd::status_page
