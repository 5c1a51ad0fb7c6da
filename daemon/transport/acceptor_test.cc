#include "daemon/transport/acceptor.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::transport {
namespace {

std::set<std::string> ThreadFolders() {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    folders.insert(entry.path());
  }
  return folders;
}

// How often the thread has waited for something.
int64_t Sleeps(const std::string& thread_folder) {
  std::ifstream file(thread_folder + "/status");
  for (std::string word; file >> word;) {
    if (word == "voluntary_ctxt_switches:") {
      int64_t count = 0;
      file >> count;
      return count;
    }
  }
  return -1;
}

// What accept says without memory, or when a security module refuses, goes on as long as the connection waits. Here it
// is what it says of no socket at all.
TEST(Acceptor, SleepsWhileAConnectionCannotBeAccepted) {
  core::World world;
  const log::Logger logger{log::Options{}};
  const SteadyClock clock;
  door::Bulkhead bulkhead(clock);
  Admission admission({}, world.node, logger, std::make_shared<door::Places>(0, 0));
  Acceptor acceptor(std::move(admission), world.node, logger, bulkhead, SIZE_MAX, [](const AdmittedConnection&) {});
  const std::set<std::string> before = ThreadFolders();
  ASSERT_TRUE(acceptor.Listen({}, {.listener = UniqueFd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)), .file = {}}).ok());
  ASSERT_TRUE(acceptor.Start().ok());
  std::set<std::string> threads = ThreadFolders();
  std::erase_if(threads, [&](const std::string& thread) { return before.contains(thread); });
  ASSERT_EQ(threads.size(), 1u);
  const int64_t earlier = Sleeps(*threads.begin());
  ASSERT_GE(earlier, 0);
  EXPECT_TRUE(Eventually([&] { return Sleeps(*threads.begin()) >= earlier + 3; }));
}

}  // namespace
}  // namespace rnicd::transport
