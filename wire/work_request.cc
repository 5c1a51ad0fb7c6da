#include "wire/work_request.h"

#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"

namespace rnicd::wire {
namespace {

using WireSges = google::protobuf::RepeatedPtrField<v1::Sge>;

absl::Status SetSges(const Sges& sges, std::string_view operation, WireSges* wire) {
  wire->Reserve(static_cast<int>(sges.size()));
  for (const Sge& sge : sges) {
    if (sge.length > std::numeric_limits<uint32_t>::max()) {
      return MakeError(ErrorReason::TRANSFER_TOO_LONG, std::string(operation) + ".sges");
    }
    v1::Sge& entry = *wire->Add();
    entry.set_address(sge.address);
    entry.set_length(static_cast<uint32_t>(sge.length));
    entry.set_token(sge.token.value);
    if (!sge.inline_data.empty()) {
      entry.set_inline_data(sge.inline_data.data(), sge.inline_data.size());
    }
  }
  return absl::OkStatus();
}

Sges SgesFromWire(const WireSges& wire) {
  Sges sges;
  sges.reserve(static_cast<size_t>(wire.size()));
  for (const v1::Sge& entry : wire) {
    const std::string& bytes = entry.inline_data();
    sges.push_back({.address = entry.address(),
                    .length = entry.length(),
                    .token = LocalToken{entry.token()},
                    .inline_data = std::as_bytes(std::span(bytes.data(), bytes.size()))});
  }
  return sges;
}

template <typename Transfer>
void SetRemote(const RemoteMemory& remote, Transfer* wire) {
  wire->set_remote_address(remote.address.value);
  wire->set_remote_token(remote.token.value);
}

template <typename Transfer>
RemoteMemory RemoteFromWire(const Transfer& wire) {
  return {.address = VirtualAddress{wire.remote_address()}, .token = RemoteToken{wire.remote_token()}};
}

// Writes the operation of a request; one overload for each.
struct OperationWriter {
  v1::WorkRequest& wire;

  absl::Status operator()(std::monostate) const { return absl::OkStatus(); }
  absl::Status operator()(const WorkRequest::Send& send) const {
    return SetSges(send.sges, "send", wire.mutable_send()->mutable_sges());
  }
  absl::Status operator()(const WorkRequest::SendAndInvalidate& send) const {
    wire.mutable_send_and_invalidate()->set_remote_token(send.token.value);
    return SetSges(send.sges, "send_and_invalidate", wire.mutable_send_and_invalidate()->mutable_sges());
  }
  absl::Status operator()(const WorkRequest::Receive& receive) const {
    return SetSges(receive.sges, "receive", wire.mutable_receive()->mutable_sges());
  }
  absl::Status operator()(const WorkRequest::Read& read) const {
    SetRemote(read.remote, wire.mutable_read());
    return SetSges(read.sges, "read", wire.mutable_read()->mutable_sges());
  }
  absl::Status operator()(const WorkRequest::Write& write) const {
    SetRemote(write.remote, wire.mutable_write());
    return SetSges(write.sges, "write", wire.mutable_write()->mutable_sges());
  }
  absl::Status operator()(const WorkRequest::FastRegister& operation) const {
    v1::WorkRequest::FastRegister& out = *wire.mutable_fast_register();
    out.set_mr_id(operation.region.value);
    out.mutable_adapter_page_array()->Add(operation.pages.begin(), operation.pages.end());
    out.set_fbo(operation.fbo);
    out.set_length(operation.length);
    out.set_base_virtual_address(operation.base_address.value);
    return absl::OkStatus();
  }
  absl::Status operator()(const WorkRequest::Invalidate& operation) const {
    v1::WorkRequest::Invalidate& out = *wire.mutable_invalidate();
    if (const auto* region = std::get_if<MemoryRegionId>(&operation.target)) {
      out.set_mr_id(region->value);
    } else if (const auto* window = std::get_if<MemoryWindowId>(&operation.target)) {
      out.set_mw_id(window->value);
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const WorkRequest::Bind& operation) const {
    v1::WorkRequest::Bind& out = *wire.mutable_bind();
    out.set_mr_id(operation.region.value);
    out.set_mw_id(operation.window.value);
    out.set_virtual_address(operation.address.value);
    out.set_length(operation.length);
    return absl::OkStatus();
  }
};

WorkRequest::FastRegister OperationFromWire(const v1::WorkRequest::FastRegister& wire) {
  const auto& pages = wire.adapter_page_array();
  return {.region = MemoryRegionId{wire.mr_id()},
          .pages = std::span<const uint64_t>(pages.data(), static_cast<size_t>(pages.size())),
          .fbo = wire.fbo(),
          .length = wire.length(),
          .base_address = VirtualAddress{wire.base_virtual_address()}};
}

WorkRequest::Invalidate OperationFromWire(const v1::WorkRequest::Invalidate& wire) {
  switch (wire.target_case()) {
    case v1::WorkRequest::Invalidate::kMrId:
      return {.target = MemoryRegionId{wire.mr_id()}};
    case v1::WorkRequest::Invalidate::kMwId:
      return {.target = MemoryWindowId{wire.mw_id()}};
    case v1::WorkRequest::Invalidate::TARGET_NOT_SET:
      break;
  }
  return {};
}

WorkRequest::Bind OperationFromWire(const v1::WorkRequest::Bind& wire) {
  return {.region = MemoryRegionId{wire.mr_id()},
          .window = MemoryWindowId{wire.mw_id()},
          .address = VirtualAddress{wire.virtual_address()},
          .length = wire.length()};
}

WorkRequest::Operation OperationFromWire(const v1::WorkRequest& wire) {
  switch (wire.operation_case()) {
    case v1::WorkRequest::kSend:
      return WorkRequest::Send{SgesFromWire(wire.send().sges())};
    case v1::WorkRequest::kSendAndInvalidate:
      return WorkRequest::SendAndInvalidate{.sges = SgesFromWire(wire.send_and_invalidate().sges()),
                                            .token = RemoteToken{wire.send_and_invalidate().remote_token()}};
    case v1::WorkRequest::kReceive:
      return WorkRequest::Receive{SgesFromWire(wire.receive().sges())};
    case v1::WorkRequest::kRead:
      return WorkRequest::Read{.sges = SgesFromWire(wire.read().sges()), .remote = RemoteFromWire(wire.read())};
    case v1::WorkRequest::kWrite:
      return WorkRequest::Write{.sges = SgesFromWire(wire.write().sges()), .remote = RemoteFromWire(wire.write())};
    case v1::WorkRequest::kFastRegister:
      return OperationFromWire(wire.fast_register());
    case v1::WorkRequest::kInvalidate:
      return OperationFromWire(wire.invalidate());
    case v1::WorkRequest::kBind:
      return OperationFromWire(wire.bind());
    case v1::WorkRequest::OPERATION_NOT_SET:
      break;
  }
  return std::monostate();
}

}  // namespace

absl::StatusOr<v1::WorkRequest> ToWire(const WorkRequest& request) {
  v1::WorkRequest wire;
  wire.set_request_context(request.request_context);
  wire.set_flags(request.flags);
  RNICD_RETURN_IF_ERROR(std::visit(OperationWriter{wire}, request.operation));
  return wire;
}

WorkRequest FromWire(const v1::WorkRequest& request) {
  return {
      .request_context = request.request_context(), .flags = request.flags(), .operation = OperationFromWire(request)};
}

std::vector<WorkRequest> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkRequest>& requests) {
  std::vector<WorkRequest> chain;
  chain.reserve(static_cast<size_t>(requests.size()));
  for (const v1::WorkRequest& request : requests) {
    chain.push_back(FromWire(request));
  }
  return chain;
}

}  // namespace rnicd::wire
