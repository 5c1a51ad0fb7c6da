#include "client/ctl/output/top_view.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "client/ctl/line/units.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The first lines; if some are left out, the last one says how many. `most` is at least 2.
void Cut(std::vector<std::string>& lines, size_t most) {
  if (lines.size() > most) {
    const size_t missing = lines.size() - (most - 1);
    lines.resize(most - 1);
    lines.push_back("... " + std::to_string(missing) + " more");
  }
}

// ", 3 sessions in generation 1".
std::string OlderSessions(const std::vector<v1::GetStatusResponse>& older) {
  std::string text;
  for (const v1::GetStatusResponse& each : older) {
    text += ", " + Counted(each.sessions(), "session") + " in generation " + std::to_string(each.generation());
  }
  return text;
}

std::vector<std::string> NodeLines(const v1::GetStatusResponse& status,
                                   const std::vector<v1::GetStatusResponse>& older) {
  const v1::ResourceUse pinned = UseOf(status.resources(), "pinned_bytes");
  const v1::ResourceUse memory = UseOf(status.resources(), "memory_bytes");
  const v1::ResourceUse regions = UseOf(status.resources(), "regions");
  const auto amount = [](const std::string& name, const v1::ResourceUse& use) {
    const std::string bar = UseBar(use);
    return name + " " + UseAmount(use) + (bar.empty() ? "" : " " + bar);
  };
  return {"rnicd " + status.version() + ", " + status.provider() + ", pid " + std::to_string(status.pid()) + ", up " +
              FormatMilliseconds(status.uptime_ms()) + (status.draining() ? ", DRAINING" : "") + OlderSessions(older),
          Counted(status.sessions(), "session") + " (" + std::to_string(status.sessions_ending()) + " ending), " +
              Counted(status.tenants(), "tenant") + ", " + Counted(status.grants(), "grant") + ", " +
              Counted(status.connections(), "connection") + ", " + Counted(status.threads(), "thread") + ", " +
              FormatBytes(status.resident_bytes()) + " resident",
          amount("pinned", pinned) + "   " + amount("memory", memory) + "   " + amount("regions", regions)};
}

// Sorted by pinned bytes, highest first, then in the original order, each with its generation.
template <typename Item>
void SortByPinned(std::vector<Item>& items, std::vector<uint32_t>& generations) {
  std::multimap<uint64_t, size_t, std::greater<>> by_pinned;
  for (size_t index = 0; index < items.size(); ++index) {
    by_pinned.emplace(UseOf(items[index].resources(), "pinned_bytes").used(), index);
  }
  std::vector<Item> unsorted = std::exchange(items, {});
  const std::vector<uint32_t> unsorted_generations = std::exchange(generations, {});
  for (const auto& [pinned, index] : by_pinned) {
    items.push_back(std::move(unsorted[index]));
    if (!unsorted_generations.empty()) {
      generations.push_back(unsorted_generations[index]);
    }
  }
}

}  // namespace

std::vector<std::string> TopLines(TopState state, const ScreenSize& size) {
  SortByPinned(state.tenants, state.tenant_generations);
  SortByPinned(state.sessions, state.session_generations);
  std::vector<std::string> lines = NodeLines(state.status, state.older);
  std::vector<std::string> tenants = LinesOf(TenantsText(state.tenants, state.tenant_generations));
  std::vector<std::string> sessions = LinesOf(SessionsText(state.sessions, state.session_generations));
  // Two empty lines between the parts, and at least a title and one line of each table.
  constexpr size_t kSmallestTable = 2;
  const size_t fixed = lines.size() + 2;
  if (size.rows >= fixed + 2 * kSmallestTable) {
    const size_t room = size.rows - fixed;
    // Tenants get half of the space, and what the sessions leave.
    const size_t left = room - std::min(room, sessions.size());
    Cut(tenants, std::max(room / 2, left));
    Cut(sessions, room - tenants.size());
  }
  lines.emplace_back();
  lines.insert(lines.end(), tenants.begin(), tenants.end());
  lines.emplace_back();
  lines.insert(lines.end(), sessions.begin(), sessions.end());
  if (size.rows != 0) {
    lines.resize(std::min(lines.size(), size.rows));
  }
  for (std::string& line : lines) {
    if (size.columns != 0) {
      line.resize(std::min(line.size(), size.columns));
    }
  }
  return lines;
}

Json TopJson(const TopState& state) {
  return {{"status", StatusJson(state.status, state.older)},
          {"tenants", TenantsJson(state.tenants, state.tenant_generations)["tenants"]},
          {"sessions", SessionsJson(state.sessions, state.session_generations)["sessions"]}};
}

}  // namespace rnicd::ctl
