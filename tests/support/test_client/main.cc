// A client process controlled over stdin and stdout: one command per line, one response per line, "ok key=value ..." or
// "error REASON field=...". Exits at the end of its input. Usage: test_client <socket_dir>
//
//   open [label]               a session on the current connection
//   connect                    opens a new connection and makes it the current one
//   join <session_id>          binds the current connection to a session
//   session                    the id of the current connection's session
//   close                      ends the session
//   ticket <bytes>             allocates memory and prints only the ticket, as hexadecimal digits
//   alloc <bytes>              allocates, fetches, maps and seals memory
//   import <bytes>             creates a memfd, maps it, sends it and seals it
//   dmabuf <card> <bytes>      the same with a dma-buf of this graphics card
//   register <memory_id> <bytes> <flags>   a region over the first bytes of a memory object
//   regions <memory_id> <bytes> <flags> <count>   as many regions, all over the same first bytes
//   deregister <mr_id>         ends a registration; its region stays
//   tokens <mr_id>             both tokens
//   qp                         creates a queue pair and prints its address in hex
//   peer <address>             connects the queue pair to the address
//   meet <name>                connects the queue pair with the listener of that name
//   disconnected               waits until the daemon reports that the peer has disconnected
//   redeem <ticket>            tries to fetch a descriptor for a ticket, for example of another process
//   touch <bytes>              writes to the first bytes of the memory mapped last
//   peek <offset> <bytes>      prints these bytes as hexadecimal digits
//   poke <offset> <digits>     writes these bytes at the offset
//   fork                       starts a child that inherits all sockets and does nothing else
//   identity                   this process's identity as the kernel reports it
//   party <command>            one end of a connection, in a session of its own: party_commands.h
//   admin <socket>             queries the daemon's status on an admin socket
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/test_client/party_commands.h"
#include "tests/support/vgem.h"

namespace rnicd::test {
namespace {

constexpr unsigned kForkedChildSeconds = 60;

std::string Number(const std::string& key, uint64_t value) { return " " + key + "=" + std::to_string(value); }

std::string ErrorText(const v1::ErrorDetail& detail) {
  std::string name = v1::ErrorReason_Name(detail.reason());
  const std::string prefix = "ERROR_REASON_";
  name = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  return "error " + name + " field=" + detail.field();
}

std::string ErrorText(const CallOutcome& outcome) {
  return outcome.has_detail ? ErrorText(outcome.detail) : "error NO_DETAIL code=" + std::to_string(outcome.code);
}

std::string ErrorText(const FdAnswer& answer) {
  return answer.replied ? ErrorText(answer.reply.error()) : "error NO_REPLY";
}

class TestClient {
 public:
  explicit TestClient(std::string socket_dir) : socket_dir_(std::move(socket_dir)), party_(socket_dir_) { Connect(); }

  std::string Run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = commands_.find(command);
    return found == commands_.end() ? "error UNKNOWN_COMMAND" : found->second(words);
  }

 private:
  using Words = std::istringstream;

  RawClient& client() { return *clients_.back(); }
  std::string fd_socket() const { return socket_dir_ + "/fd.sock"; }

  std::string Connect() {
    clients_.push_back(std::make_unique<RawClient>(socket_dir_ + "/rpc.sock"));
    ForgetSession();
    return "ok";
  }

  std::string Open(Words& words) {
    v1::OpenSessionRequest request;
    words >> *request.mutable_label();
    const auto opened = client().Call(&SessionStub::OpenSession, request);
    ForgetSession();
    return opened.ok() ? "ok" + Number("session", opened.response.session_id()) : ErrorText(opened);
  }

  std::string Join(Words& words) {
    uint64_t id = 0;
    words >> id;
    v1::JoinSessionRequest request;
    request.set_session_id(id);
    const auto joined = client().Call(&SessionStub::JoinSession, request);
    return joined.ok() ? "ok" : ErrorText(joined);
  }

  std::string Session(Words&) {
    const auto session = client().Call(&SessionStub::GetSession, {});
    return session.ok() ? "ok" + Number("session", session.response.session_id()) : ErrorText(session);
  }

  std::string Close(Words&) {
    const auto closed = client().Call(&SessionStub::CloseSession, {});
    return closed.ok() ? "ok" + Number("regions", closed.response.reclaimed_regions()) : ErrorText(closed);
  }

  CallResult<v1::AllocateMemoryResponse> Allocate(Words& words) {
    uint64_t size = 0;
    words >> size;
    v1::AllocateMemoryRequest request;
    request.set_size(size);
    return client().Call(&MemoryStub::AllocateMemory, request);
  }

  std::string Ticket(Words& words) {
    const auto memory = Allocate(words);
    return memory.ok() ? "ok" + Number("memory", memory.response.memory_id()) +
                             " ticket=" + absl::BytesToHexString(memory.response.fd_ticket())
                       : ErrorText(memory);
  }

  std::string MapAndSeal(int fd, uint64_t memory_id) {
    mapping_ = std::make_unique<SharedMapping>(fd, static_cast<uint64_t>(lseek(fd, 0, SEEK_END)));
    v1::SealMemoryRequest request;
    request.set_memory_id(memory_id);
    const auto sealed = client().Call(&MemoryStub::SealMemory, request);
    return sealed.ok() ? "ok" + Number("memory", memory_id) : ErrorText(sealed);
  }

  std::string Alloc(Words& words) {
    const auto memory = Allocate(words);
    if (!memory.ok()) {
      return ErrorText(memory);
    }
    const FdAnswer fetched = FetchFd(fd_socket(), memory.response.fd_ticket());
    return fetched.ok() && fetched.descriptors.size() == 1
               ? MapAndSeal(fetched.descriptors[0].get(), memory.response.memory_id())
               : ErrorText(fetched);
  }

  std::string Import(Words& words) {
    uint64_t size = 0;
    words >> size;
    return ImportFile(MakeSealableMemfd(size), size);
  }

  std::string Dmabuf(Words& words) {
    std::string card;
    uint64_t size = 0;
    words >> card >> size;
    return ImportFile(MakeDmabuf(card, size), size);
  }

  std::string ImportFile(const UniqueFd& file, uint64_t size) {
    v1::ImportMemoryRequest request;
    request.set_size(size);
    const auto announced = client().Call(&MemoryStub::ImportMemory, request);
    if (!announced.ok()) {
      return ErrorText(announced);
    }
    const FdAnswer sent = SendFd(fd_socket(), announced.response.fd_ticket(), file.get());
    return sent.ok() ? MapAndSeal(file.get(), announced.response.memory_id()) : ErrorText(sent);
  }

  // Drops the objects of the connection's previous session; the next session cannot use them.
  void ForgetSession() {
    events_.reset();
    adapter_id_ = 0;
    pd_ = {};
    qp_id_ = 0;
  }

  // The session's protection domain, created at the first use.
  CallResult<v1::CreatePdResponse> Pd() {
    if (pd_.ok() && pd_.response.pd_id() != 0) {
      return pd_;
    }
    v1::OpenAdapterRequest open;
    open.set_adapter_name(AdapterUnderTest());
    adapter_id_ = client().Call(&AdapterStub::OpenAdapter, open).response.adapter_id();
    v1::CreatePdRequest request;
    request.set_adapter_id(adapter_id_);
    return pd_ = client().Call(&MemoryStub::CreatePd, request);
  }

  std::string Register(Words& words) {
    uint64_t memory_id = 0;
    uint64_t size = 0;
    uint32_t flags = 0;
    words >> memory_id >> size >> flags;
    const auto pd = Pd();
    v1::CreateMrRequest create;
    create.set_pd_id(pd.response.pd_id());
    const auto region =
        pd.ok() ? client().Call(&MemoryStub::CreateMr, create) : CallResult<v1::CreateMrResponse>{pd, {}};
    if (!region.ok()) {
      return ErrorText(region);
    }
    v1::RegisterMrRequest request =
        RegisterRequest(region.response.mr_id(), {MdlEntry(memory_id, 0, size, mapping_->address())}, size);
    request.set_flags(flags);
    const auto registered = client().Call(&MemoryStub::RegisterMr, request);
    const v1::Registration& registration = registered.response.registration();
    return registered.ok()
               ? "ok" + Number("mr", region.response.mr_id()) + Number("local", registration.local_token()) +
                     Number("remote", registration.remote_token()) + Number("base", registration.base_virtual_address())
               : ErrorText(registered);
  }

  std::string Regions(Words& words) {
    uint64_t memory_id = 0;
    uint64_t size = 0;
    uint32_t flags = 0;
    int count = 0;
    words >> memory_id >> size >> flags >> count;
    v1::BatchCreateMrRequest create;
    for (int index = 0; index < count; ++index) {
      create.add_items()->set_pd_id(Pd().response.pd_id());
    }
    const auto regions = client().Call(&MemoryStub::BatchCreateMr, create);
    v1::BatchRegisterMrRequest request;
    for (const v1::CreateMrOutcome& region : regions.response.outcomes()) {
      v1::RegisterMrRequest& item = *request.add_items();
      item = RegisterRequest(region.response().mr_id(), {MdlEntry(memory_id, 0, size, mapping_->address())}, size);
      item.set_flags(flags);
    }
    const auto registered = client().Call(&MemoryStub::BatchRegisterMr, request);
    for (const v1::RegisterMrOutcome& outcome : registered.response.outcomes()) {
      if (outcome.has_error()) {
        return ErrorText(outcome.error());
      }
    }
    return registered.ok() ? "ok" + Number("regions", static_cast<uint64_t>(registered.response.outcomes_size()))
                           : ErrorText(registered);
  }

  std::string Deregister(Words& words) {
    uint64_t id = 0;
    words >> id;
    v1::DeregisterMrRequest request;
    request.set_mr_id(id);
    const auto deregistered = client().Call(&MemoryStub::DeregisterMr, request);
    return deregistered.ok() ? "ok" : ErrorText(deregistered);
  }

  std::string Qp(Words&) {
    constexpr uint32_t kDepth = 16;
    const auto pd = Pd();
    v1::CreateCqRequest queue;
    queue.set_adapter_id(adapter_id_);
    queue.set_cq_depth(2 * kDepth);
    const auto cq = client().Call(&QueueStub::CreateCq, queue);
    v1::CreateQpRequest request;
    request.set_pd_id(pd.response.pd_id());
    request.set_receive_cq_id(cq.response.cq_id());
    request.set_initiator_cq_id(cq.response.cq_id());
    request.set_receive_queue_depth(kDepth);
    request.set_initiator_queue_depth(kDepth);
    request.set_max_receive_request_sge(1);
    request.set_max_initiator_request_sge(1);
    const auto created = client().Call(&QueueStub::CreateQp, request);
    if (!created.ok()) {
      return ErrorText(created);
    }
    qp_id_ = created.response.qp_id();
    // A session has one stream.
    if (events_ == nullptr) {
      events_ = std::make_unique<EventReader>(client());
    }
    v1::QueryQpRequest query;
    query.set_qp_id(qp_id_);
    const auto queried = client().Call(&QueueStub::QueryQp, query);
    return queried.ok() ? "ok address=" + absl::BytesToHexString(queried.response.address()) : ErrorText(queried);
  }

  std::string Peer(Words& words) {
    v1::ConnectQpRequest request;
    request.set_qp_id(qp_id_);
    std::string digits;
    words >> digits;
    request.set_peer_address(BytesFromHex(digits).value());
    const auto connected = client().Call(&QueueStub::ConnectQp, request);
    return connected.ok() ? "ok" : ErrorText(connected);
  }

  std::string Meet(Words& words) {
    v1::CreateConnectorRequest create;
    create.set_adapter_id(adapter_id_);
    v1::ConnectRequest connect;
    connect.set_connector_id(client().Call(&ConnectionStub::CreateConnector, create).response.connector_id());
    connect.set_qp_id(qp_id_);
    std::string name;
    words >> name;
    connect.set_peer_name(name);
    if (const auto connected = client().Call(&ConnectionStub::Connect, connect); !connected.ok()) {
      return ErrorText(connected);
    }
    v1::CompleteConnectRequest complete;
    complete.set_connector_id(connect.connector_id());
    const auto completed = client().Call(&ConnectionStub::CompleteConnect, complete);
    return completed.ok() ? "ok" + Number("connector", connect.connector_id()) : ErrorText(completed);
  }

  std::string Disconnected(Words&) {
    while (events_ != nullptr) {
      const auto event = events_->Next();
      if (!event.has_value()) {
        break;
      }
      if (event->has_qp_disconnected() && event->qp_disconnected().qp_id() == qp_id_) {
        return "ok";
      }
    }
    return "error NO_EVENT";
  }

  std::string Tokens(Words& words) {
    uint64_t id = 0;
    words >> id;
    v1::GetLocalTokenRequest local;
    local.set_mr_id(id);
    v1::GetRemoteTokenRequest remote;
    remote.set_mr_id(id);
    const auto local_token = client().Call(&MemoryStub::GetLocalToken, local);
    const auto remote_token = client().Call(&MemoryStub::GetRemoteToken, remote);
    return local_token.ok() && remote_token.ok() ? "ok" + Number("local", local_token.response.local_token()) +
                                                       Number("remote", remote_token.response.remote_token())
                                                 : ErrorText(local_token);
  }

  std::string Redeem(Words& words) {
    std::string digits;
    words >> digits;
    const FdAnswer fetched = FetchFd(fd_socket(), BytesFromHex(digits).value());
    return fetched.ok() ? "ok" : ErrorText(fetched);
  }

  std::string Touch(Words& words) {
    size_t size = 0;
    words >> size;
    if (mapping_ == nullptr || size > mapping_->bytes().size()) {
      return "error NOT_MAPPED";
    }
    for (std::byte& byte : mapping_->bytes().first(size)) {
      byte = std::byte{0x5a};
    }
    return "ok";
  }

  std::string Peek(Words& words) {
    size_t offset = 0;
    size_t size = 0;
    words >> offset >> size;
    if (!IsMapped(offset, size)) {
      return "error NOT_MAPPED";
    }
    const char* const begin = reinterpret_cast<const char*>(mapping_->bytes().data()) + offset;
    return "ok bytes=" + absl::BytesToHexString({begin, size});
  }

  std::string Poke(Words& words) {
    size_t offset = 0;
    std::string digits;
    words >> offset >> digits;
    const std::string bytes = BytesFromHex(digits).value();
    if (!IsMapped(offset, bytes.size())) {
      return "error NOT_MAPPED";
    }
    std::memcpy(mapping_->bytes().data() + offset, bytes.data(), bytes.size());
    return "ok";
  }

  bool IsMapped(size_t offset, size_t size) const {
    const size_t mapped = mapping_ != nullptr ? mapping_->bytes().size() : 0;
    return offset <= mapped && size <= mapped - offset;
  }

  // Uses the plain system call, because a process that has used gRPC does not survive the handlers of fork(). The child
  // closes the pipes and exits after kForkedChildSeconds unless killed before.
  std::string Fork(Words&) {
    const long pid = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0) {
      close(STDIN_FILENO);
      close(STDOUT_FILENO);
      close(STDERR_FILENO);
      alarm(kForkedChildSeconds);
      for (;;) {
        pause();
      }
    }
    return pid > 0 ? "ok" + Number("pid", static_cast<uint64_t>(pid)) : "error FORK";
  }

  static std::string Admin(Words& words) {
    std::string path;
    words >> path;
    const auto status = RawClient(path).Call(&AdminStub::GetStatus, {});
    return status.ok() ? "ok" + Number("sessions", status.response.sessions()) : ErrorText(status);
  }

  static std::string Identity(Words&) {
    std::ifstream status("/proc/self/status");
    std::string line;
    std::string capabilities;
    while (std::getline(status, line)) {
      if (line.starts_with("CapEff:")) {
        capabilities = line.substr(line.find_last_of("\t ") + 1);
      }
    }
    return "ok" + Number("uid", geteuid()) + Number("pid", static_cast<uint64_t>(getpid())) +
           " capabilities=" + capabilities;
  }

  const std::string socket_dir_;
  std::vector<std::unique_ptr<RawClient>> clients_;
  std::unique_ptr<SharedMapping> mapping_;
  uint64_t adapter_id_ = 0;
  CallResult<v1::CreatePdResponse> pd_;
  uint64_t qp_id_ = 0;
  std::unique_ptr<EventReader> events_;
  PartyCommands party_;
  const std::map<std::string, std::function<std::string(Words&)>> commands_ = {
      {"connect", [this](Words&) { return Connect(); }},
      {"open", [this](Words& words) { return Open(words); }},
      {"join", [this](Words& words) { return Join(words); }},
      {"session", [this](Words& words) { return Session(words); }},
      {"close", [this](Words& words) { return Close(words); }},
      {"ticket", [this](Words& words) { return Ticket(words); }},
      {"alloc", [this](Words& words) { return Alloc(words); }},
      {"import", [this](Words& words) { return Import(words); }},
      {"dmabuf", [this](Words& words) { return Dmabuf(words); }},
      {"register", [this](Words& words) { return Register(words); }},
      {"regions", [this](Words& words) { return Regions(words); }},
      {"deregister", [this](Words& words) { return Deregister(words); }},
      {"tokens", [this](Words& words) { return Tokens(words); }},
      {"qp", [this](Words& words) { return Qp(words); }},
      {"peer", [this](Words& words) { return Peer(words); }},
      {"meet", [this](Words& words) { return Meet(words); }},
      {"disconnected", [this](Words& words) { return Disconnected(words); }},
      {"redeem", [this](Words& words) { return Redeem(words); }},
      {"touch", [this](Words& words) { return Touch(words); }},
      {"peek", [this](Words& words) { return Peek(words); }},
      {"poke", [this](Words& words) { return Poke(words); }},
      {"fork", [this](Words& words) { return Fork(words); }},
      {"party", [this](Words& words) { return party_.Run(words); }},
      {"admin", [](Words& words) { return Admin(words); }},
      {"identity", [](Words& words) { return Identity(words); }},
  };
};

}  // namespace
}  // namespace rnicd::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_client <socket_dir>\n");
    return 2;
  }
  rnicd::test::TestClient client(argv[1]);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << client.Run(line) << '\n' << std::flush;
  }
  return 0;
}
