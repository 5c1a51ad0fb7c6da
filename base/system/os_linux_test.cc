#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/system/faulty_os.h"
#include "base/system/os.h"

namespace rnicd {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kSize = 4 * kPage;

std::string PathOf(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

TEST(LinuxOs, MakesASealableFileOfTheRightSize) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  ASSERT_TRUE(file.ok());
  const auto facts = SystemOs().Inspect(file->get());
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->is_memory_file);
  EXPECT_TRUE(facts->is_read_write);
  EXPECT_EQ(facts->size, kSize);
  EXPECT_EQ(facts->page_bytes, kPage);
  EXPECT_EQ(facts->seals, Seals{});
  EXPECT_NE(fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(LinuxOs, InspectKnowsHugePages) {
  const UniqueFd file(memfd_create("huge", MFD_HUGETLB | MFD_HUGE_2MB | MFD_ALLOW_SEALING));
  ASSERT_TRUE(file.valid());
  const auto facts = SystemOs().Inspect(file.get());
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->is_memory_file);
  EXPECT_EQ(facts->page_bytes, uint64_t{2} << 20);
}

// Counting pinned pages depends on this: a file is recognized by any descriptor and never mistaken for another.
TEST(LinuxOs, InspectNamesAFileAmongAllOpenOnes) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto other = SystemOs().CreateMemoryFile(kSize, kPage);
  ASSERT_TRUE(file.ok() && other.ok());
  const UniqueFd duplicate(dup(file->get()));
  const UniqueFd reopened(open(PathOf(*file).c_str(), O_RDWR | O_CLOEXEC));
  const auto facts = SystemOs().Inspect(file->get());
  ASSERT_TRUE(facts.ok());
  EXPECT_NE(facts->inode, 0u);
  for (const int again : {duplicate.get(), reopened.get()}) {
    EXPECT_EQ(SystemOs().Inspect(again)->inode, facts->inode);
    EXPECT_EQ(SystemOs().Inspect(again)->device, facts->device);
  }
  const auto other_facts = SystemOs().Inspect(other->get());
  ASSERT_TRUE(other_facts.ok());
  EXPECT_FALSE(other_facts->inode == facts->inode && other_facts->device == facts->device);
}

TEST(LinuxOs, WhatIsNoMemorySaysSo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const UniqueFd files[] = {UniqueFd(dup(read_end.get())),
                            UniqueFd(dup(write_end.get())),
                            UniqueFd(open("/", O_RDONLY)),
                            UniqueFd(open("/dev/zero", O_RDWR)),
                            UniqueFd(open("/proc/self/maps", O_RDONLY)),
                            UniqueFd(open("/proc/self/exe", O_PATH))};
  for (const UniqueFd& file : files) {
    const auto facts = SystemOs().Inspect(file.get());
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_FALSE(facts->is_memory_file);
    EXPECT_FALSE(facts->is_dmabuf);
  }
}

TEST(LinuxOs, ADescriptorThatOnlyNamesAMemoryFileIsNone) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const UniqueFd path_only(open(PathOf(*file).c_str(), O_PATH));
  const auto facts = SystemOs().Inspect(path_only.get());
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->is_memory_file);
}

TEST(LinuxOs, TheWayOfOpeningIsSeen) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const UniqueFd reader(open(PathOf(*file).c_str(), O_RDONLY));
  const UniqueFd writer(open(PathOf(*file).c_str(), O_WRONLY));
  EXPECT_FALSE(SystemOs().Inspect(reader.get())->is_read_write);
  EXPECT_FALSE(SystemOs().Inspect(writer.get())->is_read_write);
  EXPECT_TRUE(SystemOs().Inspect(reader.get())->is_memory_file);
}

TEST(LinuxOs, AClosedDescriptorIsAFault) {
  EXPECT_TRUE(FailedWith(SystemOs().Inspect(-1).status(), ErrorReason::INTERNAL_FAULT));
}

TEST(LinuxOs, SealsAreAddedAndARefusalIsNamed) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  EXPECT_TRUE(SystemOs().AddSeals(file->get(), {.shrink = true, .seal = true}).ok());
  EXPECT_EQ(SystemOs().Inspect(file->get())->seals, (Seals{.shrink = true, .seal = true}));
  EXPECT_TRUE(FailedWith(SystemOs().AddSeals(file->get(), {.grow = true}), ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_TRUE(FailedWith(SystemOs().AddSeals(-1, {.grow = true}), ErrorReason::INTERNAL_FAULT));
}

TEST(LinuxOs, APopulatedMappingIsSharedAndZero) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto mapping = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(SystemOs().Populate(*mapping).ok());
  EXPECT_TRUE(std::all_of(mapping->begin(), mapping->end(), [](std::byte b) { return b == std::byte{0}; }));
  (*mapping)[kPage] = std::byte{42};
  char back = 0;
  EXPECT_EQ(pread(file->get(), &back, 1, kPage), 1);
  EXPECT_EQ(back, 42);
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

// A line of smaps, such as "VmFlags:", of the mapping that begins there.
std::string LineOf(const std::byte* address, std::string_view name) {
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<uintptr_t>(address) << '-';
  std::ifstream file("/proc/self/smaps");
  std::string line;
  while (std::getline(file, line) && !line.starts_with(begin.str())) {
  }
  while (std::getline(file, line) && !line.starts_with(name)) {
  }
  return line + ' ';
}
std::string FlagsOf(const std::byte* address) { return LineOf(address, "VmFlags:"); }

TEST(LinuxOs, AMappingIsLeftOutOfCoreDumps) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto mapping = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok());
  EXPECT_NE(FlagsOf(mapping->data()).find(" dd "), std::string::npos) << FlagsOf(mapping->data());
  // Cards whose registrations need consecutive addresses get a second mapping of the same pages.
  void* const second = mremap(mapping->data(), 0, kSize, MREMAP_MAYMOVE);
  ASSERT_NE(second, MAP_FAILED);
  const std::string flags = FlagsOf(static_cast<const std::byte*>(second));
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  EXPECT_EQ(munmap(second, kSize), 0);
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(LinuxOs, AFileAndItsMappingChangeTheirSizeAndKeepWhatTheyHave) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  auto mapping = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(SystemOs().Populate(*mapping).ok());
  (*mapping)[0] = std::byte{42};
  for (const uint64_t size : {kPage, 2 * kSize}) {
    ASSERT_TRUE(SystemOs().Resize(file->get(), size).ok());
    mapping = SystemOs().Remap(*mapping, size);
    ASSERT_TRUE(mapping.ok()) << mapping.status();
    EXPECT_EQ(mapping->size(), size);
    EXPECT_EQ((*mapping)[0], std::byte{42});
    EXPECT_EQ(SystemOs().Inspect(file->get())->size, size);
    EXPECT_EQ(SystemOs().Inspect(file->get())->populated_bytes, kPage) << "the others were freed";
  }
  EXPECT_EQ((*mapping)[kPage], std::byte{0});
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
  EXPECT_TRUE(SystemOs().AddSeals(file->get(), {.shrink = true, .grow = true}).ok());
  EXPECT_FALSE(SystemOs().Resize(file->get(), kPage).ok());
}

TEST(LinuxOs, PagesAreMadeInAPartOfAFileBeforeTheyAreMapped) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto mapping = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(SystemOs().MakePages(file->get(), kPage, kPage, kPage).ok());
  EXPECT_EQ(SystemOs().Inspect(file->get())->populated_bytes, kPage);
  ASSERT_TRUE(SystemOs().Reserve(file->get(), 2 * kPage, 2 * kPage).ok());
  EXPECT_EQ(SystemOs().Inspect(file->get())->populated_bytes, 3 * kPage);
  EXPECT_THAT(LineOf(mapping->data(), "Rss:"), HasSubstr(" 0 kB"));
  ASSERT_TRUE(SystemOs().MapPages(mapping->subspan(kPage)).ok());
  EXPECT_THAT(LineOf(mapping->data(), "Rss:"), HasSubstr(" 12 kB"));
  EXPECT_TRUE(std::all_of(mapping->begin(), mapping->end(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

// The kernel's setting for shared memory, without which advice has no effect.
bool SharedMemoryMayHaveHugePages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string setting;
  std::getline(file, setting);
  return !setting.empty() && setting.find("[never]") == std::string::npos &&
         setting.find("[deny]") == std::string::npos;
}

TEST(LinuxOs, SaysWhetherAdviceGivesTransparentHugePages) {
  const auto file = SystemOs().CreateMemoryFile(uint64_t{4} << 20, kPage);
  const auto mapping = SystemOs().Map(file->get(), uint64_t{4} << 20);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(SystemOs().AdviseHugePages(*mapping), SharedMemoryMayHaveHugePages());
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(LinuxOs, PagesBeyondTheFileAreAFailureAndNotASignal) {
  const auto file = SystemOs().CreateMemoryFile(kPage, kPage);
  const auto mapping = SystemOs().Map(file->get(), 2 * kPage);
  ASSERT_TRUE(mapping.ok());
  EXPECT_TRUE(FailedWith(SystemOs().Populate(*mapping), ErrorReason::MEMORY_PAGES_UNAVAILABLE));
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(LinuxOs, MoreThanTheAddressSpaceCannotBeMapped) {
  const auto file = SystemOs().CreateMemoryFile(uint64_t{1} << 60, kPage);
  ASSERT_TRUE(file.ok()) << "no page is taken yet";
  EXPECT_TRUE(
      FailedWith(SystemOs().Map(file->get(), uint64_t{1} << 60).status(), ErrorReason::MEMORY_PAGES_UNAVAILABLE));
}

TEST(LinuxOs, ANumaNodeBeyondAnyKernelsIsUnknown) {
  const auto file = SystemOs().CreateMemoryFile(kPage, kPage);
  const auto mapping = SystemOs().Map(file->get(), kPage);
  for (const uint32_t node : {1024u, UINT32_MAX}) {
    const absl::Status refused = SystemOs().BindToNumaNode(*mapping, node);
    EXPECT_TRUE(FailedWith(refused, ErrorReason::NUMA_NODE_UNKNOWN)) << node;
    EXPECT_EQ(ErrorInfoOf(refused).field, "numa_node");
  }
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(FaultyOs, FailsAsOftenAsPlannedAndCountsItsMappings) {
  FaultyOs os(SystemOs());
  const auto file = os.CreateMemoryFile(kPage, kPage);
  os.FailNext("Map", MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 2);
  EXPECT_FALSE(os.Map(file->get(), kPage).ok());
  EXPECT_FALSE(os.Map(file->get(), kPage).ok());
  EXPECT_EQ(os.live_mappings(), 0u);
  const auto mapping = os.Map(file->get(), kPage);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(os.live_mappings(), 1u);
  os.FailNext("Unmap", MakeError(ErrorReason::INTERNAL_FAULT), 1);
  EXPECT_FALSE(os.Unmap(*mapping).ok());
  EXPECT_EQ(os.live_mappings(), 1u);
  EXPECT_TRUE(os.Unmap(*mapping).ok());
  EXPECT_EQ(os.live_mappings(), 0u);
}

}  // namespace
}  // namespace rnicd
