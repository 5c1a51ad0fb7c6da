#include <array>
#include <limits>

#include "base/secrets/random.h"
#include "base/status.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/output/views.h"
#include "client/ctl/trials/demo_fast_register.h"

namespace rnicd::ctl {
namespace {

// Maximum number of pages of one mapping. The adapter may allow fewer and then reports it.
constexpr uint64_t kPagesMax = 262'144;
constexpr uint64_t kSeedMax = std::numeric_limits<uint32_t>::max();

constexpr std::array kDemoOptions = {
    OptionSpec{"--pages", "N", "pages of 4 KiB to register (default: 2048, which is 8 MiB)", "1 2048 65536"},
    OptionSpec{"--seed", "N", "seed of the order of the pages (default: random; it is printed)", ""},
    kGrantOption,
};

absl::Status RunDemo(const CommandLine& line, Output& output) {
  if (line.argument != "fast-register") {
    return UsageError("there is one demo; say 'rnicctl demo fast-register'");
  }
  FastRegisterDemoOptions options{.socket_dir = SocketDir(line), .grant = GrantOf(line)};
  RNICD_ASSIGN_OR_RETURN(options.pages, NumberOr(line, "--pages", 2048, 1, kPagesMax));
  RNICD_ASSIGN_OR_RETURN(const uint64_t seed, NumberOr(line, "--seed", KernelRandom().Next() & kSeedMax, 0, kSeedMax));
  options.seed = static_cast<uint32_t>(seed);
  FastRegisterReport report;
  const absl::Status status = RunFastRegisterDemo(options, StepPrinter(output), report);
  output.Result(status.ok() ? FastRegisterVerdict(report) : "", FastRegisterJson(report));
  return status;
}

}  // namespace

constinit const CommandSpec kDemoCommand = {
    .name = "demo",
    .summary = "show fast registration at work, and check every byte of it",
    .description =
        "Opens two sessions. The owner registers pages in shuffled order by one work request; the peer writes and\n"
        "reads them through the one token; the owner invalidates; the peer's next write must be refused. Everything\n"
        "is released. If any check fails, the exit code is 1 and the error names the failed check.\n",
    .examples =
        "rnicctl demo fast-register\n"
        "rnicctl demo fast-register --pages 65536 --seed 1\n"
        "rnicctl demo fast-register --json\n",
    .options = kDemoOptions,
    .argument_name = "fast-register",
    .argument_choices = "fast-register",
    .run = RunDemo,
};

}  // namespace rnicd::ctl
