#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <tuple>

#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/queue_service.grpc.pb.h"
#include "rnicd/v1/ring_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::inline client {

// gRPC's stubs of the services for workloads, on one channel.
// Threads: safe.
class Stubs {
 public:
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : stubs_(v1::SessionService::NewStub(channel), v1::AdapterService::NewStub(channel),
               v1::MemoryService::NewStub(channel), v1::QueueService::NewStub(channel),
               v1::RingService::NewStub(channel)) {}

  template <typename Stub>
  Stub& Of() const {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }

 private:
  template <typename... Services>
  using Each = std::tuple<std::unique_ptr<typename Services::Stub>...>;

  const Each<v1::SessionService, v1::AdapterService, v1::MemoryService, v1::QueueService, v1::RingService> stubs_;
};

}  // namespace rnicd::inline client
