#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace rnicd::test {

struct Container {
  std::string name;
  // Number of devices by resource.
  std::map<std::string, size_t> resources;
  bool init = false;
  // An init container that keeps running: its devices are not reused.
  bool restartable = false;
};

struct Pod {
  std::string uid;
  std::string namespace_name;
  std::string name;
  // Init containers first.
  std::vector<Container> containers;
};

}  // namespace rnicd::test
