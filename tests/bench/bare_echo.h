#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::bench {

// A gRPC server on nghttp2 in a process of its own that does nothing with a call but answer it, with one thread and one
// connection at a time: the least that a call of the same client can cost.
// Lifetime: the destructor ends the process.
class BareEcho {
 public:
  // Returns when the server accepts. Errors: kInternal when it does not.
  static absl::StatusOr<std::unique_ptr<BareEcho>> Start();

  std::string socket_path() const { return directory_.path() + "/echo.sock"; }

 private:
  BareEcho() = default;

  const test::TempDir directory_;
  std::unique_ptr<test::ChildProcess> process_;
};

// Runs the server in this process when the arguments are those that BareEcho starts it with, and then does not return.
void RunBareEchoIfAsked(int argc, const char* const* argv);

// The server. It announces on its standard output that it accepts, and returns when it cannot.
void ServeHttp2Echo(const std::string& socket_path);
void AnnounceBareEcho();

}  // namespace rnicd::bench
