#include "daemon/sandbox/serving.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace rnicd::sandbox {
namespace {

constexpr int kKill = 0;

void RefuseSockets(std::vector<RefusedUse>& uses, bool looks_for_cards) {
  constexpr unsigned kSocketType = 1;
  uses.push_back({"socket", {Is(0, AF_INET)}, kKill, "the metrics page has its socket"});
  uses.push_back({"socket", {Is(0, AF_INET6)}, kKill, "the metrics page has its socket"});
  // The bit of SOCK_DGRAM is in SOCK_RAW, too, of which the kernel makes a datagram socket. The other types are sockets
  // of operators and workloads, which are made again where they were removed; without connect they send nothing. The C
  // library contacts the system's log by datagrams, and continues without it.
  uses.push_back({"socket", {Is(0, AF_UNIX), Has(kSocketType, SOCK_DGRAM)}, EACCES, "it can send to any name"});
  uses.push_back({"socketpair", {Has(kSocketType, SOCK_DGRAM)}, kKill, "it can send to any name"});
  if (!looks_for_cards) {
    uses.push_back({"socket", {Is(0, AF_NETLINK)}, kKill, "there are no cards to be found"});
  }
}

// What sendmsg sends to is in memory, which a filter cannot read: that there is no socket without a peer, and that none
// can be made, has to suffice. A socket of the metrics page that was shut down could be connected again by its flag.
void RefuseAddresses(std::vector<RefusedUse>& uses) {
  constexpr unsigned kSendtoFlags = 3;
  constexpr unsigned kSendtoAddress = 4;
  constexpr unsigned kSendmsgFlags = 2;
  uses.push_back({"sendto", {IsNotNull(kSendtoAddress)}, kKill, "all sockets have their peers"});
  uses.push_back({"sendto", {Has(kSendtoFlags, MSG_FASTOPEN)}, kKill, "it opens a connection"});
  uses.push_back({"sendmsg", {Has(kSendmsgFlags, MSG_FASTOPEN)}, kKill, "it opens a connection"});
}

void RefusePrivilegedFiles(std::vector<RefusedUse>& uses) {
  struct ModeArgument {
    const char* call;
    unsigned index;
  };
  // The mode of open and openat is ignored unless a file is created; the C library then passes 0.
  constexpr ModeArgument kModes[] = {{"open", 2},     {"openat", 3}, {"chmod", 1},  {"fchmod", 1},
                                     {"fchmodat", 2}, {"mkdir", 1},  {"mkdirat", 2}};
  for (const ModeArgument& mode : kModes) {
    for (const uint64_t bit : {S_ISUID, S_ISGID}) {
      uses.push_back({mode.call, {Has(mode.index, bit)}, kKill, "a program that runs as another user or group"});
    }
  }
}

// Drivers of cards and everything else that is a library were loaded at the start.
void RefuseCode(std::vector<RefusedUse>& uses) {
  constexpr unsigned kProtection = 2;
  // A sanitizer's report runs a program for the names of its lines, and this program loads its libraries.
  if (!BuiltWithSanitizer()) {
    uses.push_back({"mmap", {Has(kProtection, PROT_EXEC)}, kKill, "all libraries are loaded"});
    uses.push_back({"mprotect", {Has(kProtection, PROT_EXEC)}, kKill, "no data becomes code"});
  }
  uses.push_back({"seccomp", {}, kKill, "the filters are complete"});
}

}  // namespace

std::vector<RefusedUse> RefusedWhenServing(bool looks_for_cards) {
  std::vector<RefusedUse> uses;
  RefuseSockets(uses, looks_for_cards);
  RefuseAddresses(uses);
  RefusePrivilegedFiles(uses);
  RefuseCode(uses);
  return uses;
}

}  // namespace rnicd::sandbox
