#pragma once

#include "client/cpp/channel/method.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/connection_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/ring_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

// The methods for workloads that librnicd calls.
namespace rnicd::inline client {

RNICD_METHOD(SessionService, OpenSession);
RNICD_METHOD(SessionService, GetSession);
RNICD_METHOD(SessionService, CloseSession);
RNICD_METHOD(SessionService, WatchEvents);

RNICD_METHOD(AdapterService, ListAdapters);
RNICD_METHOD(AdapterService, OpenAdapter);
RNICD_METHOD(AdapterService, QueryAdapterInfo);

RNICD_METHOD(MemoryService, AllocateMemory);
RNICD_METHOD(MemoryService, ImportMemory);
RNICD_METHOD(MemoryService, SealMemory);
RNICD_METHOD(MemoryService, ReleaseMemory);
RNICD_METHOD(MemoryService, CreatePd);
RNICD_METHOD(MemoryService, CreateMr);
RNICD_METHOD(MemoryService, RegisterMr);
RNICD_METHOD(MemoryService, DeregisterMr);
RNICD_METHOD(MemoryService, InitializeFastRegisterMr);
RNICD_METHOD(MemoryService, GetLocalToken);
RNICD_METHOD(MemoryService, GetRemoteToken);
RNICD_METHOD(MemoryService, CloseMr);
RNICD_METHOD(MemoryService, BuildLam);
RNICD_METHOD(MemoryService, ReleaseLam);
RNICD_METHOD(MemoryService, BatchCreateMr);
RNICD_METHOD(MemoryService, BatchRegisterMr);
RNICD_METHOD(MemoryService, BatchCloseMr);
RNICD_METHOD(MemoryService, BatchAllocateMemory);
RNICD_METHOD(MemoryService, BatchSealMemory);
RNICD_METHOD(MemoryService, ProvisionMemory);

RNICD_METHOD(QueueService, CreateCq);
RNICD_METHOD(QueueService, ResizeCq);
RNICD_METHOD(QueueService, ArmCq);
RNICD_METHOD(QueueService, GetCqResultsEx);
RNICD_METHOD(QueueService, CloseCq);
RNICD_METHOD(QueueService, CreateQp);
RNICD_METHOD(QueueService, QueryQp);
RNICD_METHOD(QueueService, ConnectQp);
RNICD_METHOD(QueueService, DisconnectQp);
RNICD_METHOD(QueueService, Flush);
RNICD_METHOD(QueueService, CloseQp);
RNICD_METHOD(QueueService, Post);
RNICD_METHOD(QueueService, CreateMw);
RNICD_METHOD(QueueService, GetRemoteTokenFromMw);
RNICD_METHOD(QueueService, CloseMw);
RNICD_METHOD(QueueService, GetPrivilegedMemoryRegionToken);

RNICD_METHOD(ConnectionService, CreateListener);
RNICD_METHOD(ConnectionService, Listen);
RNICD_METHOD(ConnectionService, ControlConnectEvents);
RNICD_METHOD(ConnectionService, CloseListener);
RNICD_METHOD(ConnectionService, CreateSharedEndpoint);
RNICD_METHOD(ConnectionService, CloseSharedEndpoint);
RNICD_METHOD(ConnectionService, CreateConnector);
RNICD_METHOD(ConnectionService, Connect);
RNICD_METHOD(ConnectionService, CompleteConnect);
RNICD_METHOD(ConnectionService, Accept);
RNICD_METHOD(ConnectionService, Reject);
RNICD_METHOD(ConnectionService, GetConnectionData);
RNICD_METHOD(ConnectionService, GetConnectorAddresses);
RNICD_METHOD(ConnectionService, Disconnect);
RNICD_METHOD(ConnectionService, CloseConnector);

RNICD_METHOD(RingService, OpenRing);
RNICD_METHOD(RingService, CloseRing);

}  // namespace rnicd::inline client
