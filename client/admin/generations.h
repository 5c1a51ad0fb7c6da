#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "client/admin/admin.h"

namespace rnicd::inline client {

// Items of all generations, those of the newest first.
template <typename Item>
struct Listing {
  std::vector<Item> items;
  // The generation of each item; empty where there is only one.
  std::vector<uint32_t> generations;
};

// The daemon that takes connections, and the older generations of it that still have sessions.
// Errors: those of Admin. An older one that has ended is left out.
class Generations {
 public:
  // As for Admin.
  explicit Generations(const std::string& admin_socket_dir)
      : admin_socket_dir_(admin_socket_dir), newest_(admin_socket_dir) {}

  // A list of Admin, as all generations give it.
  template <typename Item>
  absl::StatusOr<Listing<Item>> List(absl::StatusOr<std::vector<Item>> (Admin::*list)()) {
    Listing<Item> all;
    RNICD_ASSIGN_OR_RETURN(all.items, (newest_.*list)());
    const size_t of_newest = all.items.size();
    bool several = false;
    RNICD_RETURN_IF_ERROR(EachOlder([&](uint32_t generation, Admin& older) -> absl::Status {
      RNICD_ASSIGN_OR_RETURN(std::vector<Item> items, (older.*list)());
      several = true;
      all.generations.insert(all.generations.end(), items.size(), generation);
      std::ranges::move(items, std::back_inserter(all.items));
      return absl::OkStatus();
    }));
    if (several) {
      RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, newest_.Status());
      all.generations.insert(all.generations.begin(), of_newest, status.generation());
    }
    return all;
  }

  // A call of Admin to the generation that has the session.
  template <typename Response>
  absl::StatusOr<Response> CallOwner(absl::StatusOr<Response> (Admin::*call)(uint64_t), uint64_t session_id) {
    absl::StatusOr<Response> answer = (newest_.*call)(session_id);
    if (FailedWith(answer.status(), ErrorReason::SESSION_NOT_FOUND)) {
      RNICD_RETURN_IF_ERROR(EachOlder([&](uint32_t /*generation*/, Admin& older) -> absl::Status {
        absl::StatusOr<Response> told = (older.*call)(session_id);
        if (!FailedWith(told.status(), ErrorReason::SESSION_NOT_FOUND)) {
          RNICD_ASSIGN_OR_RETURN(answer, std::move(told));
        }
        return absl::OkStatus();
      }));
    }
    return answer;
  }

  // As Drain of Admin, of all generations. Their sessions are in the answer; the newest counts what they hold.
  absl::StatusOr<v1::DrainResponse> Drain(bool resume);

  // As ReloadPolicy of Admin: the newest one, whose error is the answer, then the older ones.
  absl::Status ReloadPolicy();

  // As Ready and Live of Admin, of the daemon that is in the container of this process. Errors: kUnavailable where
  // there is none; of the first also where another has taken over from it, or it has not taken over yet.
  absl::StatusOr<bool> ReadyInThisContainer();
  absl::StatusOr<bool> LiveInThisContainer();

  absl::StatusOr<v1::GetStatusResponse> Status() { return newest_.Status(); }
  absl::StatusOr<std::vector<v1::GetStatusResponse>> OlderStatuses();

 private:
  // Errors: those of `ask`, but that a generation is gone.
  absl::Status EachOlder(absl::FunctionRef<absl::Status(uint32_t generation, Admin& older)> ask);

  const std::string admin_socket_dir_;
  Admin newest_;
};

}  // namespace rnicd::inline client
