#include "tests/support/test_session.h"

#include <gtest/gtest.h>

#include "tests/support/calls/data_path.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {

v1::ProvisionRange ProvisionRange(uint64_t offset, uint64_t length) {
  v1::ProvisionRange range;
  range.set_byte_offset(offset);
  range.set_length(length);
  range.set_virtual_address(kBase + offset);
  return range;
}

TestSession::TestSession(DaemonProcess& daemon, const std::string& label, const std::string& grant)
    : TestSession(Sockets{.rpc = daemon.rpc_socket(), .fd = daemon.fd_socket()}, label, grant) {}

TestSession::TestSession(const Sockets& sockets, const std::string& label, const std::string& grant)
    : RawClient(sockets.rpc), fd_socket_(sockets.fd) {
  v1::OpenSessionRequest request;
  request.set_label(label);
  request.set_grant(grant);
  const auto opened = Call(&SessionStub::OpenSession, request);
  ExpectOk(opened);
  session_id_ = opened.response.session_id();
  if (UsesRings()) {
    data_path_ = std::make_unique<DataPath>(DataPath::Connection{
        .call = [this](
                    const char* path, const google::protobuf::Message& call,
                    google::protobuf::Message* response) { return RawClient::Carry(path, call, response, kTimeout); },
        .fetch = [this](const std::string& ticket) { return Fetch(ticket); }});
  }
}

TestSession::~TestSession() = default;

CallOutcome TestSession::Carry(const char* path, const google::protobuf::Message& request,
                               google::protobuf::Message* response, std::chrono::milliseconds limit) {
  if (data_path_ != nullptr) {
    if (std::optional<CallOutcome> carried = data_path_->Carry(path, request, response); carried.has_value()) {
      return *std::move(carried);
    }
  }
  return RawClient::Carry(path, request, response, limit);
}

uint64_t TestSession::adapter_id() {
  if (adapter_id_ == 0) {
    v1::OpenAdapterRequest request;
    request.set_adapter_name(AdapterUnderTest());
    const auto opened = Call(&AdapterStub::OpenAdapter, request);
    ExpectOk(opened);
    adapter_id_ = opened.response.adapter_id();
  }
  return adapter_id_;
}

uint64_t TestSession::pd_id() {
  if (pd_id_ == 0) {
    v1::CreatePdRequest request;
    request.set_adapter_id(adapter_id());
    const auto created = Call(&MemoryStub::CreatePd, request);
    ExpectOk(created);
    pd_id_ = created.response.pd_id();
  }
  return pd_id_;
}

v1::AllocateMemoryResponse TestSession::Allocate(uint64_t size) {
  v1::AllocateMemoryRequest request;
  request.set_size(size);
  const auto allocated = Call(&MemoryStub::AllocateMemory, request);
  ExpectOk(allocated);
  return allocated.response;
}

v1::ImportMemoryResponse TestSession::Import(uint64_t size) {
  v1::ImportMemoryRequest request;
  request.set_size(size);
  const auto announced = Call(&MemoryStub::ImportMemory, request);
  ExpectOk(announced);
  return announced.response;
}

UniqueFd TestSession::Fetch(const std::string& ticket) {
  FdAnswer answer = FetchFd(fd_socket_, ticket);
  if (!ExpectFdOk(answer) || answer.descriptors.size() != 1) {
    ADD_FAILURE() << "a fetch must return one descriptor, not " << answer.descriptors.size();
    return UniqueFd();
  }
  return std::move(answer.descriptors.front());
}

uint64_t TestSession::AttachedMemory(uint64_t size) {
  const v1::AllocateMemoryResponse memory = Allocate(size);
  Fetch(memory.fd_ticket());
  return memory.memory_id();
}

uint64_t TestSession::SealedMemory(uint64_t size) {
  const uint64_t memory_id = AttachedMemory(size);
  return ExpectOk(Seal(memory_id)) ? memory_id : 0;
}

CallResult<v1::SealMemoryResponse> TestSession::Seal(uint64_t memory_id) {
  v1::SealMemoryRequest request;
  request.set_memory_id(memory_id);
  return Call(&MemoryStub::SealMemory, request);
}

CallResult<v1::ReleaseMemoryResponse> TestSession::Release(uint64_t memory_id) {
  v1::ReleaseMemoryRequest request;
  request.set_memory_id(memory_id);
  return Call(&MemoryStub::ReleaseMemory, request);
}

CallResult<v1::CloseSessionResponse> TestSession::CloseSession() { return Call(&SessionStub::CloseSession, {}); }

uint64_t TestSession::CreateMr(bool fast_register) {
  v1::CreateMrRequest request;
  request.set_pd_id(pd_id());
  request.set_fast_register(fast_register);
  const auto created = Call(&MemoryStub::CreateMr, request);
  ExpectOk(created);
  return created.response.mr_id();
}

CallResult<v1::RegisterMrResponse> TestSession::Register(const v1::RegisterMrRequest& request) {
  return Call(&MemoryStub::RegisterMr, request);
}

v1::Registration TestSession::RegisterWhole(uint64_t mr_id, uint64_t memory_id, uint64_t size, uint32_t flags) {
  v1::RegisterMrRequest request = RegisterRequest(mr_id, {MdlEntry(memory_id, 0, size, kBase)}, size);
  request.set_flags(flags);
  const auto registered = Register(request);
  ExpectOk(registered);
  EXPECT_EQ(registered.response.ntstatus(), kStatusSuccess);
  return registered.response.registration();
}

CallResult<v1::DeregisterMrResponse> TestSession::Deregister(uint64_t mr_id, bool allow_pending, uint64_t context) {
  v1::DeregisterMrRequest request;
  request.set_mr_id(mr_id);
  request.set_allow_pending(allow_pending);
  request.set_request_context(context);
  return Call(&MemoryStub::DeregisterMr, request);
}

CallResult<v1::CloseMrResponse> TestSession::CloseMr(uint64_t mr_id, bool allow_pending, uint64_t context) {
  v1::CloseMrRequest request;
  request.set_mr_id(mr_id);
  request.set_allow_pending(allow_pending);
  request.set_request_context(context);
  return Call(&MemoryStub::CloseMr, request);
}

CallResult<v1::ClosePdResponse> TestSession::ClosePd(uint64_t pd_id, bool allow_pending, uint64_t context) {
  v1::ClosePdRequest request;
  request.set_pd_id(pd_id);
  request.set_allow_pending(allow_pending);
  request.set_request_context(context);
  return Call(&MemoryStub::ClosePd, request);
}

CallResult<v1::GetLocalTokenResponse> TestSession::LocalToken(uint64_t mr_id) {
  v1::GetLocalTokenRequest request;
  request.set_mr_id(mr_id);
  return Call(&MemoryStub::GetLocalToken, request);
}

CallResult<v1::GetRemoteTokenResponse> TestSession::RemoteToken(uint64_t mr_id) {
  v1::GetRemoteTokenRequest request;
  request.set_mr_id(mr_id);
  return Call(&MemoryStub::GetRemoteToken, request);
}

v1::ResourceUse TestSession::Use(const std::string& resource) {
  const auto session = Call(&SessionStub::GetSession, {});
  ExpectOk(session);
  for (const v1::ResourceUse& use : session.response.resources()) {
    if (use.name() == resource) {
      return use;
    }
  }
  ADD_FAILURE() << "GetSession does not report " << resource;
  return v1::ResourceUse();
}

}  // namespace rnicd::test
