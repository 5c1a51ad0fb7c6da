#include "tests/support/work_requests.h"

namespace rnicd::test {
namespace {

v1::WorkRequest Request(uint32_t flags, uint64_t context) {
  v1::WorkRequest request;
  request.set_flags(flags);
  request.set_request_context(context);
  return request;
}

}  // namespace

v1::Sge Sge(uint64_t address, uint32_t length, uint32_t token) {
  v1::Sge sge;
  sge.set_address(address);
  sge.set_length(length);
  sge.set_token(token);
  return sge;
}

v1::Sge InlineSge(const std::string& data) {
  v1::Sge sge;
  sge.set_length(static_cast<uint32_t>(data.size()));
  sge.set_inline_data(data);
  return sge;
}

v1::WorkRequest SendRequest(const std::vector<v1::Sge>& sges, uint32_t flags, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  request.mutable_send()->mutable_sges()->Assign(sges.begin(), sges.end());
  return request;
}

v1::WorkRequest SendAndInvalidateRequest(const std::vector<v1::Sge>& sges, uint32_t remote_token, uint32_t flags,
                                         uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  auto& send = *request.mutable_send_and_invalidate();
  send.mutable_sges()->Assign(sges.begin(), sges.end());
  send.set_remote_token(remote_token);
  return request;
}

v1::WorkRequest ReceiveRequest(const std::vector<v1::Sge>& sges, uint64_t context) {
  v1::WorkRequest request = Request(0, context);
  request.mutable_receive()->mutable_sges()->Assign(sges.begin(), sges.end());
  return request;
}

v1::WorkRequest ReadRequest(const std::vector<v1::Sge>& sges, uint64_t remote_address, uint32_t remote_token,
                            uint32_t flags, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  auto& read = *request.mutable_read();
  read.mutable_sges()->Assign(sges.begin(), sges.end());
  read.set_remote_address(remote_address);
  read.set_remote_token(remote_token);
  return request;
}

v1::WorkRequest WriteRequest(const std::vector<v1::Sge>& sges, uint64_t remote_address, uint32_t remote_token,
                             uint32_t flags, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  auto& write = *request.mutable_write();
  write.mutable_sges()->Assign(sges.begin(), sges.end());
  write.set_remote_address(remote_address);
  write.set_remote_token(remote_token);
  return request;
}

v1::WorkRequest InlineWriteRequest(const std::string& data, uint64_t remote_address, uint32_t remote_token,
                                   uint64_t context) {
  return WriteRequest({InlineSge(data)}, remote_address, remote_token, v1::OP_FLAG_INLINE, context);
}

v1::WorkRequest FastRegisterRequest(uint64_t mr_id, const std::vector<uint64_t>& pages, uint64_t length, uint64_t base,
                                    uint32_t flags, uint32_t fbo, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  auto& fast_register = *request.mutable_fast_register();
  fast_register.set_mr_id(mr_id);
  fast_register.mutable_adapter_page_array()->Assign(pages.begin(), pages.end());
  fast_register.set_fbo(fbo);
  fast_register.set_length(length);
  fast_register.set_base_virtual_address(base);
  return request;
}

v1::WorkRequest InvalidateMrRequest(uint64_t mr_id, uint32_t flags, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  request.mutable_invalidate()->set_mr_id(mr_id);
  return request;
}

v1::WorkRequest InvalidateMwRequest(uint64_t mw_id, uint32_t flags, uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  request.mutable_invalidate()->set_mw_id(mw_id);
  return request;
}

v1::WorkRequest BindRequest(uint64_t mr_id, uint64_t mw_id, uint64_t virtual_address, uint64_t length, uint32_t flags,
                            uint64_t context) {
  v1::WorkRequest request = Request(flags, context);
  auto& bind = *request.mutable_bind();
  bind.set_mr_id(mr_id);
  bind.set_mw_id(mw_id);
  bind.set_virtual_address(virtual_address);
  bind.set_length(length);
  return request;
}

}  // namespace rnicd::test
