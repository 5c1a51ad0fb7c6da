#include <gtest/gtest.h>
#include <windows.h>

#include "base/files/any_descriptor_fixture.h"
#include "base/status.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd {
namespace {

constexpr uint64_t kPage = kNdkPageBytes;
constexpr uint64_t kSize = 16 * kPage;
constexpr ErrorReason kUnavailable = ErrorReason::MEMORY_PAGES_UNAVAILABLE;

UniqueFd Section(DWORD protection, DWORD attributes = SEC_COMMIT) {
  return UniqueFd(HandleToLong(CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, protection | attributes, 0,
                                                  static_cast<DWORD>(kSize), nullptr)));
}

UniqueFd WithRights(const UniqueFd& section, DWORD rights) {
  HANDLE duplicate = nullptr;
  EXPECT_NE(DuplicateHandle(GetCurrentProcess(), LongToHandle(section.get()), GetCurrentProcess(), &duplicate, rights,
                            FALSE, 0),
            0);
  return UniqueFd(HandleToLong(duplicate));
}

TEST(WindowsOs, AMemoryFileHasItsSizeAndCannotChangeIt) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto facts = SystemOs().Inspect(file->get());
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->is_memory_file);
  EXPECT_TRUE(facts->is_read_write);
  EXPECT_FALSE(facts->is_dmabuf);
  EXPECT_EQ(facts->size, kSize);
  EXPECT_EQ(facts->page_bytes, kPage);
  EXPECT_EQ(facts->seals, (Seals{.shrink = true, .grow = true}));
  EXPECT_TRUE(FailedWith(SystemOs().Resize(file->get(), kPage), kUnavailable));
}

TEST(WindowsOs, NoChildInheritsAHandle) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto duplicate = SystemOs().Duplicate(file->get());
  ASSERT_TRUE(duplicate.ok()) << duplicate.status();
  for (const int fd : {file->get(), duplicate->get()}) {
    DWORD flags = 0;
    ASSERT_NE(GetHandleInformation(LongToHandle(fd), &flags), 0);
    EXPECT_EQ(flags & HANDLE_FLAG_INHERIT, 0u);
  }
}

TEST(WindowsOs, LargePagesAndOtherNodesAreRefused) {
  EXPECT_TRUE(FailedWith(SystemOs().CreateMemoryFile(kSize, uint64_t{2} << 20).status(), kUnavailable));
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto mapping = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_TRUE(FailedWith(SystemOs().BindToNumaNode(*mapping, 1000), ErrorReason::NUMA_NODE_UNKNOWN));
  EXPECT_TRUE(FailedWith(SystemOs().Remap(*mapping, kPage).status(), kUnavailable));
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(WindowsOs, AHandleOfAnotherKindIsNoMemoryFile) {
  const UniqueFd event = OpenAnyDescriptor();
  const auto facts = SystemOs().Inspect(event.get());
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(facts->is_memory_file);
}

TEST(WindowsOs, ASectionWhosePagesNeedNotComeIsNoMemoryFile) {
  const UniqueFd reserved = Section(PAGE_READWRITE, SEC_RESERVE);
  EXPECT_FALSE(SystemOs().Inspect(reserved.get())->is_memory_file);
}

TEST(WindowsOs, ASectionOfAFileIsNoMemoryFile) {
  const std::string path = testing::TempDir() + "rnicd_section_of_a_file";
  const UniqueFd file(HandleToLong(CreateFileA(path.c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                               FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, nullptr)));
  ASSERT_TRUE(file.valid());
  const UniqueFd section(
      HandleToLong(CreateFileMappingW(LongToHandle(file.get()), nullptr, PAGE_READWRITE, 0, kSize, nullptr)));
  ASSERT_TRUE(section.valid());
  EXPECT_FALSE(SystemOs().Inspect(section.get())->is_memory_file);
}

TEST(WindowsOs, TheRightsOfAHandleDecideWhatItMayDo) {
  const UniqueFd file = Section(PAGE_READWRITE);
  const UniqueFd reader = WithRights(file, SECTION_MAP_READ | SECTION_QUERY);
  EXPECT_TRUE(SystemOs().Inspect(file.get())->is_read_write);
  EXPECT_FALSE(SystemOs().Inspect(reader.get())->is_read_write);
  EXPECT_FALSE(SystemOs().Map(reader.get(), kSize).ok());
}

TEST(WindowsOs, AMappingIsSharedAndPopulatingKeepsItsBytes) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const auto mapping = SystemOs().Map(file->get(), kSize);
  const auto other = SystemOs().Map(file->get(), kSize);
  ASSERT_TRUE(mapping.ok() && other.ok());
  (*mapping)[kPage] = std::byte{7};
  EXPECT_TRUE(SystemOs().Populate(*mapping).ok());
  EXPECT_TRUE(SystemOs().MapPages(*other).ok());
  EXPECT_EQ((*other)[kPage], std::byte{7});
  EXPECT_EQ((*other)[0], std::byte{0});
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
  EXPECT_TRUE(SystemOs().Unmap(*other).ok());
  EXPECT_FALSE(SystemOs().Unmap(*other).ok());
}

TEST(WindowsOs, MoreThanThereIsCannotBeMapped) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  EXPECT_FALSE(SystemOs().Map(file->get(), 1024 * kSize).ok());
}

TEST(WindowsOs, AClosedHandleIsAFault) {
  auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  const int closed = file->get();
  file->Reset(-1);
  EXPECT_TRUE(FailedWith(SystemOs().Inspect(closed).status(), ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(FailedWith(SystemOs().Duplicate(closed).status(), ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(FailedWith(SystemOs().AddSeals(closed, {.shrink = true}), ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(FailedWith(SystemOs().Map(closed, kSize).status(), ErrorReason::INTERNAL_FAULT));
}

TEST(WindowsOs, EverySealButThatOfWritingIsGranted) {
  const auto file = SystemOs().CreateMemoryFile(kSize, kPage);
  EXPECT_TRUE(SystemOs().AddSeals(file->get(), {.shrink = true, .grow = true}).ok());
  EXPECT_TRUE(SystemOs().AddSeals(file->get(), {.future_write = true, .seal = true}).ok());
  EXPECT_TRUE(FailedWith(SystemOs().AddSeals(file->get(), {.write = true}), ErrorReason::MEMORY_SEAL_REFUSED));
}

}  // namespace
}  // namespace rnicd
