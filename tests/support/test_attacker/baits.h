#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"

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

// Sends the bytes and descriptors in one packet; 0, or the errno.
int SendWithDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors);

}  // namespace rnicd::test
