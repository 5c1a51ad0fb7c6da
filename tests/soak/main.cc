// rnicd_soak: --minutes=N --clients=C --seed=S --report=FILE --canary=session; with --role=NAME it runs as one client.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/soak/role.h"
#include "tests/soak/soak.h"

namespace {

// True if the argument is the flag `name`; then sets its value.
bool Is(std::string_view argument, std::string_view name, std::string& value) {
  if (!argument.starts_with(name)) {
    return false;
  }
  value = argument.substr(name.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  rnicd::soak::SoakOptions soak;
  rnicd::soak::RoleOptions role;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string value;
    if (Is(argument, "--minutes=", value)) {
      soak.minutes = std::atof(value.c_str());
    } else if (Is(argument, "--clients=", value)) {
      soak.clients = std::strtoull(value.c_str(), nullptr, 10);
    } else if (Is(argument, "--seed=", value)) {
      soak.seed = role.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (Is(argument, "--uid=", value)) {
      role.uid = static_cast<uid_t>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (!Is(argument, "--report=", soak.report) && !Is(argument, "--canary=", soak.canary) &&
               !Is(argument, "--role=", role.role) && !Is(argument, "--socket_dir=", role.socket_dir) &&
               !Is(argument, "--secret=", role.secret)) {
      std::fprintf(stderr, "rnicd_soak: unknown argument: %s\n", argv[i]);
      return 2;
    }
  }
  return role.role.empty() ? rnicd::soak::Soak(soak) : rnicd::soak::PlayRole(role);
}
