#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error_reason.h"
#include "base/status.h"

namespace rnicd::simulation {

// Why a call must be refused, as the model sees it; none when it must be accepted. With several reasons any of them may
// be the answer: which one is looked at first is nobody's promise.
class Refusals {
 public:
  void If(bool condition, ErrorReason reason) {
    if (condition) {
      reasons_.push_back(reason);
    }
  }
  void Add(const Refusals& more) { reasons_.insert(reasons_.end(), more.reasons_.begin(), more.reasons_.end()); }
  bool none() const { return reasons_.empty(); }
  bool Allows(const absl::Status& status) const {
    if (status.ok()) {
      return none();
    }
    return std::find(reasons_.begin(), reasons_.end(), ErrorInfoOf(status).reason) != reasons_.end();
  }
  std::string Text() const {
    std::string text;
    for (const ErrorReason reason : reasons_) {
      text += (text.empty() ? "" : " or ") + std::string(RowOf(reason).name);
    }
    return text.empty() ? "ok" : text;
  }

 private:
  std::vector<ErrorReason> reasons_;
};

// "ok", or the reason and its field.
inline std::string TextOf(const absl::Status& status) {
  if (status.ok()) {
    return "ok";
  }
  const ErrorInfo info = ErrorInfoOf(status);
  return std::string(RowOf(info.reason).name) + (info.field.empty() ? "" : " of " + info.field);
}

}  // namespace rnicd::simulation
