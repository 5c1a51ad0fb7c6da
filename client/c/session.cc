#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::c::CheckGiven;
using rnicd::c::CloseHandle;
using rnicd::c::Fill;
using rnicd::c::Run;

namespace rnicd::c {
namespace {

std::string TextOr(const char* text, std::string otherwise) { return text != nullptr ? text : std::move(otherwise); }

std::chrono::milliseconds DeadlineOr(uint32_t given_ms, std::chrono::milliseconds otherwise) {
  return given_ms != 0 ? std::chrono::milliseconds(given_ms) : otherwise;
}

// Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<ClientOptions> SessionOptionsOf(const rnicd_session_options* given) {
  RNICD_ASSIGN_OR_RETURN(const rnicd_session_options options, TakeOptional(given, "options"));
  RNICD_RETURN_IF_ERROR(CheckFlags(options.flags, RNICD_THREAD, "options.flags"));
  RNICD_RETURN_IF_ERROR(CheckFlags(options.reserved, 0, "options.reserved"));
  if (options.data_path > RNICD_DATA_PATH_RINGS) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "options.data_path");
  }
  ClientOptions own;
  own.socket_dir = TextOr(options.socket_dir, std::move(own.socket_dir));
  own.label = TextOr(options.label, "");
  own.grant = TextOr(options.grant, "");
  own.adapter_name = TextOr(options.adapter_name, "");
  own.call_deadline = DeadlineOr(options.call_deadline_ms, own.call_deadline);
  own.release_deadline = DeadlineOr(options.release_deadline_ms, own.release_deadline);
  own.data_path = static_cast<DataPath>(options.data_path);
  if (options.spin_max_us != 0) {
    own.spin_max = std::chrono::microseconds(std::max(options.spin_max_us, 0));
  }
  own.callbacks_in_progress = (options.flags & RNICD_THREAD) == 0;
  if (options.on_session_ended != nullptr) {
    own.on_session_ended = [call = options.on_session_ended, context = options.context](const absl::Status& why) {
      const rnicd_error error = Describe(why);
      call(context, &error);
    };
  }
  if (options.on_adapter_removed != nullptr) {
    own.on_adapter_removed = [call = options.on_adapter_removed, context = options.context] { call(context); };
  }
  return own;
}

rnicd_adapter_info ToC(const NdkAdapterInfo& info) {
  return {.size = sizeof(rnicd_adapter_info),
          .version_major = info.version.major,
          .version_minor = info.version.minor,
          .vendor_id = info.vendor_id,
          .device_id = info.device_id,
          .frmr_page_count = info.frmr_page_count,
          .max_registration_size = info.max_registration_size,
          .max_window_size = info.max_window_size,
          .max_initiator_request_sge = info.max_initiator_request_sge,
          .max_receive_request_sge = info.max_receive_request_sge,
          .max_read_request_sge = info.max_read_request_sge,
          .max_transfer_length = info.max_transfer_length,
          .max_inline_data_size = info.max_inline_data_size,
          .max_inbound_read_limit = info.max_inbound_read_limit,
          .max_outbound_read_limit = info.max_outbound_read_limit,
          .max_receive_queue_depth = info.max_receive_queue_depth,
          .max_initiator_queue_depth = info.max_initiator_queue_depth,
          .max_srq_depth = info.max_srq_depth,
          .max_cq_depth = info.max_cq_depth,
          .large_request_threshold = info.large_request_threshold,
          .max_caller_data = info.max_caller_data,
          .max_callee_data = info.max_callee_data,
          .adapter_flags = info.adapter_flags,
          .rdma_technology = static_cast<uint32_t>(info.rdma_technology)};
}

// Errors: FIELD_OUT_OF_RANGE for a name that does not fit: rnicd_open_session would not find the adapter by a part of
// it.
template <size_t kBytes>
absl::Status CopyName(const std::string& name, char (&to)[kBytes]) {
  if (name.size() >= kBytes) {
    return WithErrno(MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "adapter.name"), ENAMETOOLONG);
  }
  std::memcpy(to, name.c_str(), name.size() + 1);
  return absl::OkStatus();
}

// Errors: as CheckGiven; FIELD_OUT_OF_RANGE for a session with RNICD_THREAD.
absl::Status CheckWithoutThread(const rnicd_session* session) {
  RNICD_RETURN_IF_ERROR(CheckGiven("session", session));
  return session->has_thread ? MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "session"},
                                                   "it has RNICD_THREAD")
                             : absl::OkStatus();
}

absl::Status ConnectFailure(const absl::Status& failure) {
  return IsTransportFailure(failure) && failure.code() == absl::StatusCode::kUnavailable
             ? WithErrno(failure, ECONNREFUSED)
             : failure;
}

}  // namespace
}  // namespace rnicd::c

int rnicd_open_session(const rnicd_session_options* options, rnicd_session** session) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session));
    RNICD_ASSIGN_OR_RETURN(rnicd::ClientOptions own, rnicd::c::SessionOptionsOf(options));
    const bool has_thread = !own.callbacks_in_progress;
    absl::StatusOr<rnicd::Client> client = rnicd::Client::Connect(std::move(own));
    RNICD_RETURN_IF_ERROR(rnicd::c::ConnectFailure(client.status()));
    RNICD_RETURN_IF_ERROR(rnicd::c::Give(std::move(client), session));
    (*session)->has_thread = has_thread;
    return absl::OkStatus();
  });
}

int rnicd_close_session(rnicd_session* session, rnicd_reclaimed* reclaimed) {
  return CloseHandle(session, [&](rnicd::Client& client) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const rnicd::Reclaimed outcome, client.Close());
    return reclaimed == nullptr ? absl::OkStatus()
                                : Fill({.size = sizeof(rnicd_reclaimed),
                                        .regions = outcome.regions,
                                        .pinned_bytes = outcome.pinned_bytes,
                                        .memory_bytes = outcome.memory_bytes},
                                       reclaimed, "reclaimed");
  });
}

uint64_t rnicd_session_id(const rnicd_session* session) {
  return session != nullptr ? session->object.session_id().value : 0;
}

const char* rnicd_tenant(const rnicd_session* session) { return session != nullptr ? session->tenant.c_str() : ""; }

int rnicd_query_session(rnicd_session* session, rnicd_resource* resources, uint32_t capacity) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session));
    RNICD_RETURN_IF_ERROR(capacity == 0 ? absl::OkStatus() : CheckGiven("resources", resources));
    RNICD_ASSIGN_OR_RETURN(const rnicd::SessionUse use, session->object.GetSession());
    for (size_t index = 0; index < std::min<size_t>(capacity, use.resources.size()); ++index) {
      const rnicd::ResourceUse& one = use.resources[index];
      resources[index] = {.name = {}, .used = one.used, .limit = one.limit};
      one.name.copy(resources[index].name, sizeof(resources[index].name) - 1);
    }
    return static_cast<int>(use.resources.size());
  });
}

int rnicd_get_adapter(rnicd_session* session, uint32_t index, rnicd_adapter* adapter, rnicd_adapter_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "adapter", adapter));
    RNICD_ASSIGN_OR_RETURN(const std::vector<rnicd::AdapterSummary> adapters, session->object.ListAdapters());
    if (index >= adapters.size()) {
      return rnicd::MakeError(rnicd::ErrorReason::ADAPTER_NOT_FOUND, "index");
    }
    const rnicd::AdapterSummary& one = adapters[index];
    rnicd_adapter own = {.size = sizeof(own), .name = {}, .provider = {}, .numa_node = one.numa_node, .reserved = 0};
    RNICD_RETURN_IF_ERROR(rnicd::c::CopyName(one.name, own.name));
    RNICD_RETURN_IF_ERROR(rnicd::c::CopyName(one.provider, own.provider));
    RNICD_RETURN_IF_ERROR(info == nullptr ? absl::OkStatus() : Fill(rnicd::c::ToC(one.info), info, "info"));
    return Fill(own, adapter, "adapter");
  });
}

int rnicd_query_adapter(rnicd_session* session, rnicd_adapter_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "info", info));
    RNICD_ASSIGN_OR_RETURN(const rnicd::NdkAdapterInfo own, session->object.QueryAdapterInfo());
    return Fill(rnicd::c::ToC(own), info, "info");
  });
}

int rnicd_privileged_token(rnicd_session* session, uint32_t* token) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "token", token));
    RNICD_ASSIGN_OR_RETURN(const rnicd::PrivilegedToken own, session->object.GetPrivilegedToken());
    *token = own.value;
    return absl::OkStatus();
  });
}

int rnicd_fd(rnicd_session* session) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(rnicd::c::CheckWithoutThread(session));
    return session->object.EventDescriptor();
  });
}

int rnicd_progress(rnicd_session* session, int timeout_ms) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(rnicd::c::CheckWithoutThread(session));
    return session->object.Progress(rnicd::c::WaitOf(timeout_ms));
  });
}

const char* rnicd_version() { return RNICD_VERSION; }
