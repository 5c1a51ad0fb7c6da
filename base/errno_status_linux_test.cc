#include "base/errno_status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "absl/strings/match.h"

#include "base/status.h"

namespace rnicd {
namespace {

TEST(ErrnoStatus, WantOfPagesOrDescriptorsIsTheNodesShortage) {
  for (const int error : {ENOMEM, EAGAIN, ENOSPC, EMFILE, ENFILE}) {
    EXPECT_TRUE(FailedWith(ErrnoStatus("mmap", error), ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << error;
  }
}

TEST(ErrnoStatus, AnyOtherErrorIsOurFault) {
  for (const int error : {EPERM, EBADF, EINVAL, EACCES, EFAULT, EIO, 0, 99999, -1}) {
    EXPECT_TRUE(FailedWith(ErrnoStatus("mmap", error), ErrorReason::INTERNAL_FAULT)) << error;
  }
}

TEST(ErrnoStatus, TheMessageNamesTheCallAndTheError) {
  EXPECT_TRUE(absl::StrContains(ErrnoStatus("mmap", ENOMEM).message(), "(mmap: ENOMEM)"));
  EXPECT_TRUE(absl::StrContains(ErrnoStatus("fcntl(F_ADD_SEALS)", EIO).message(), "(fcntl(F_ADD_SEALS): EIO)"));
  EXPECT_TRUE(absl::StrContains(ErrnoStatus("mmap", 99999).message(), "(mmap: 99999)"));
}

}  // namespace
}  // namespace rnicd
