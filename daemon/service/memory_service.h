#pragma once

#include <utility>

#include "daemon/core/session.h"
#include "daemon/core/ticket_table.h"
#include "daemon/gate/gate.h"
#include "rnicd/v1/memory_service.grpc.pb.h"

namespace rnicd::service {

// One override of a unary method, all alike.
#define RNICD_UNARY(method)                                                                                  \
  grpc::ServerUnaryReactor* method(grpc::CallbackServerContext* context, const v1::method##Request* request, \
                                   v1::method##Response* response) override;

// Memory objects, protection domains and regions: see memory_service.proto. One per connection. Threads: safe.
class MemoryService final : public v1::MemoryService::CallbackService {
 public:
  // `tickets` outlives the service.
  MemoryService(gate::Gate gate, const core::TicketTable& tickets) : gate_(std::move(gate)), tickets_(tickets) {}

  RNICD_UNARY(AllocateMemory)
  RNICD_UNARY(ImportMemory)
  RNICD_UNARY(SealMemory)
  RNICD_UNARY(ReleaseMemory)
  RNICD_UNARY(CreatePd)
  RNICD_UNARY(ClosePd)
  RNICD_UNARY(CreateMr)
  RNICD_UNARY(RegisterMr)
  RNICD_UNARY(DeregisterMr)
  RNICD_UNARY(InitializeFastRegisterMr)
  RNICD_UNARY(GetLocalToken)
  RNICD_UNARY(GetRemoteToken)
  RNICD_UNARY(CloseMr)
  RNICD_UNARY(BuildLam)
  RNICD_UNARY(ReleaseLam)
  RNICD_UNARY(BatchCreateMr)
  RNICD_UNARY(BatchRegisterMr)
  RNICD_UNARY(BatchDeregisterMr)
  RNICD_UNARY(BatchInitializeFastRegisterMr)
  RNICD_UNARY(BatchGetLocalToken)
  RNICD_UNARY(BatchGetRemoteToken)
  RNICD_UNARY(BatchCloseMr)

 private:
  template <typename Response>
  void FillTicket(const core::MemoryTicket& ticket, Response* response) const;

  gate::Gate gate_;
  const core::TicketTable& tickets_;
};

#undef RNICD_UNARY

}  // namespace rnicd::service
