#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/output.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::ctl {

// What the commands print: a table for people and JSON for scripts, of the same facts. JSON has the wire's names and
// units; nothing in it is rounded. Ids and addresses are strings, spelled as in the tables: they use 64 bits, and many
// JSON readers keep 53. Everything else that counts is a number.

std::string AdaptersText(const v1::ListAdaptersResponse& adapters);
Json AdaptersJson(const v1::ListAdaptersResponse& adapters);

std::string SessionsText(const std::vector<v1::SessionInfo>& sessions);
Json SessionsJson(const std::vector<v1::SessionInfo>& sessions);

std::string RegionsText(const std::vector<v1::RegionInfo>& regions);
Json RegionsJson(const std::vector<v1::RegionInfo>& regions);

std::string StatusText(const v1::GetStatusResponse& status);
Json StatusJson(const v1::GetStatusResponse& status);

// A region of this process's own, with its tokens.
struct OwnRegion {
  uint64_t mr_id = 0;
  uint64_t base_virtual_address = 0;
  uint64_t length = 0;
  uint32_t local_token = 0;
  uint32_t remote_token = 0;
};

// What alloc and register made.
struct OwnMemory {
  uint64_t session_id = 0;
  uint64_t memory_id = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t page_bytes = 0;
  bool imported = false;
  // Those of register; alloc has none.
  std::vector<OwnRegion> regions;
  uint32_t flags = 0;
};

std::string OwnMemoryText(const OwnMemory& memory);
Json OwnMemoryJson(const OwnMemory& memory);

// A step of a demo that went as it should.
struct DemoStep {
  // From 1.
  size_t number = 0;
  // A sentence with its figures, without full stop.
  std::string text;
  // How long it took; absent for what is not measured.
  std::optional<uint64_t> microseconds;
};

// What 'demo fast-register' did.
struct FastRegisterReport {
  uint64_t pages = 0;
  uint64_t bytes = 0;
  uint32_t seed = 0;
  // Of the registration; 0 before it.
  uint64_t base_virtual_address = 0;
  uint32_t remote_token = 0;
  std::vector<DemoStep> steps;
  // Every step went as it should.
  bool held = false;
};

// One line, as the demo goes on.
std::string DemoStepText(const DemoStep& step);
// The last line of a demo that held.
std::string FastRegisterVerdict(const FastRegisterReport& report);
Json FastRegisterJson(const FastRegisterReport& report);

// Shared by the views.
std::string PageSizeName(v1::PageSize page_size);
uint64_t PageBytes(v1::PageSize page_size);
Json ResourcesJson(const google::protobuf::RepeatedPtrField<v1::ResourceUse>& resources);
// "64 MiB" for a resource that is counted in bytes, else the number.
std::string ResourceAmount(const std::string& name, uint64_t amount);

}  // namespace rnicd::ctl
