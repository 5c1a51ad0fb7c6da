#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kubernetes/kubelet/kubelet.h"
#include "tests/kubernetes/plugin.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

// A kubelet that is not started yet, and the parts of a plugin beside it. The poll interval is so long that what
// happens does so without a poll.
class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    options_.folder = folder_;
    options_.poll_interval = 10 * kTimeout;
    // After a stream that ends, time for the kubelet to see that before the next registration.
    options_.first_retry = std::chrono::milliseconds(200);
  }

  std::string SocketOf(const std::string& type) const { return folder_ + "/rnicd-" + type + ".sock"; }
  // Number of times the kubelet accepted a resource.
  size_t Accepted(const std::string& resource) const {
    size_t count = 0;
    for (const Registration& registration : kubelet_.registrations()) {
      count += registration.resource == resource && registration.error.empty() ? 1 : 0;
    }
    return count;
  }
  static bool Up(Plugin& plugin) {
    return Eventually([&] { return plugin.link().registered(); });
  }

  const TempDir home_;
  const std::string folder_ = home_.path() + "/device-plugins";
  const std::string pod_resources_ = home_.path() + "/pod-resources.sock";
  Kubelet kubelet_{{.folder = folder_, .pod_resources_socket = pod_resources_}};
  kubernetes::KubeletOptions options_;
};

}  // namespace rnicd::test
