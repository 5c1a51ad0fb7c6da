#include "tests/support/calls/raw_client.h"

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/impl/rpc_method.h"
#include "tests/support/calls/raw_channel.h"

namespace rnicd::test {

RawClient::RawClient(const std::string& socket_path) : channel_(MakeChannel(socket_path)) {}

CallOutcome RawClient::Call(const char* path, const google::protobuf::Message& request,
                            google::protobuf::Message* response, grpc::ClientContext& context) {
  using google::protobuf::MessageLite;
  const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::NORMAL_RPC);
  return OutcomeOf(
      grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(channel_.get(), method, &context, request, response));
}

CallOutcome RawClient::Carry(const char* path, const google::protobuf::Message& request,
                             google::protobuf::Message* response, std::chrono::milliseconds limit) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  return Call(path, request, response, context);
}

v1::MdlEntry MdlEntry(uint64_t memory_id, uint64_t offset, uint64_t count, uint64_t virtual_address) {
  v1::MdlEntry entry;
  entry.set_memory_id(memory_id);
  entry.set_byte_offset(offset);
  entry.set_byte_count(count);
  entry.set_virtual_address(virtual_address);
  return entry;
}

v1::RegisterMrRequest RegisterRequest(uint64_t mr_id, const std::vector<v1::MdlEntry>& chain, uint64_t length) {
  v1::RegisterMrRequest request;
  request.set_mr_id(mr_id);
  request.mutable_mdl_chain()->Assign(chain.begin(), chain.end());
  request.set_length(length);
  return request;
}

}  // namespace rnicd::test
