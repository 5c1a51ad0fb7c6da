#include "client/libfabric/info/info_fixture.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "client/libfabric/info/attributes.h"

namespace rnicd::fi {

Info AllModes() {
  Info hints(fi_allocinfo(), fi_freeinfo);
  hints->mode = ~uint64_t{0};
  hints->ep_attr->type = FI_EP_MSG;
  hints->domain_attr->mr_mode = kMrMode | FI_MR_ENDPOINT;
  return hints;
}

DaemonFolder::DaemonFolder() : path_(testing::TempDir() + "rnicd-info-XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
  std::ofstream(path_ + "/rpc.sock") << "";
  setenv("RNICD_SOCKET_DIR", path_.c_str(), 1);
}

DaemonFolder::~DaemonFolder() {
  unsetenv("RNICD_SOCKET_DIR");
  std::filesystem::remove_all(path_);
}

void DaemonFolder::RemoveSocket() const { std::filesystem::remove(path_ + "/rpc.sock"); }

}  // namespace rnicd::fi
