#include <filesystem>

#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

// The name of the directory is nobody else's.
std::string DaemonProcess::socket_dir() const {
  return R"(\\.\pipe\)" + std::filesystem::path(directory_->path()).filename().string();
}
std::string DaemonProcess::rpc_socket() const { return socket_dir(); }
std::string DaemonProcess::fd_socket() const { return socket_dir(); }
std::string DaemonProcess::admin_socket() const { return admin_dir(); }

std::vector<std::string> DaemonProcess::PlaceFlags() const {
  return {"--pipe=" + std::filesystem::path(directory_->path()).filename().string(), "--event_log=false"};
}

bool DaemonProcess::AcceptsOnAllSockets() const { return log().find(" ready ") != std::string::npos; }

size_t DaemonProcess::mapped_files() const { return 0; }

void DaemonProcess::KillHard() {
  BeginStop();
  process_->WaitForEnd();
}

}  // namespace rnicd::test
