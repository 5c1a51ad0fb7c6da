#include "tests/vm/faults/kernel_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/vm/faults/tools.h"

namespace rnicd::test {
namespace {

// Counts the objects of processes on one card, or on all cards if the name is empty.
KernelObjects Count(std::string_view card) {
  KernelObjects objects;
  // One process for all of them: a start takes long in the guest.
  const std::vector<std::string> kinds = {"mr", "qp", "cq", "pd"};
  std::vector<std::string> commands;
  commands.reserve(kinds.size());
  for (const std::string& kind : kinds) {
    commands.push_back("resource show " + kind);
  }
  std::istringstream answers(MustRunTool({"rdma", "-j", "-b", "-"}, commands));
  for (const std::string& kind : kinds) {
    std::string answer;
    std::getline(answers, answer);
    const auto list = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
    if (!list.is_array()) {
      ADD_FAILURE() << "rdma resource show " << kind << " says: " << answer;
      continue;
    }
    for (const auto& object : list) {
      // The kernel's own objects have a name and no pid; objects made by a thread that has ended have neither.
      const bool is_kernels = object.contains("comm") && !object.contains("pid");
      if (!is_kernels && (card.empty() || object.value("ifname", "") == card)) {
        ++objects[kind];
      }
    }
  }
  return objects;
}

}  // namespace

KernelObjects KernelObjectsOn(const std::string& card) { return Count(card); }

KernelObjects AllKernelObjects() { return Count(""); }

std::string Describe(const KernelObjects& objects) {
  std::string text;
  for (const auto& [kind, count] : objects) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return text.empty() ? "nothing" : text;
}

uint64_t PinnedKib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word == "VmPin:") {
      uint64_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  ADD_FAILURE() << "the kernel does not report what process " << pid << " has pinned";
  return 0;
}

bool IsKernelError(std::string_view message) {
  constexpr std::array<std::string_view, 7> kSigns = {
      "WARNING:", "BUG:", "Oops", "general protection fault", "blocked for more than", "refcount_t:", "rxe_cleanup"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return message.find(sign) != message.npos; });
}

KernelLog::KernelLog() : file_(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  EXPECT_TRUE(file_.valid()) << "/dev/kmsg cannot be read";
  lseek(file_.get(), 0, SEEK_END);
}

std::vector<std::string> KernelLog::NewErrors() {
  std::vector<std::string> errors;
  std::array<char, 8192> record;
  while (true) {
    // Each read returns one message; EPIPE means that some were lost, and the next read continues after them.
    const ssize_t size = read(file_.get(), record.data(), record.size());
    if (size < 0 && errno == EPIPE) {
      continue;
    }
    if (size <= 0) {
      return errors;
    }
    const std::string_view message(record.data(), static_cast<size_t>(size));
    if (IsKernelError(message)) {
      errors.emplace_back(message);
    }
  }
}

}  // namespace rnicd::test
