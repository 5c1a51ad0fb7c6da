#include "tests/support/process/held_card.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/support/process/temp_dir.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

// One file for all daemons of this program: tests with the same flags share a daemon.
std::string PathOf(const std::string& what) {
  static const TempDir folder;
  return folder.path() + "/" + what;
}

std::string RegistrationsPath() { return PathOf("hold_registrations"); }
std::string ReadsPath() { return PathOf("hold_reads"); }

}  // namespace

std::string HoldableRegistrationsFlag() { return "--hold_registrations_while=" + RegistrationsPath(); }

std::vector<std::string> HoldableReadsFlags() {
  return CanHoldReads() ? std::vector<std::string>{"--soft_hold_reads_while=" + ReadsPath()}
                        : std::vector<std::string>{};
}

bool CanHoldReads() { return ProviderUnderTest() == "soft"; }

Held::Held(std::string path) : path_(std::move(path)) {
  if (!std::ofstream(path_).put('.').good()) {
    std::fprintf(stderr, "%s cannot be written\n", path_.c_str());
    std::exit(1);
  }
}

void Held::LetGo() { std::filesystem::remove(path_); }

HeldRegistrations::HeldRegistrations() : Held(RegistrationsPath()) {}

HeldReads::HeldReads() : Held(ReadsPath()) {}

}  // namespace rnicd::test
