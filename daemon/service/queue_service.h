#pragma once

#include <utility>

#include "daemon/gate/gate.h"
#include "rnicd/v1/queue_service.grpc.pb.h"

namespace rnicd::service {

// One override of a unary method, all alike.
#define RNICD_UNARY(method)                                                                                  \
  grpc::ServerUnaryReactor* method(grpc::CallbackServerContext* context, const v1::method##Request* request, \
                                   v1::method##Response* response) override;

// Completion queues, queue pairs, windows and posting: see queue_service.proto. One per connection. Threads: safe.
class QueueService final : public v1::QueueService::CallbackService {
 public:
  explicit QueueService(gate::Gate gate) : gate_(std::move(gate)) {}

  RNICD_UNARY(CreateCq)
  RNICD_UNARY(ResizeCq)
  RNICD_UNARY(ArmCq)
  RNICD_UNARY(GetCqResults)
  RNICD_UNARY(GetCqResultsEx)
  RNICD_UNARY(CloseCq)
  RNICD_UNARY(CreateQp)
  RNICD_UNARY(QueryQp)
  RNICD_UNARY(ConnectQp)
  RNICD_UNARY(DisconnectQp)
  RNICD_UNARY(Flush)
  RNICD_UNARY(CloseQp)
  RNICD_UNARY(Post)
  RNICD_UNARY(CreateMw)
  RNICD_UNARY(GetRemoteTokenFromMw)
  RNICD_UNARY(CloseMw)
  RNICD_UNARY(GetPrivilegedMemoryRegionToken)

 private:
  gate::Gate gate_;
};

#undef RNICD_UNARY

}  // namespace rnicd::service
