#pragma once

// Shared by the tests of the audit log: a temporary folder, and a disk that is full on demand.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rnicd::audit {

// Removed with its contents on destruction.
class Folder {
 public:
  Folder() {
    std::string form = std::filesystem::temp_directory_path() / "rnicd_audit_XXXXXX";
    path_ = mkdtemp(form.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The file is safe whatever the umask is.
inline void WriteOwn(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  std::filesystem::permissions(path, std::filesystem::perms(0600));
}

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The text split at line ends; text after the last end is one more element, so a complete file has none.
inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

// While this exists no file of this process grows beyond `bytes`: writes are cut short there and fail behind it, as on
// a full disk.
class FullDisk {
 public:
  explicit FullDisk(uint64_t bytes) {
    previous_action_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_limit_);
    rlimit limit = previous_limit_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &previous_limit_);
    std::signal(SIGXFSZ, previous_action_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit previous_limit_ = {};
  void (*previous_action_)(int) = nullptr;
};

}  // namespace rnicd::audit
