#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/admin_service.grpc.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/queue_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"
#include "tests/support/call_result.h"
#include "tests/support/wait.h"

namespace rnicd::test {

using SessionStub = v1::SessionService::Stub;
using AdapterStub = v1::AdapterService::Stub;
using MemoryStub = v1::MemoryService::Stub;
using QueueStub = v1::QueueService::Stub;
using AdminStub = v1::AdminService::Stub;
using HealthStub = grpc::health::v1::Health::Stub;

// One connection to a gRPC socket with the plain generated stubs, as in any language that has gRPC.
// Lifetime: the first call makes the connection, the destructor closes it.
class RawClient {
 public:
  explicit RawClient(const std::string& socket_path);

  // client.Call(&MemoryStub::CreatePd, request)
  template <typename Stub, typename Request, typename Response>
  CallResult<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                            const std::type_identity_t<Request>& request, std::chrono::milliseconds limit = kTimeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    CallResult<Response> result;
    static_cast<CallOutcome&>(result) = OutcomeOf((stub<Stub>().*method)(&context, request, &result.response));
    return result;
  }

  template <typename Stub>
  Stub& stub() {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::tuple<std::unique_ptr<SessionStub>, std::unique_ptr<AdapterStub>, std::unique_ptr<MemoryStub>,
             std::unique_ptr<QueueStub>, std::unique_ptr<AdminStub>, std::unique_ptr<HealthStub>>
      stubs_;
};

// One entry of an MDL chain.
v1::MdlEntry MdlEntry(uint64_t memory_id, uint64_t offset, uint64_t count, uint64_t virtual_address);

// A request to register a chain; flags and the like are set by the caller.
v1::RegisterMrRequest RegisterRequest(uint64_t mr_id, const std::vector<v1::MdlEntry>& chain, uint64_t length);

}  // namespace rnicd::test
