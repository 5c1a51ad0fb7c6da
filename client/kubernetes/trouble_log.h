#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// Logs what is tried again and again only when it begins to fail, fails otherwise, or works again.
// Threads: one.
class TroubleLog {
 public:
  explicit TroubleLog(const log::Logger& logger) : logger_(logger) {}

  // How the latest attempt of this kind ended.
  void Note(const std::string& what, const absl::Status& status) {
    const std::string text(status.message());
    std::string& last = last_[what];
    if (text == last) {
      return;
    }
    last = text;
    if (status.ok()) {
      logger_.Info("works again", {{"what", what}});
    } else {
      logger_.Warning("failed", {{"what", what}, {"error", text}});
    }
  }

 private:
  const log::Logger& logger_;
  // Text of the current failure of each kind; empty while it works.
  std::map<std::string, std::string> last_;
};

}  // namespace rnicd::kubernetes
