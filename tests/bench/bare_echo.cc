#include "tests/bench/bare_echo.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace rnicd::bench {
namespace {

constexpr char kRole[] = "--bare_echo";
constexpr char kAccepting[] = "accepting\n";

}  // namespace

absl::StatusOr<std::unique_ptr<BareEcho>> BareEcho::Start() {
  std::unique_ptr<BareEcho> echo(new BareEcho);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const test::ChildOptions options = {.command = {program, kRole, echo->socket_path()}};
  RNICD_ASSIGN_OR_RETURN(echo->process_, test::ChildProcess::Start(options));
  if (!echo->process_->output().WaitFor(kAccepting, test::kTimeout)) {
    return absl::InternalError(absl::StrCat("no bare echo: ", echo->process_->errors().Text()));
  }
  return echo;
}

void AnnounceBareEcho() {
  std::fputs(kAccepting, stdout);
  std::fflush(stdout);
}

void RunBareEchoIfAsked(int argc, const char* const* argv) {
  if (argc != 3 || std::string_view(argv[1]) != kRole) {
    return;
  }
  ServeHttp2Echo(argv[2]);
  std::perror("bare echo");
  std::exit(1);
}

}  // namespace rnicd::bench
