#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace rnicd::ctl {

// Keys keep their insertion order, so that the output is stable.
using Json = nlohmann::ordered_json;

// Writes results to `out`, as text for people or JSON for scripts, and errors to `err`.
class Output {
 public:
  // `terminal`: a person sees `err` as it is written.
  Output(std::ostream& out, std::ostream& err, bool json, bool terminal = false)
      : out_(out), err_(err), json_(json), terminal_(terminal) {}

  bool json() const { return json_; }
  // Writes one of the two and flushes, so that a reader receives it while the command holds its memory.
  void Result(const std::string& text, const Json& json);
  // Text that is the same in both modes: help, completion.
  void Text(const std::string& text);
  // Prints nothing for the status of written() when the reader has gone, as in 'rnicctl sessions | head -1'.
  void Error(const absl::Status& status);
  // Whether all results were written. Errors: kDataLoss, and from then on the same.
  const absl::Status& written() const { return written_; }
  // Shows a line in place of the last such line, on a terminal only. Empty: removes it. From one thread at a time.
  void Progress(const std::string& line);

 private:
  void Write(const std::string& text);

  std::ostream& out_;
  std::ostream& err_;
  const bool json_;
  const bool terminal_;
  bool shows_progress_ = false;
  absl::Status written_;
};

// "rnicctl: <message> (<REASON>, <STATUS_NAME>, field <field>, limit .., used .., requested ..)"; for a transport
// failure the gRPC code is in the parentheses.
std::string ErrorLine(const absl::Status& status);
// {"error": {"code", "message", "reason", "ntstatus", "ntstatus_name", "field", "limit", "used", "requested"}}; the
// keys from "reason" on only for refusals by the daemon, or by a check on its behalf.
Json ErrorJson(const absl::Status& status);

// Exit code: 0 OK, 1 refused or failed, also to write the output, 2 usage error.
int ExitCodeOf(const absl::Status& status);

}  // namespace rnicd::ctl
