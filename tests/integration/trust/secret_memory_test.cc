// What is left of a secret in the daemon's memory, for somebody who takes it over: nothing, once it was used.
#include <unistd.h>

#include <fstream>
#include <ios>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

// A process's memory as its maps list it, read from outside. Needs root, as the daemon cannot be traced otherwise.
class ForeignMemory {
 public:
  explicit ForeignMemory(pid_t pid) : folder_("/proc/" + std::to_string(pid)) {}

  // Whether these bytes are somewhere in what the process can write to.
  bool Has(std::string_view bytes) const {
    std::ifstream maps(folder_ + "/maps");
    std::ifstream memory(folder_ + "/mem", std::ios::binary);
    for (std::string line; std::getline(maps, line);) {
      const size_t dash = line.find('-');
      const uint64_t first = std::stoull(line, nullptr, 16);
      const uint64_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
      if (line.find(" rw") != std::string::npos && Read(memory, first, end - first).find(bytes) != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  // A sanitizer maps terabytes for its own records. It frees memory in its own way.
  bool BelongsToASanitizer() const {
    std::ifstream status(folder_ + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmSize:")) {
        return std::stoull(line.substr(line.find_first_of("0123456789"))) >> 30 != 0;
      }
    }
    return false;
  }

 private:
  // Empty if it cannot be read.
  static std::string Read(std::ifstream& memory, uint64_t first, uint64_t size) {
    std::string bytes(size, '\0');
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(first));
    memory.read(bytes.data(), static_cast<std::streamsize>(size));
    return memory.good() ? bytes : std::string();
  }

  const std::string folder_;
};

class SecretMemory : public DaemonTest {};

TEST_F(SecretMemory, OfADaemonHasNoSecretOfAGrantOnceItWasUsed) {
  const ForeignMemory memory(daemon().process().pid());
  if (geteuid() != 0 || memory.BelongsToASanitizer()) {
    return;
  }
  v1::CreateGrantRequest request;
  request.set_name("wiped");
  const auto created = CreateGrant(daemon(), request);
  ExpectOk(created);
  const std::string& secret = created.response.secret();
  {
    RawClient client(daemon().rpc_socket());
    v1::OpenSessionRequest open;
    open.set_grant(secret);
    open.set_label("a label that the daemon keeps");
    ExpectOk(client.Call(&SessionStub::OpenSession, open));
    EXPECT_TRUE(memory.Has(open.label())) << "otherwise this test would find nothing ever";
  }
  // Half of it is as good as all: what is left could be guessed, if the copy was damaged.
  const std::string half = secret.substr(secret.size() - 32);
  EXPECT_TRUE(Eventually([&] { return !memory.Has(half); }));
  ExpectOk(RevokeGrant(daemon(), created.response.grant_id()));
}

}  // namespace
}  // namespace rnicd::test
