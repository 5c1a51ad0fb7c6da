// The device plugin's log is a pipe that nobody reads.
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/process/full_pipe.h"

namespace rnicd::test {
namespace {

class NodeWithUnreadLog : public KubernetesNode {};

TEST_F(NodeWithUnreadLog, PodsGetTheirUnitsAndSigtermWorks) {
  const FullPipe pipe;
  StartPlugin({"--log_level=debug"}, pipe.write_end.get());
  for (const char* const name : {"a", "b", "c"}) {
    EXPECT_FALSE(RunPod(name, 1).environment.empty()) << name;
  }
  plugin().Signal(SIGTERM);
  EXPECT_EQ(plugin().WaitForEnd().value_or(ProcessEnd()).exit_code, 0);
}

}  // namespace
}  // namespace rnicd::test
