#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/ctl/output/output.h"
#include "client/ctl/output/table.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::ctl {

// Output of the commands: a table for people and JSON for scripts, with the same facts. JSON uses the wire's names and
// units; nothing in it is rounded. Ids and addresses are strings, spelled as in the tables: they use 64 bits, and many
// JSON readers keep 53. All other counts and amounts are numbers.

// The generation of the daemon that has each item of a list; empty, and not shown, where there is only one.
using ItemGenerations = std::span<const uint32_t>;

std::string AdaptersText(const v1::ListAdaptersResponse& adapters);
Json AdaptersJson(const v1::ListAdaptersResponse& adapters);

std::string SessionsText(const std::vector<v1::SessionInfo>& sessions, ItemGenerations generations = {});
Json SessionsJson(const std::vector<v1::SessionInfo>& sessions, ItemGenerations generations = {});

std::string RegionsText(const std::vector<v1::RegionInfo>& regions, ItemGenerations generations = {});
Json RegionsJson(const std::vector<v1::RegionInfo>& regions, ItemGenerations generations = {});

std::string ListenersText(const std::vector<v1::ListenerInfo>& listeners, ItemGenerations generations = {});
Json ListenersJson(const std::vector<v1::ListenerInfo>& listeners, ItemGenerations generations = {});

std::string ConnectionsText(const std::vector<v1::ConnectionInfo>& connections, ItemGenerations generations = {});
Json ConnectionsJson(const std::vector<v1::ConnectionInfo>& connections, ItemGenerations generations = {});

// Returns "namespace/pod/container"; empty when unknown.
std::string WorkloadText(const v1::WorkloadName& workload);
// Null when unknown.
Json WorkloadJson(const v1::WorkloadName& workload);
// Title of the last column, with workloads; empty when none of them is known.
template <typename Holders>
std::string WorkloadTitle(const Holders& holders) {
  for (const auto& holder : holders) {
    if (!WorkloadText(holder.workload()).empty()) {
      return "WORKLOAD";
    }
  }
  return "";
}

std::string TenantsText(const std::vector<v1::TenantInfo>& tenants, ItemGenerations generations = {});
Json TenantsJson(const std::vector<v1::TenantInfo>& tenants, ItemGenerations generations = {});

std::string InspectText(const v1::InspectSessionResponse& inspected);
Json InspectJson(const v1::InspectSessionResponse& inspected);

std::string EvictedText(uint64_t session_id, const v1::EvictSessionResponse& evicted);
Json EvictedJson(uint64_t session_id, const v1::EvictSessionResponse& evicted);

// A newly created grant, with its secret or its door: the only view that shows a secret.
std::string NewGrantText(const v1::CreateGrantResponse& grant);
Json NewGrantJson(const v1::CreateGrantResponse& grant);

std::string GrantsText(const std::vector<v1::GrantInfo>& grants);
Json GrantsJson(const std::vector<v1::GrantInfo>& grants);

// Grants that have a door.
std::string DoorsText(const std::vector<v1::GrantInfo>& grants);
Json DoorsJson(const std::vector<v1::GrantInfo>& grants);

std::string DrainText(const v1::DrainResponse& drain);
Json DrainJson(const v1::DrainResponse& drain);

std::string HealthText(bool ready);
Json HealthJson(bool ready);
std::string LiveText(bool live);
Json LiveJson(bool live);

// `older`: those of generations that have handed over.
std::string StatusText(const v1::GetStatusResponse& status, std::span<const v1::GetStatusResponse> older = {});
Json StatusJson(const v1::GetStatusResponse& status, std::span<const v1::GetStatusResponse> older = {});

// A region of this process, with its tokens.
struct OwnRegion {
  uint64_t mr_id = 0;
  uint64_t base_virtual_address = 0;
  uint64_t length = 0;
  uint32_t local_token = 0;
  uint32_t remote_token = 0;
};

// Result of alloc and register.
struct OwnMemory {
  uint64_t session_id = 0;
  uint64_t memory_id = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t page_bytes = 0;
  bool imported = false;
  bool from_pool = false;
  bool transparent_huge_pages = false;
  // Regions of register; alloc has none.
  std::vector<OwnRegion> regions;
  uint32_t flags = 0;
};

// "allocating [####......] 26 GiB of 64 GiB".
std::string ProgressLine(uint64_t done, uint64_t size);
std::string OwnMemoryText(const OwnMemory& memory);
Json OwnMemoryJson(const OwnMemory& memory);

// A successful step of a demo.
struct DemoStep {
  // Number of the step, starting at 1.
  size_t number = 0;
  // A sentence with figures, without full stop.
  std::string text;
  // Duration of the step; absent when not measured.
  std::optional<uint64_t> microseconds;
};

// Report of 'demo fast-register'.
struct FastRegisterReport {
  uint64_t pages = 0;
  uint64_t bytes = 0;
  uint32_t seed = 0;
  // Base address and token of the registration; 0 before it.
  uint64_t base_virtual_address = 0;
  uint32_t remote_token = 0;
  std::vector<DemoStep> steps;
  // True when every step succeeded.
  bool held = false;
};

// Line for a step, printed while the demo runs.
std::string DemoStepText(const DemoStep& step);
// Prints each step while the demo runs; nothing with --json, whose document has them. The output outlives it.
std::function<void(const DemoStep&)> StepPrinter(Output& output);
// Last line of a successful demo.
std::string FastRegisterVerdict(const FastRegisterReport& report);
Json FastRegisterJson(const FastRegisterReport& report);

// Report of 'pingpong'.
struct PingpongReport {
  // Whether this side listened; otherwise it connected.
  bool listened = false;
  uint64_t bytes = 0;
  // How often all bytes were written and read, and the medians of the microseconds; 0 for the side that listened.
  uint64_t rounds = 0;
  uint64_t write_us = 0;
  uint64_t read_us = 0;
  std::vector<DemoStep> steps;
  // True when every step succeeded.
  bool held = false;
};

std::string PingpongVerdict(const PingpongReport& report);
Json PingpongJson(const PingpongReport& report);

// The adapter that selftest tries.
struct SelftestAdapter {
  std::string name;
  std::string provider;
  std::string technology;
  // What makes its fast registrations, and why; empty where the card does.
  std::string fast_engine;
  std::string fast_engine_reason;
};

enum class SelftestOutcome : uint8_t { kHolds, kKnownGap, kFails };

struct SelftestCheck {
  // Row of docs/ndk-conformance.md.
  uint32_t row = 0;
  // What holds when the check passes.
  std::string claim;
  SelftestOutcome outcome = SelftestOutcome::kFails;
  // What went wrong; empty when it holds.
  std::string message;
};

struct SelftestTiming {
  std::string what;
  // Microseconds for one of what is measured; 0 when it was not.
  double p50_us = 0;
  double p99_us = 0;
  // How often it was measured.
  uint64_t rounds = 0;
  // Why it was not measured; empty when it was.
  std::string message;
};

// Report of 'selftest'.
struct SelftestReport {
  SelftestAdapter adapter;
  std::vector<SelftestCheck> checks;
  std::vector<SelftestTiming> timings;

  uint64_t CountOf(SelftestOutcome outcome) const {
    return static_cast<uint64_t>(std::ranges::count(checks, outcome, &SelftestCheck::outcome));
  }
};

// Lines printed while the selftest runs.
std::string SelftestAdapterText(const SelftestAdapter& adapter);
std::string SelftestCheckText(const SelftestCheck& check);
// The first line of the timings, and one of them.
std::string SelftestTimingTitle();
std::string SelftestTimingText(const SelftestTiming& timing);
// "13 checks: 12 hold, 1 known gap, 0 fail".
std::string SelftestVerdict(const SelftestReport& report);
Json SelftestJson(const SelftestReport& report);

std::string TechnologyName(v1::RdmaTechnology technology);

// Shared by the views.
std::string PageSizeName(v1::PageSize page_size);
uint64_t PageBytes(v1::PageSize page_size);
using ResourceUses = google::protobuf::RepeatedPtrField<v1::ResourceUse>;
Json ResourcesJson(const ResourceUses& resources);
// The resource of that name; zero use and no limit when it is not in the list.
v1::ResourceUse UseOf(const ResourceUses& resources, std::string_view name);
// "64 MiB / 1 GiB", or "64 MiB" when there is no limit.
std::string UseAmount(const v1::ResourceUse& use);
// "[##........]"; empty when there is no limit. Full only when nothing is left, empty only when nothing is used.
std::string UseBar(const v1::ResourceUse& use);
// A column GENERATION, and a key of each object of a list.
void AddGenerations(ItemGenerations generations, Table& table);
void AddGenerations(ItemGenerations generations, Json& list);
// "1 region", "2 regions".
std::string Counted(uint64_t count, const std::string& noun);
Json SessionJson(const v1::SessionInfo& session);
// "64 MiB" for a resource counted in bytes, else the number.
std::string ResourceAmount(const std::string& name, uint64_t amount);

}  // namespace rnicd::ctl
