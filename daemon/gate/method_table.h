#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::gate {

// The roles that may call a method.
enum class Callers : uint8_t { kWorkloads, kOperators, kOperatorsAndPlugins, kAll };
// Whether the connection must carry a session.
enum class Needs : uint8_t { kNoSession, kSession };
// Which calls are decisions for the audit log: every refused call, and one that succeeds only if it grants, releases or
// discloses something.
enum class Audit : uint8_t { kQuiet, kDecision };
// Whether a workload's calls count against its rate.
enum class Pace : uint8_t {
  kCounted,
  // Counted only without a session. A client that releases its objects must not have to wait.
  kFreeInSession,
};

struct MethodRow {
  // "MemoryService.CreateMr": the name without the package.
  std::string_view name;
  Callers callers;
  Needs needs;
  Audit audit;
  Pace pace = Pace::kCounted;

  constexpr bool Allows(core::Role role) const {
    switch (callers) {
      case Callers::kWorkloads:
        return role == core::Role::kWorkload;
      case Callers::kOperators:
        return role == core::Role::kOperator;
      case Callers::kOperatorsAndPlugins:
        return role == core::Role::kOperator || role == core::Role::kDevicePlugin;
      case Callers::kAll:
        return true;
    }
    return false;
  }
};

// One row for every method of every service. A method without a row cannot be called: its handler does not compile, and
// if the descriptor has it, the daemon refuses to start.
inline constexpr std::array kMethodTable = {
    MethodRow{"SessionService.OpenSession", Callers::kWorkloads, Needs::kNoSession, Audit::kDecision},
    MethodRow{"SessionService.JoinSession", Callers::kWorkloads, Needs::kNoSession, Audit::kDecision},
    MethodRow{"SessionService.GetSession", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"SessionService.WatchEvents", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"SessionService.CloseSession", Callers::kWorkloads, Needs::kSession, Audit::kDecision,
              Pace::kFreeInSession},

    MethodRow{"AdapterService.ListAdapters", Callers::kAll, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdapterService.OpenAdapter", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"AdapterService.QueryAdapterInfo", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"AdapterService.CloseAdapter", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    MethodRow{"MemoryService.AllocateMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.ImportMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.SealMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.ReleaseMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.CreatePd", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.ClosePd", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.CreateMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.RegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.DeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.InitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.GetLocalToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.GetRemoteToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.CloseMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BuildLam", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.ReleaseLam", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchCreateMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchDeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchInitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchGetLocalToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchGetRemoteToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchCloseMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchAllocateMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.BatchSealMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"MemoryService.ProvisionMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    MethodRow{"QueueService.CreateCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.ResizeCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    // The data path, from here to GetCqResultsEx, and Flush and Post: with a line for each work request the audit log
    // would be useless. The reach of a post was decided when the region, the window and the connection were made.
    MethodRow{"QueueService.ArmCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetCqResults", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetCqResultsEx", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CloseCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.CreateQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.QueryQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.ConnectQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.DisconnectQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.Flush", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CloseQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.Post", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CreateMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.GetRemoteTokenFromMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.CloseMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"QueueService.GetPrivilegedMemoryRegionToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    MethodRow{"RingService.OpenRing", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    MethodRow{"RingService.CloseRing", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    MethodRow{"AdminService.GetStatus", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.ListSessions", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.ListRegions", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.ListTenants", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.InspectSession", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    // Changes nothing, but discloses everything at once.
    MethodRow{"AdminService.DumpState", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.EvictSession", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.Drain", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.SetLogLevel", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.ReloadPolicy", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.CreateGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.RevokeGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.BindGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    MethodRow{"AdminService.ListGrants", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.SetPods", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},

    MethodRow{"Health.Check", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"Health.Watch", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
};

// The row of every call whose path names no method: refused, but counted, and against the caller's rate.
inline constexpr MethodRow kUnknownMethodRow{"unknown", Callers::kAll, Needs::kNoSession, Audit::kQuiet};

// The row of a method; a name without a row does not compile.
consteval const MethodRow& Row(std::string_view name) {
  for (const MethodRow& row : kMethodTable) {
    if (row.name == name) {
      return row;
    }
  }
  throw std::logic_error("this method has no row in kMethodTable");
}

// Compares the table with the services compiled into this program. Errors: kInternal with the methods that have no row
// and the rows that have no method.
absl::Status CheckMethodTable();

}  // namespace rnicd::gate
