#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rnicd::kubernetes {

// A temporary folder for each test case, removed when the case ends.
class FolderFixture : public testing::Test {
 public:
  ~FolderFixture() override { std::filesystem::remove_all(folder_); }

 protected:
  FolderFixture() {
    std::string form = (std::filesystem::temp_directory_path() / "rnicd-XXXXXX").string();
    folder_ = mkdtemp(form.data());
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::trunc | std::ios::binary) << content;
    std::filesystem::permissions(Path(name), std::filesystem::perms(0600));
  }

  std::string Read(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(Path(name), std::ios::binary).rdbuf();
    return content.str();
  }

  // Names of the folder's entries, sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string folder_;
};

}  // namespace rnicd::kubernetes
