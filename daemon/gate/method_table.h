#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/core/caller.h"

namespace rnicd::gate {

// Who may call a method.
enum class Callers : uint8_t { kWorkloads, kOperators, kBoth };
// Whether the connection must carry a session.
enum class Needs : uint8_t { kNoSession, kSession };
// Whether a call that succeeds is worth an info line; the life of a session has lines of its own, and a refused call
// always leaves a debug line.
enum class Audit : uint8_t { kQuiet, kLogged };

struct MethodRow {
  // "MemoryService.CreateMr": the name without the package.
  std::string_view name;
  Callers callers;
  Needs needs;
  Audit audit;

  constexpr bool Allows(core::Role role) const {
    switch (callers) {
      case Callers::kWorkloads:
        return role == core::Role::kWorkload;
      case Callers::kOperators:
        return role == core::Role::kOperator;
      case Callers::kBoth:
        return true;
    }
    return false;
  }
};

// A row for every method of every service. What has no row cannot be called: a handler without one does not compile,
// and a method of the descriptor without one stops the daemon at its start.
inline constexpr std::array kMethodTable = {
    MethodRow{"SessionService.OpenSession", Callers::kWorkloads, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"SessionService.JoinSession", Callers::kWorkloads, Needs::kNoSession, Audit::kLogged},
    MethodRow{"SessionService.GetSession", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"SessionService.WatchEvents", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"SessionService.CloseSession", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},

    MethodRow{"AdapterService.ListAdapters", Callers::kBoth, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdapterService.OpenAdapter", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"AdapterService.QueryAdapterInfo", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"AdapterService.CloseAdapter", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},

    MethodRow{"MemoryService.AllocateMemory", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.ImportMemory", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.SealMemory", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.ReleaseMemory", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.CreatePd", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.ClosePd", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.CreateMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.RegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.DeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.InitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.GetLocalToken", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.GetRemoteToken", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.CloseMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BuildLam", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.ReleaseLam", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchCreateMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchDeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchInitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchGetLocalToken", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchGetRemoteToken", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"MemoryService.BatchCloseMr", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},

    MethodRow{"QueueService.CreateCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.ResizeCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.ArmCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetCqResults", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetCqResultsEx", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CloseCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CreateQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.QueryQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.ConnectQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.DisconnectQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.Flush", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CloseQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.Post", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CreateMw", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetRemoteTokenFromMw", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.CloseMw", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    MethodRow{"QueueService.GetPrivilegedMemoryRegionToken", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},

    MethodRow{"AdminService.GetStatus", Callers::kOperators, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.ListSessions", Callers::kOperators, Needs::kNoSession, Audit::kQuiet},
    MethodRow{"AdminService.ListRegions", Callers::kOperators, Needs::kNoSession, Audit::kQuiet},
};

// The row of a method; a name without one does not compile.
consteval const MethodRow& Row(std::string_view name) {
  for (const MethodRow& row : kMethodTable) {
    if (row.name == name) {
      return row;
    }
  }
  throw std::logic_error("this method has no row in kMethodTable");
}

// Compares the table with the services compiled into this program. Errors: kInternal naming what has no row, or what
// row has no method.
absl::Status CheckMethodTable();

}  // namespace rnicd::gate
