#pragma once

#include <string>
#include <vector>

#include "base/files/unique_fd.h"

namespace rnicd::test {

// Descriptors whose last close() blocks: a process that receives them and closes them itself waits as long as the
// attacker likes.
struct Baits {
  // False when close() of any descriptor blocks, not only of the last: the attacker cannot close its own after sending.
  bool closable = true;
  std::vector<UniqueFd> descriptors;
  // The other ends of LingeringSockets. While they are open, the baits bite.
  std::vector<UniqueFd> peers;
};

// TCP sockets that linger for a minute over bytes that their peer never reads. The end of the peer releases the close.
// Fewer than `count` when the process has no more descriptors.
Baits LingeringSockets(int count);

// Openings of a file of a StuckFileServer, which is `mount`: close() flushes the file and waits for the server.
Baits StuckFiles(int mount, int count);

// Unix sockets, each with a stuck file in its queue that nobody else has open: their close() is the last of the file.
Baits SocketsWithStuckFiles(int mount, int count);

// A page of this process that never comes: who reads it waits until the process ends, also the kernel in a system call.
// A write(2) from it holds the lock of its file meanwhile, and whatever takes that lock waits too.
// Source: userfaultfd(2); the kernel's faults need CAP_SYS_PTRACE.
class WithheldPage {
 public:
  WithheldPage();
  // False if the kernel has no such page for this process; errno says why.
  bool valid() const { return page_ != nullptr; }
  // Writes into the file in a thread. Returns when the write waits for the page.
  bool BeginWrite(int file);

 private:
  UniqueFd faults_;
  void* page_ = nullptr;
};

// Sends the bytes and descriptors in one packet; 0, or the errno.
int SendWithDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors);

}  // namespace rnicd::test
