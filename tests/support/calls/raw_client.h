#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/calls/call_result.h"
#include "tests/support/calls/rpcs.h"
#include "tests/support/process/wait.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace rnicd::test {

// One connection to a gRPC socket with the plain generated stubs, as in any language that has gRPC.
// Lifetime: the first call makes the connection, the destructor closes it.
class RawClient {
 public:
  explicit RawClient(const std::string& socket_path);
  virtual ~RawClient() = default;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // client.Call(&MemoryStub::CreatePd, request)
  template <typename Request, typename Response>
  CallResult<Response> Call(const Rpc<Request, Response>* method, const std::type_identity_t<Request>& request,
                            std::chrono::milliseconds limit = kTimeout) {
    CallResult<Response> result;
    static_cast<CallOutcome&>(result) = Carry(method->path, request, &result.response, limit);
    return result;
  }

  // A call whose metadata and deadline are the context's.
  CallOutcome Call(const char* path, const google::protobuf::Message& request, google::protobuf::Message* response,
                   grpc::ClientContext& context);

  // For streams, which have generated stubs of their own.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 protected:
  // A call by gRPC, unless a derived class has another way for it.
  virtual CallOutcome Carry(const char* path, const google::protobuf::Message& request,
                            google::protobuf::Message* response, std::chrono::milliseconds limit);

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

// One entry of an MDL chain.
v1::MdlEntry MdlEntry(uint64_t memory_id, uint64_t offset, uint64_t count, uint64_t virtual_address);

// A request to register a chain; flags and the like are set by the caller.
v1::RegisterMrRequest RegisterRequest(uint64_t mr_id, const std::vector<v1::MdlEntry>& chain, uint64_t length);

}  // namespace rnicd::test
