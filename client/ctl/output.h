#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace rnicd::ctl {

// Keys keep the order in which they are set, so that the output is stable.
using Json = nlohmann::ordered_json;

// Where results go: text for people or JSON for scripts on `out`, errors on `err`.
class Output {
 public:
  Output(std::ostream& out, std::ostream& err, bool json) : out_(out), err_(err), json_(json) {}

  bool json() const { return json_; }
  // Writes one of the two and flushes, so that a reader has it while the command holds its memory.
  void Result(const std::string& text, const Json& json);
  // Text that is the same in both modes: help, completion.
  void Text(const std::string& text);
  void Error(const absl::Status& status);

 private:
  std::ostream& out_;
  std::ostream& err_;
  const bool json_;
};

// "rnicctl: <message> (<REASON>, <STATUS_NAME>, field <field>, limit .., used .., requested ..)"; for a transport
// failure the gRPC code stands in the brackets.
std::string ErrorLine(const absl::Status& status);
// {"error": {"code", "message", "reason", "ntstatus", "ntstatus_name", "field", "limit", "used", "requested"}}; the
// keys from "reason" on only for what the daemon, or a check in its name, refused.
Json ErrorJson(const absl::Status& status);

// 0 ok, 1 refused or failed, 2 usage.
int ExitCodeOf(const absl::Status& status);

}  // namespace rnicd::ctl
