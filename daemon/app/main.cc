// rnicd: owns the node's RDMA adapters and hands registered memory to processes without privilege.
// SIGHUP, and on Windows the service's control paramchange, reads the policy file again.
// Exit status: 0 after SIGTERM or SIGINT, or what the console or the service manager sends instead; 1 when it could not
// start or drain; 2 for flags that do not exist or have invalid values.

#include "base/system/process_start.h"
#include "daemon/app/config/config.h"
#include "daemon/app/run.h"

int main(int argc, char** argv) {
  rnicd::PrepareProcess();
  return rnicd::app::RunDaemon(argc, argv, rnicd::app::SystemCards());
}
