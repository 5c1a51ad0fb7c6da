// Registers 64 MiB of memory with rnicd and prints what a peer needs to write into it.
#include <cstdio>

#include "client/cpp/client.h"

absl::Status RegisterMemory(const char* socket_dir) {
  RNICD_ASSIGN_OR_RETURN(rnicd::Client client, rnicd::Client::Connect({.socket_dir = socket_dir, .label = "example"}));
  RNICD_ASSIGN_OR_RETURN(rnicd::Memory memory, rnicd::Memory::Allocate(client, {.size = 64 << 20}));
  RNICD_ASSIGN_OR_RETURN(rnicd::MemoryRegion region, rnicd::MemoryRegion::Register(memory, rnicd::kMrFlagRemoteWrite));
  std::printf("base address %p, remote token %#x\n", static_cast<void*>(memory.bytes().data()),
              region.remote_token().value);
  return absl::OkStatus();  // The region, the memory and the session are released here, in this order.
}

int main(int argc, char** argv) {
  const absl::Status status = RegisterMemory(argc > 1 ? argv[1] : "/run/rnicd");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
