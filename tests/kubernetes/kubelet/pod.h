#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace rnicd::test {

struct Container {
  std::string name;
  // How many devices of which resource.
  std::map<std::string, size_t> resources;
  bool init = false;
  // An init container that goes on running: its devices are not passed on.
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
