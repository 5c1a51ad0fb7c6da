#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "daemon/core/tenant/caller.h"
#include "ring/layout.h"

namespace rnicd::core {

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

// An operation of the daemon: requested by a gRPC call, and some of them also by an entry of a ring.
struct Operation {
  // "MemoryService.CreateMr": the name without the package.
  std::string_view name;
  Callers callers;
  Needs needs;
  Audit audit;
  Pace pace = Pace::kCounted;
  // Its number in a ring, and how the audit log names the object of such an entry; kNop for what rings do not carry.
  ring::Opcode opcode = ring::Opcode::kNop;
  std::string_view object;

  constexpr bool Allows(Role role) const {
    switch (callers) {
      case Callers::kWorkloads:
        return role == Role::kWorkload;
      case Callers::kOperators:
        return role == Role::kOperator;
      case Callers::kOperatorsAndPlugins:
        return role == Role::kOperator || role == Role::kDevicePlugin;
      case Callers::kAll:
        return true;
    }
    return false;
  }
};

// One row for every method of every service. A method without a row cannot be called: its handler does not compile, and
// if the descriptor has it, the daemon refuses to start.
inline constexpr std::array kOperations = {
    Operation{"SessionService.OpenSession", Callers::kWorkloads, Needs::kNoSession, Audit::kDecision},
    Operation{"SessionService.JoinSession", Callers::kWorkloads, Needs::kNoSession, Audit::kDecision},
    Operation{"SessionService.GetSession", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"SessionService.WatchEvents", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"SessionService.CloseSession", Callers::kWorkloads, Needs::kSession, Audit::kDecision,
              Pace::kFreeInSession},

    Operation{"AdapterService.ListAdapters", Callers::kAll, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdapterService.OpenAdapter", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"AdapterService.QueryAdapterInfo", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"AdapterService.CloseAdapter", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    Operation{"MemoryService.AllocateMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.ImportMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.SealMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.ReleaseMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.CreatePd", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.ClosePd", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.CreateMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.RegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision, Pace::kCounted,
              ring::Opcode::kRegisterMr, "mr_id"},
    Operation{"MemoryService.DeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision, Pace::kCounted,
              ring::Opcode::kDeregisterMr, "mr_id"},
    Operation{"MemoryService.InitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.GetLocalToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.GetRemoteToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision, Pace::kCounted,
              ring::Opcode::kGetRemoteToken, "mr_id"},
    Operation{"MemoryService.CloseMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BuildLam", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.ReleaseLam", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchCreateMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchDeregisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchInitializeFastRegisterMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchCloseMr", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchAllocateMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.BatchSealMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"MemoryService.ProvisionMemory", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    Operation{"QueueService.CreateCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.ResizeCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    // The data path, from here to GetCqResultsEx, and Flush and Post: with a line for each work request the audit log
    // would be useless. The reach of a post was decided when the region, the window and the connection were made.
    Operation{"QueueService.ArmCq", Callers::kWorkloads, Needs::kSession, Audit::kQuiet, Pace::kCounted,
              ring::Opcode::kArmCq, "cq_id"},
    Operation{"QueueService.GetCqResults", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"QueueService.GetCqResultsEx", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"QueueService.CloseCq", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.CreateQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.QueryQp", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"QueueService.ConnectQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.DisconnectQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.Flush", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"QueueService.CloseQp", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.Post", Callers::kWorkloads, Needs::kSession, Audit::kQuiet, Pace::kCounted,
              ring::Opcode::kPost, "qp_id"},
    Operation{"QueueService.CreateMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.GetRemoteTokenFromMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.CloseMw", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"QueueService.GetPrivilegedMemoryRegionToken", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    Operation{"ConnectionService.CreateListener", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.Listen", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.ControlConnectEvents", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.GetListenerLocalAddress", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"ConnectionService.CloseListener", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.CreateSharedEndpoint", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.CloseSharedEndpoint", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.CreateConnector", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.Connect", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.CompleteConnect", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.Accept", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.Reject", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.GetConnectionData", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.GetConnectorAddresses", Callers::kWorkloads, Needs::kSession, Audit::kQuiet},
    Operation{"ConnectionService.Disconnect", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"ConnectionService.CloseConnector", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    Operation{"RingService.OpenRing", Callers::kWorkloads, Needs::kSession, Audit::kDecision},
    Operation{"RingService.CloseRing", Callers::kWorkloads, Needs::kSession, Audit::kDecision},

    Operation{"AdminService.GetStatus", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.ListSessions", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.ListRegions", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.ListListeners", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.ListConnections", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.ListTenants", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.InspectSession", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    // Changes nothing, but discloses everything at once.
    Operation{"AdminService.DumpState", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.EvictSession", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.Drain", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.SetLogLevel", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.ReloadPolicy", Callers::kOperators, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.CreateGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.RevokeGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.BindGrant", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},
    Operation{"AdminService.ListGrants", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"AdminService.SetPods", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kDecision},

    Operation{"Health.Check", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
    Operation{"Health.Watch", Callers::kOperatorsAndPlugins, Needs::kNoSession, Audit::kQuiet},
};

// The row of every call whose path names no method: refused, but counted, and against the caller's rate.
inline constexpr Operation kUnknownOperation{"unknown", Callers::kAll, Needs::kNoSession, Audit::kQuiet};

// The row of a method; a name without a row does not compile.
consteval const Operation& Row(std::string_view name) {
  for (const Operation& row : kOperations) {
    if (row.name == name) {
      return row;
    }
  }
  throw std::logic_error("this method has no row in kOperations");
}

// The operation of a ring's entry; null for an entry that does nothing, and for unknown numbers.
constexpr const Operation* OperationOf(ring::Opcode opcode) {
  for (const Operation& operation : kOperations) {
    if (operation.opcode == opcode && opcode != ring::Opcode::kNop) {
      return &operation;
    }
  }
  return nullptr;
}

}  // namespace rnicd::core
