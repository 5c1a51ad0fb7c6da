#include "tests/support/process/emulator.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace rnicd::test {
namespace {

// Number of the architecture; nullopt for a file that is not a program.
std::optional<uint16_t> ArchitectureOf(const std::string& path) {
  Elf64_Ehdr header;
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  return header.e_machine;
}

}  // namespace

std::vector<std::string> WithEmulator(std::vector<std::string> command) {
  const char* const emulator = std::getenv("RNICD_TEST_EMULATOR");
  if (emulator == nullptr) {
    return command;
  }
  static const std::optional<uint16_t> own = ArchitectureOf("/proc/self/exe");
  const auto program = std::find_if(command.begin(), command.end(), [](const std::string& word) {
    return word.find('/') != std::string::npos && ArchitectureOf(word) == own;
  });
  if (program != command.end()) {
    std::istringstream words(emulator);
    command.insert(program, std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return command;
}

}  // namespace rnicd::test
