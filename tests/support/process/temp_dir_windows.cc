#include <windows.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tests/support/process/temp_dir.h"

namespace rnicd::test {

TempDir::TempDir() {
  static std::atomic<uint32_t> last = 0;
  std::array<char, 128> name;
  std::snprintf(name.data(), name.size(), "rnicd-%lu-%u", GetCurrentProcessId(), ++last);
  const std::filesystem::path path = std::filesystem::temp_directory_path() / name.data();
  std::error_code error;
  if (!std::filesystem::create_directories(path, error)) {
    std::fprintf(stderr, "%s cannot be made: %s\n", path.string().c_str(), error.message().c_str());
    std::abort();
  }
  path_ = path.string();
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempDir::GiveTo(uint32_t /*uid*/) const {}

std::string ExecutableForEveryone(const std::string& path) { return path; }

}  // namespace rnicd::test
