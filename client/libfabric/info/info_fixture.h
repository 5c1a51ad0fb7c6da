#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string>

namespace rnicd::fi {

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

// Version of the interface that applications of libfabric 1.17 name.
inline constexpr uint32_t kToday = FI_VERSION(1, 17);
// FI_ORDER_DATA: see attributes.h for the name.
inline constexpr uint64_t kOrderData = uint64_t{1} << 16;

// Hints with all parts, as an application of interface 1.17 sets them that accepts every mode.
Info AllModes();

// A folder in which the daemon's socket seems to be, and the environment variable that names it.
class DaemonFolder {
 public:
  DaemonFolder();
  ~DaemonFolder();
  DaemonFolder(const DaemonFolder&) = delete;
  DaemonFolder& operator=(const DaemonFolder&) = delete;

  void RemoveSocket() const;

 private:
  std::string path_;
};

}  // namespace rnicd::fi
