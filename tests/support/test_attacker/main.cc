// A process that attacks the daemon, controlled over stdin and stdout like test_client: one command per line, one
// response per line, "ok key=value ..." or "error REASON". It uses gRPC only for `ticket`.
// Usage: test_attacker <socket_dir>
//        test_attacker --stuck-files|--mute-files <uid>   serves a file system (stuck_file_server.h)
//
//   become <uid>               runs as this user from now on, without capabilities
//   mount <pid> <fd>           takes a file server's mount, as root
//   sockets <count>            makes baits: sockets that linger
//   files <count>              makes baits: files of the mount
//   nested <count>             makes baits: sockets with files of the mount
//   close                      closes the baits in a thread, which prints another "ok" when it has
//   reset                      closes the peers of sockets that linger
//   ticket <bytes>             announces an import, in a session opened at the first call; prints its ticket
//   withhold                   makes a page that never comes, as root
//   import-written             sends an import whose file is in a write from that page; its response is not read
//   seal-written <sessions>    imports one file in as many sessions, then begins the write, then seals in each, in
//                              threads that print nothing
//   hold <stream|packet> <socket> <count>   opens connections and keeps them
//   send <stream|packet> <socket> <stay|leave> <memory files> <baits> <digits>   on a new connection, the bytes with as
//                              many memory files and baits; own copies are closed
//   storm <stream|packet> <socket> <held>   connects and leaves until it is killed; prints "ok" first
//   ring <attack> <rounds>     attacks by a ring (ring_attacks.h) until it is killed; prints "ok" after so many rounds
//   lend                       opens a ring; prints its descriptors, for `adopt`
//   adopt <pid> <memory> <doorbell> <bytes>  takes the descriptors of that process, as root
//   spoil                      writes into the adopted ring until it is killed; prints "ok" when it has begun
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/hostile/raw_ring.h"
#include "tests/support/hostile/ring_attacker.h"
#include "tests/support/hostile/ring_attacks.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/test_attacker/baits.h"
#include "tests/support/test_attacker/storm.h"
#include "tests/support/test_attacker/stuck_file_server.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kMemoryFileBytes = 4096;

// In one piece: a thread of `close` prints as well.
void Print(const std::string& response) {
  const std::string line = response + "\n";
  (void)!write(STDOUT_FILENO, line.data(), line.size());
}

std::string ErrnoText(int error) { return std::string("error ") + strerrorname_np(error); }

// A duplicate of another process's descriptor.
UniqueFd DescriptorOf(pid_t pid, int fd) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
}

int TypeOf(const std::string& name) { return name == "stream" ? SOCK_STREAM : SOCK_SEQPACKET; }

class Attacker {
 public:
  explicit Attacker(std::string socket_dir) : socket_dir_(std::move(socket_dir)) {}

  std::string Run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = commands_.find(command);
    return found == commands_.end() ? "error UNKNOWN_COMMAND" : found->second(words);
  }

 private:
  using Words = std::istringstream;

  static std::string Become(Words& words) {
    uid_t uid = 0;
    words >> uid;
    if (uid != geteuid() &&
        (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)) {
      return ErrnoText(errno);
    }
    // A change of user resets both.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1);
    return "ok";
  }

  std::string Mount(Words& words) {
    pid_t pid = 0;
    int fd = -1;
    words >> pid >> fd;
    mount_ = DescriptorOf(pid, fd);
    return mount_.valid() ? "ok" : ErrnoText(errno);
  }

  std::string Make(Words& words, const std::function<Baits(int count)>& make) {
    size_t count = 0;
    words >> count;
    baits_ = make(static_cast<int>(count));
    return baits_.descriptors.size() == count ? "ok" : ErrnoText(errno);
  }

  std::string Close(Words&) {
    std::thread([this] {
      baits_.descriptors.clear();
      Print("ok");
    }).detach();
    return "ok";
  }

  std::string Reset(Words&) {
    baits_.peers.clear();
    return "ok";
  }

  std::string Ticket(Words& words) {
    v1::ImportMemoryRequest request;
    uint64_t size = 0;
    words >> size;
    request.set_size(size);
    if (client_ == nullptr) {
      client_ = std::make_unique<RawClient>(socket_dir_ + "/rpc.sock");
      client_->Call(&SessionStub::OpenSession, {});
    }
    const auto announced = client_->Call(&MemoryStub::ImportMemory, request);
    return announced.ok() ? "ok ticket=" + absl::BytesToHexString(announced.response.fd_ticket()) : "error TICKET";
  }

  std::string Withhold(Words&) {
    withheld_ = std::make_unique<WithheldPage>();
    return withheld_->valid() ? "ok" : ErrnoText(errno);
  }

  std::string ImportWritten(Words&) {
    const auto client = OpenSession();
    const v1::ImportMemoryResponse announced = Announce(*client);
    written_ = MakeSealableMemfd(kMemoryFileBytes);
    connections_.push_back(ConnectUnix(FdSocket(), SOCK_SEQPACKET));
    return withheld_->BeginWrite(written_.get()) &&
                   SendWithDescriptors(connections_.back().get(), FdRequestBytes(announced.fd_ticket(), 1),
                                       {written_.get()}) == 0
               ? "ok"
               : "error WRITE";
  }

  std::string SealWritten(Words& words) {
    size_t sessions = 0;
    words >> sessions;
    written_ = MakeSealableMemfd(kMemoryFileBytes);
    std::vector<std::pair<std::shared_ptr<RawClient>, uint64_t>> imports;
    for (size_t index = 0; index < sessions; ++index) {
      auto client = OpenSession();
      const v1::ImportMemoryResponse announced = Announce(*client);
      if (!SendFd(FdSocket(), announced.fd_ticket(), written_.get()).replied) {
        return "error IMPORT";
      }
      imports.emplace_back(std::move(client), announced.memory_id());
    }
    if (!withheld_->BeginWrite(written_.get())) {
      return "error WRITE";
    }
    for (const auto& import : imports) {
      std::thread([import] {
        v1::SealMemoryRequest request;
        request.set_memory_id(import.second);
        import.first->Call(&MemoryStub::SealMemory, request);
      }).detach();
    }
    return "ok";
  }

  std::string FdSocket() const { return socket_dir_ + "/fd.sock"; }

  std::shared_ptr<RawClient> OpenSession() {
    auto client = std::make_shared<RawClient>(socket_dir_ + "/rpc.sock");
    client->Call(&SessionStub::OpenSession, {});
    clients_.push_back(client);
    return client;
  }

  static v1::ImportMemoryResponse Announce(RawClient& client) {
    v1::ImportMemoryRequest request;
    request.set_size(kMemoryFileBytes);
    return client.Call(&MemoryStub::ImportMemory, request).response;
  }

  std::string Hold(Words& words) {
    std::string type;
    std::string path;
    int count = 0;
    words >> type >> path >> count;
    for (int index = 0; index < count; ++index) {
      connections_.push_back(ConnectUnix(path, TypeOf(type)));
    }
    return "ok";
  }

  std::string Send(Words& words) {
    std::string type;
    std::string path;
    std::string then;
    size_t memory_files = 0;
    size_t baits = 0;
    std::string digits;
    words >> type >> path >> then >> memory_files >> baits >> digits;
    UniqueFd connection = ConnectUnix(path, TypeOf(type));
    if (!connection.valid()) {
      return ErrnoText(errno);
    }
    std::vector<UniqueFd> files;
    for (size_t index = 0; index < memory_files; ++index) {
      files.push_back(MakeSealableMemfd(kMemoryFileBytes));
    }
    const int error = SendBaits(connection.get(), BytesFromHex(digits).value(), files, baits);
    if (then == "stay") {
      connections_.push_back(std::move(connection));
    }
    return error == 0 ? "ok" : ErrnoText(error);
  }

  int SendBaits(int connection, const std::string& bytes, const std::vector<UniqueFd>& files, size_t baits) {
    if (baits > baits_.descriptors.size() - used_) {
      return ENODATA;
    }
    std::vector<int> descriptors;
    for (const UniqueFd& file : files) {
      descriptors.push_back(file.get());
    }
    for (size_t index = 0; index < baits; ++index) {
      descriptors.push_back(baits_.descriptors[used_ + index].get());
    }
    const int error = SendWithDescriptors(connection, bytes, descriptors);
    // What was not sent is kept: its close would block this process.
    for (size_t index = 0; error == 0 && index < baits; ++index, ++used_) {
      if (baits_.closable) {
        baits_.descriptors[used_].Reset(-1);
      }
    }
    return error;
  }

  static std::string BeginStorm(Words& words) {
    std::string type;
    std::string path;
    int held = 0;
    words >> type >> path >> held;
    Print("ok");
    Storm(path, TypeOf(type), held);
  }

  std::string AttackByRing(Words& words) {
    std::string name;
    uint64_t rounds = 0;
    words >> name >> rounds;
    RunRingAttack(name, socket_dir_, static_cast<uint64_t>(getpid()), [&](uint64_t done) {
      if (done == rounds) {
        Print("ok");
      }
      return true;
    });
    return "error REFUSED";
  }

  std::string Lend(Words&) {
    lender_ = std::make_unique<RingAttacker>(socket_dir_, 1);
    if (!lender_->ready()) {
      return "error REFUSED";
    }
    RawRing& ring = lender_->ring();
    return "ok memory=" + std::to_string(ring.memory()) + " doorbell=" + std::to_string(ring.doorbell()) +
           " bytes=" + std::to_string(ring.bytes().size());
  }

  std::string Adopt(Words& words) {
    pid_t pid = 0;
    int memory = -1;
    int doorbell = -1;
    uint64_t bytes = 0;
    words >> pid >> memory >> doorbell >> bytes;
    adopted_ = RawRing::Adopt(DescriptorOf(pid, memory), DescriptorOf(pid, doorbell), bytes);
    return adopted_ != nullptr ? "ok" : ErrnoText(errno);
  }

  std::string Spoil(Words&) {
    Print("ok");
    for (uint32_t number = 0;; ++number) {
      adopted_->WriteEntry(number, {.opcode = static_cast<ring::Opcode>(number % 7), .object = number});
      __atomic_store_n(&adopted_->header().submission_tail, number, __ATOMIC_SEQ_CST);
      adopted_->RingDoorbell();
    }
  }

  const std::string socket_dir_;
  std::unique_ptr<RingAttacker> lender_;
  std::unique_ptr<RawRing> adopted_;
  UniqueFd mount_;
  Baits baits_;
  // Baits that are gone.
  size_t used_ = 0;
  std::vector<UniqueFd> connections_;
  std::unique_ptr<RawClient> client_;
  std::vector<std::shared_ptr<RawClient>> clients_;
  std::unique_ptr<WithheldPage> withheld_;
  UniqueFd written_;
  const std::map<std::string, std::function<std::string(Words&)>> commands_ = {
      {"become", [](Words& words) { return Become(words); }},
      {"mount", [this](Words& words) { return Mount(words); }},
      {"sockets", [this](Words& words) { return Make(words, LingeringSockets); }},
      {"files", [this](Words& words) { return Make(words, [this](int n) { return StuckFiles(mount_.get(), n); }); }},
      {"nested",
       [this](Words& words) { return Make(words, [this](int n) { return SocketsWithStuckFiles(mount_.get(), n); }); }},
      {"close", [this](Words& words) { return Close(words); }},
      {"reset", [this](Words& words) { return Reset(words); }},
      {"ticket", [this](Words& words) { return Ticket(words); }},
      {"withhold", [this](Words& words) { return Withhold(words); }},
      {"import-written", [this](Words& words) { return ImportWritten(words); }},
      {"seal-written", [this](Words& words) { return SealWritten(words); }},
      {"hold", [this](Words& words) { return Hold(words); }},
      {"send", [this](Words& words) { return Send(words); }},
      {"storm", [](Words& words) { return BeginStorm(words); }},
      {"ring", [this](Words& words) { return AttackByRing(words); }},
      {"lend", [this](Words& words) { return Lend(words); }},
      {"adopt", [this](Words& words) { return Adopt(words); }},
      {"spoil", [this](Words& words) { return Spoil(words); }},
  };
};

}  // namespace
}  // namespace rnicd::test

int main(int argc, char** argv) {
  if (argc == 3) {
    const bool mute = std::string(argv[1]) == "--mute-files";
    return rnicd::test::ServeStuckFiles(static_cast<uid_t>(std::strtoul(argv[2], nullptr, 10)), mute);
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_attacker <socket_dir> | --stuck-files <uid> | --mute-files <uid>\n");
    return 2;
  }
  // Ends by exit group: a thread may still be closing a bait.
  static rnicd::test::Attacker attacker(argv[1]);
  std::string line;
  while (std::getline(std::cin, line)) {
    rnicd::test::Print(attacker.Run(line));
  }
  _exit(0);
}
