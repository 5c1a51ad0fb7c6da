#include "client/ctl/commands/memory_options.h"

#include <array>

#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

absl::StatusOr<MemoryOptions> Register(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "register");
  static const std::array kCommands = {kRegisterCommand};
  return RegisterOptionsFrom(*ParseCommandLine(arguments, kCommands, CommonOptions()));
}

TEST(MemoryOptions, DefaultsNeedOnlyASize) {
  const auto options = Register({"--size", "64MiB"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->memory.size, 64u << 20);
  EXPECT_EQ(options->memory.page_size, PageSize::kAuto);
  EXPECT_EQ(options->memory.numa_node, std::nullopt);
  EXPECT_EQ(options->regions, 1u);
  EXPECT_EQ(options->flags, 7u);
  EXPECT_EQ(options->hold, HoldTime{});
  EXPECT_FALSE(options->reconnect);
  EXPECT_EQ(options->label, "rnicctl");
  EXPECT_EQ(options->grant, "");
  EXPECT_FALSE(options->import);
}

TEST(MemoryOptions, EveryOptionIsRead) {
  const auto options = Register({"--size", "1GiB", "--page-size", "2MiB", "--numa-node", "1", "--flags", "local-write",
                                 "--regions", "16", "--adapter", "soft1", "--hold", "forever", "--label", "x",
                                 "--grant", "rnicd-grant-1", "--reconnect"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->memory.page_size, PageSize::k2MiB);
  EXPECT_EQ(options->memory.numa_node, 1u);
  EXPECT_EQ(options->regions, 16u);
  EXPECT_EQ(options->flags, 1u);
  EXPECT_EQ(options->adapter_name, "soft1");
  EXPECT_TRUE(options->hold.forever);
  EXPECT_TRUE(options->reconnect);
  EXPECT_EQ(options->label, "x");
  EXPECT_EQ(options->grant, "rnicd-grant-1");
}

TEST(MemoryOptions, BadValuesAreUsageErrors) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"--size", "0"},
      {"--size", "many"},
      {"--size", "4096", "--page-size", "3MiB"},
      {"--size", "4096", "--numa-node", "4294967296"},
      {"--size", "4096", "--flags", "write"},
      {"--size", "4096", "--hold", "soon"},
      {"--size", "4096", "--regions", "0"},
      {"--size", "4096", "--regions", "2"},
      {"--size", "1GiB", "--regions", "16385"},
      {"--size", "4096", "--import", "--numa-node", "0"},
  };
  for (const auto& mistake : mistakes) {
    EXPECT_TRUE(IsUsageError(Register(mistake).status())) << Register(mistake).status();
  }
}

TEST(MemoryOptions, SplitCoversEveryByteOnceInWholePages) {
  const std::vector<std::byte> bytes(10 * 4096 + 100);
  const auto parts = SplitEvenly(bytes, 4);
  ASSERT_EQ(parts.size(), 4u);
  const std::byte* next = bytes.data();
  for (const auto& part : parts) {
    EXPECT_EQ(part.data(), next);
    next += part.size();
  }
  EXPECT_EQ(next, bytes.data() + bytes.size());
  EXPECT_EQ(parts[0].size(), 2u * 4096);
  EXPECT_EQ(SplitEvenly(bytes, 1).front().size(), bytes.size());
}

}  // namespace
}  // namespace rnicd::ctl
