#include "client/admin/generations.h"

#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::StatusOr<std::vector<v1::GetStatusResponse>> Generations::OlderStatuses() {
  std::vector<v1::GetStatusResponse> statuses;
  RNICD_RETURN_IF_ERROR(EachOlder([&](uint32_t generation, Admin& older) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(v1::GetStatusResponse status, older.Status());
    status.set_generation(generation);
    statuses.push_back(std::move(status));
    return absl::OkStatus();
  }));
  return statuses;
}

absl::StatusOr<v1::DrainResponse> Generations::Drain(bool resume) {
  RNICD_ASSIGN_OR_RETURN(v1::DrainResponse left, newest_.Drain(resume));
  RNICD_RETURN_IF_ERROR(EachOlder([&](uint32_t /*generation*/, Admin& older) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const v1::DrainResponse more, older.Drain(resume));
    left.set_sessions(left.sessions() + more.sessions());
    return absl::OkStatus();
  }));
  return left;
}

absl::Status Generations::ReloadPolicy() {
  RNICD_RETURN_IF_ERROR(newest_.ReloadPolicy());
  return EachOlder([](uint32_t /*generation*/, Admin& older) { return older.ReloadPolicy(); });
}

absl::StatusOr<bool> Generations::ReadyInThisContainer() {
  RNICD_ASSIGN_OR_RETURN(const bool is_here, newest_.IsInThisContainer());
  if (!is_here) {
    return absl::UnavailableError("the daemon of another container takes the connections");
  }
  return newest_.Ready();
}

absl::StatusOr<bool> Generations::LiveInThisContainer() {
  absl::StatusOr<bool> live = absl::UnavailableError("no daemon of this container serves operators");
  const auto ask_if_here = [&](uint32_t /*generation*/, Admin& daemon) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const bool is_here, daemon.IsInThisContainer());
    if (is_here) {
      live = daemon.Live();
    }
    return absl::OkStatus();
  };
  if (const absl::Status newest = ask_if_here(0, newest_); !newest.ok()) {
    live = newest;
  }
  RNICD_RETURN_IF_ERROR(EachOlder(ask_if_here));
  return live;
}

absl::Status Generations::EachOlder(absl::FunctionRef<absl::Status(uint32_t generation, Admin& older)> ask) {
  for (const uint32_t generation : OlderGenerations(admin_socket_dir_)) {
    Admin older(admin_socket_dir_, Admin::kDefaultTimeout, generation);
    const absl::Status status = ask(generation, older);
    const bool ended = IsTransportFailure(status) && status.code() == absl::StatusCode::kUnavailable;
    if (!ended) {
      RNICD_RETURN_IF_ERROR(status);
    }
  }
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
