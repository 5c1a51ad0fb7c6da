// Registered memory beside a busy heap and forks, and threads that share a domain, each in a process of its own.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/libfabric/fabric_pair.h"
#include "tests/libfabric/start_program.h"

namespace rnicd::fi {
namespace {

class Stress : public LibfabricTest {
 protected:
  static void Run(const std::string& what, uint64_t seed, int count, std::vector<std::string> wrapper = {}) {
    const std::unique_ptr<test::ChildProcess> program =
        StartProgram({what, std::to_string(seed), std::to_string(count)}, std::move(wrapper));
    ASSERT_NE(program, nullptr);
    const auto end = program->WaitForEnd(test::kTimeout * count);
    ASSERT_TRUE(end.has_value()) << "seed " << seed;
    EXPECT_EQ(end->exit_code, 0) << "seed " << seed << ", signal " << end->signal << ": " << program->errors().Text();
  }
};

class HeapStress : public Stress {};

TEST_F(Stress, FiftyRegistrationsBesideABusyHeapAndForks) { Run("memory", 1, 50); }
TEST_F(HeapStress, FiftyRegistrationsOnThePreloadedHeap) { Run("memory", 2, 50, OnThePreloadedHeap()); }
TEST_F(Stress, AThousandRegistrationsBesideABusyHeapAndForks) { Run("memory", std::random_device{}(), 1000); }
TEST_F(Stress, FourThreadsShareADomainAndItsQueues) { Run("threads", 0, 200); }

}  // namespace
}  // namespace rnicd::fi
