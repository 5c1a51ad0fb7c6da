#include "tests/vm/bench/asked_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/vm/bench/direct.h"
#include "tests/vm/bench/rounds.h"

namespace rnicd::vm_bench {
namespace {

[[noreturn]] void Serve(int socket, uint64_t bytes) {
  DirectCard card;
  OwnMemory memory(Source::kFile, bytes);
  memory.Populate();
  for (char question = 0; read(socket, &question, 1) == 1;) {
    DirectCard::Deregister(card.Register(memory.bytes()));
    Require(write(socket, &question, 1) == 1, "nobody waits for the answer");
  }
  _exit(0);
}

}  // namespace

AskedProcess::AskedProcess(uint64_t bytes) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  UniqueFd mine(ends[0]);
  UniqueFd other(ends[1]);
  process_ = fork();
  Require(process_ >= 0, "fork");
  if (process_ == 0) {
    mine.Reset(-1);
    Serve(other.get(), bytes);
  }
  socket_ = std::move(mine);
}

AskedProcess::~AskedProcess() {
  socket_.Reset(-1);
  waitpid(process_, nullptr, 0);
}

void AskedProcess::RegisterAndDeregister() const {
  char answer = 0;
  Require(write(socket_.get(), &answer, 1) == 1 && read(socket_.get(), &answer, 1) == 1, "the other process has ended");
}

}  // namespace rnicd::vm_bench
