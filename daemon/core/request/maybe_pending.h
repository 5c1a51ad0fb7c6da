#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rnicd::core {

// How a request ended: its value or its error; only a status where it has no value.
template <typename T = void>
using Outcome = std::conditional_t<std::is_void_v<T>, absl::Status, absl::StatusOr<T>>;

template <typename T = void>
using Done = std::function<void(const Outcome<T>&)>;

// What a request that may pend returns: its outcome, or nothing yet. If it pends, its outcome comes later, exactly
// once: to the `done` of the request, or as an event.
template <typename T = void>
class [[nodiscard]] MaybePending {
 public:
  // A request that has ended. Implicit, so that an error can be returned as from any other function.
  template <typename U>
    requires(!std::is_same_v<std::remove_cvref_t<U>, MaybePending> && std::is_convertible_v<U, Outcome<T>>)
  explicit(false) MaybePending(U&& outcome) : outcome_(std::forward<U>(outcome)) {}
  static MaybePending Pending() { return MaybePending(); }

  bool pending() const { return !outcome_.has_value(); }
  bool succeeded() const { return !pending() && outcome_->ok(); }
  // True unless the request was refused or has failed.
  bool ok() const { return pending() || outcome_->ok(); }
  absl::Status status() const { return ok() ? absl::OkStatus() : StatusOf(*outcome_); }
  // The request must have ended.
  const Outcome<T>& outcome() const { return *outcome_; }

 private:
  MaybePending() = default;
  static absl::Status StatusOf(const absl::Status& status) { return status; }
  template <typename U>
  static absl::Status StatusOf(const absl::StatusOr<U>& outcome) {
    return outcome.status();
  }

  std::optional<Outcome<T>> outcome_;
};

// For a caller that wants the outcome in one place: calls `done` for a request that has ended. One that pends calls it
// itself.
template <typename T>
void FinishUnlessPending(const MaybePending<T>& begun, const std::type_identity_t<Done<T>>& done) {
  if (!begun.pending()) {
    done(begun.outcome());
  }
}

}  // namespace rnicd::core
