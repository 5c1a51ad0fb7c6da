#include <sys/socket.h>

#include <fstream>

#include "tests/support/process/daemon_process.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::test {

std::string DaemonProcess::socket_dir() const { return directory_->path() + "/s"; }
std::string DaemonProcess::rpc_socket() const { return socket_dir() + "/rpc.sock"; }
std::string DaemonProcess::fd_socket() const { return socket_dir() + "/fd.sock"; }
std::string DaemonProcess::admin_socket() const { return admin_dir() + "/admin.sock"; }

std::vector<std::string> DaemonProcess::PlaceFlags() const { return {"--socket_dir=" + socket_dir()}; }

bool DaemonProcess::AcceptsOnAllSockets() const {
  return ConnectUnix(rpc_socket(), SOCK_STREAM).valid() && ConnectUnix(fd_socket(), SOCK_SEQPACKET).valid() &&
         ConnectUnix(admin_socket(), SOCK_STREAM).valid();
}

size_t DaemonProcess::mapped_files() const {
  std::ifstream maps("/proc/" + std::to_string(process_->pid()) + "/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:") != std::string::npos ? 1 : 0;
  }
  return count;
}

void DaemonProcess::KillHard() {
  process_->Signal(SIGKILL);
  process_->WaitForEnd();
}

}  // namespace rnicd::test
