#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error_reason.h"
#include "base/status.h"

namespace rnicd::simulation {

// The model's reasons why a call must be refused; none if it must be accepted. Core may return any of several reasons:
// the order of its checks is not specified.
class Refusals {
 public:
  void If(bool condition, ErrorReason reason) {
    if (condition) {
      reasons_.push_back({.reason = reason});
    }
  }
  // Refuses for lack of a resource. The refusal must name this limit, which identifies its owner.
  void IfAbove(bool condition, ErrorReason reason, uint64_t limit) {
    if (condition) {
      reasons_.push_back({.reason = reason, .limit = limit});
    }
  }
  void Add(const Refusals& more) { reasons_.insert(reasons_.end(), more.reasons_.begin(), more.reasons_.end()); }
  bool none() const { return reasons_.empty(); }
  bool Allows(const absl::Status& status) const {
    if (status.ok()) {
      return none();
    }
    const ErrorInfo info = ErrorInfoOf(status);
    return std::any_of(reasons_.begin(), reasons_.end(), [&info](const Reason& each) {
      return each.reason == info.reason && each.limit.value_or(info.limit) == info.limit;
    });
  }
  bool Names(ErrorReason reason) const {
    return std::any_of(reasons_.begin(), reasons_.end(),
                       [reason](const Reason& each) { return each.reason == reason; });
  }
  std::string Text() const {
    std::string text;
    for (const Reason& each : reasons_) {
      text += (text.empty() ? "" : " or ") + std::string(RowOf(each.reason).name);
      text += each.limit.has_value() ? " at " + std::to_string(*each.limit) : "";
    }
    return text.empty() ? "ok" : text;
  }

 private:
  struct Reason {
    ErrorReason reason = ErrorReason::UNSPECIFIED;
    std::optional<uint64_t> limit;
  };
  std::vector<Reason> reasons_;
};

// "ok", or the reason, its field and the limit that was hit.
inline std::string TextOf(const absl::Status& status) {
  if (status.ok()) {
    return "ok";
  }
  const ErrorInfo info = ErrorInfoOf(status);
  return std::string(RowOf(info.reason).name) + (info.field.empty() ? "" : " of " + info.field) +
         (info.limit == 0 ? "" : " at " + std::to_string(info.limit));
}

}  // namespace rnicd::simulation
