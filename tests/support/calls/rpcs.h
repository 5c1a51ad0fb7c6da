#pragma once

#include "grpc/health/v1/health.pb.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/connection_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/ring_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::test {

// A unary method of the wire: its path, and the types of its messages. The generated stubs say the same, but each file
// that includes them compiles for seconds longer.
template <typename Request, typename Response>
struct Rpc {
  const char* path;
};

#define RNICD_RPC(service, method) \
  static constexpr Rpc<v1::method##Request, v1::method##Response> method{"/rnicd.v1." #service "/" #method};

struct SessionStub {
  RNICD_RPC(SessionService, OpenSession)
  RNICD_RPC(SessionService, JoinSession)
  RNICD_RPC(SessionService, GetSession)
  RNICD_RPC(SessionService, CloseSession)
};

struct AdapterStub {
  RNICD_RPC(AdapterService, ListAdapters)
  RNICD_RPC(AdapterService, OpenAdapter)
  RNICD_RPC(AdapterService, QueryAdapterInfo)
  RNICD_RPC(AdapterService, CloseAdapter)
};

struct ConnectionStub {
  RNICD_RPC(ConnectionService, CreateListener)
  RNICD_RPC(ConnectionService, Listen)
  RNICD_RPC(ConnectionService, ControlConnectEvents)
  RNICD_RPC(ConnectionService, GetListenerLocalAddress)
  RNICD_RPC(ConnectionService, CloseListener)
  RNICD_RPC(ConnectionService, CreateSharedEndpoint)
  RNICD_RPC(ConnectionService, CloseSharedEndpoint)
  RNICD_RPC(ConnectionService, CreateConnector)
  RNICD_RPC(ConnectionService, Connect)
  RNICD_RPC(ConnectionService, CompleteConnect)
  RNICD_RPC(ConnectionService, Accept)
  RNICD_RPC(ConnectionService, Reject)
  RNICD_RPC(ConnectionService, GetConnectionData)
  RNICD_RPC(ConnectionService, GetConnectorAddresses)
  RNICD_RPC(ConnectionService, Disconnect)
  RNICD_RPC(ConnectionService, CloseConnector)
};

struct MemoryStub {
  RNICD_RPC(MemoryService, AllocateMemory)
  RNICD_RPC(MemoryService, ImportMemory)
  RNICD_RPC(MemoryService, SealMemory)
  RNICD_RPC(MemoryService, ReleaseMemory)
  RNICD_RPC(MemoryService, CreatePd)
  RNICD_RPC(MemoryService, ClosePd)
  RNICD_RPC(MemoryService, CreateMr)
  RNICD_RPC(MemoryService, RegisterMr)
  RNICD_RPC(MemoryService, DeregisterMr)
  RNICD_RPC(MemoryService, InitializeFastRegisterMr)
  RNICD_RPC(MemoryService, GetLocalToken)
  RNICD_RPC(MemoryService, GetRemoteToken)
  RNICD_RPC(MemoryService, CloseMr)
  RNICD_RPC(MemoryService, BuildLam)
  RNICD_RPC(MemoryService, ReleaseLam)
  RNICD_RPC(MemoryService, BatchCreateMr)
  RNICD_RPC(MemoryService, BatchRegisterMr)
  RNICD_RPC(MemoryService, BatchInitializeFastRegisterMr)
  RNICD_RPC(MemoryService, BatchDeregisterMr)
  RNICD_RPC(MemoryService, BatchCloseMr)
  RNICD_RPC(MemoryService, BatchAllocateMemory)
  RNICD_RPC(MemoryService, BatchSealMemory)
  RNICD_RPC(MemoryService, ProvisionMemory)
};

struct QueueStub {
  RNICD_RPC(QueueService, CreateCq)
  RNICD_RPC(QueueService, ResizeCq)
  RNICD_RPC(QueueService, ArmCq)
  RNICD_RPC(QueueService, GetCqResults)
  RNICD_RPC(QueueService, GetCqResultsEx)
  RNICD_RPC(QueueService, CloseCq)
  RNICD_RPC(QueueService, CreateQp)
  RNICD_RPC(QueueService, QueryQp)
  RNICD_RPC(QueueService, ConnectQp)
  RNICD_RPC(QueueService, DisconnectQp)
  RNICD_RPC(QueueService, Flush)
  RNICD_RPC(QueueService, CloseQp)
  RNICD_RPC(QueueService, Post)
  RNICD_RPC(QueueService, CreateMw)
  RNICD_RPC(QueueService, GetRemoteTokenFromMw)
  RNICD_RPC(QueueService, CloseMw)
  RNICD_RPC(QueueService, GetPrivilegedMemoryRegionToken)
};

struct RingStub {
  RNICD_RPC(RingService, OpenRing)
  RNICD_RPC(RingService, CloseRing)
};

struct AdminStub {
  RNICD_RPC(AdminService, GetStatus)
  RNICD_RPC(AdminService, ListSessions)
  RNICD_RPC(AdminService, ListRegions)
  RNICD_RPC(AdminService, ListTenants)
  RNICD_RPC(AdminService, ListListeners)
  RNICD_RPC(AdminService, ListConnections)
  RNICD_RPC(AdminService, InspectSession)
  RNICD_RPC(AdminService, DumpState)
  RNICD_RPC(AdminService, EvictSession)
  RNICD_RPC(AdminService, Drain)
  RNICD_RPC(AdminService, SetLogLevel)
  RNICD_RPC(AdminService, ReloadPolicy)
  RNICD_RPC(AdminService, CreateGrant)
  RNICD_RPC(AdminService, RevokeGrant)
  RNICD_RPC(AdminService, BindGrant)
  RNICD_RPC(AdminService, ListGrants)
  RNICD_RPC(AdminService, SetPods)
};

#undef RNICD_RPC

struct HealthStub {
  static constexpr Rpc<grpc::health::v1::HealthCheckRequest, grpc::health::v1::HealthCheckResponse> Check{
      "/grpc.health.v1.Health/Check"};
};

}  // namespace rnicd::test
