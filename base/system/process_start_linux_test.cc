#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/system/process_start.h"

namespace rnicd {
namespace {

void LimitFiles(rlim_t bytes) {
  const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Like an exception that a thread's function throws and no code catches.
template <typename Exception>
void EndBy(const Exception& exception) {
  PrepareProcess();
  std::thread([&exception] { throw exception; }).join();
}

TEST(PrepareProcess, AFileThatIsOpenedLaterIsNoStandardStream) {
  for (int first = STDIN_FILENO; first <= STDERR_FILENO; ++first) {
    EXPECT_EXIT(
        {
          for (int stream = first; stream <= STDERR_FILENO; ++stream) {
            close(stream);
          }
          PrepareProcess();
          std::_Exit(memfd_create("later", MFD_CLOEXEC) > STDERR_FILENO ? 0 : 9);
        },
        testing::ExitedWithCode(0), "")
        << first;
  }
}

TEST(PrepareProcess, StreamsThatAreThereStay) {
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        PrepareProcess();
        std::_Exit(write(STDERR_FILENO, "still here", 10) == 10 ? 0 : 9);
      },
      testing::ExitedWithCode(0), "still here");
}

TEST(PrepareProcess, BeyondTheLimitOfFileSizesWritingFailsAndTheProcessStays) {
  EXPECT_EXIT(
      {
        PrepareProcess();
        LimitFiles(4096);
        const int file = memfd_create("large", MFD_CLOEXEC);
        const bool refused = ftruncate(file, 8192) != 0 && errno == EFBIG;
        std::_Exit(refused && pwrite(file, "x", 1, 8192) < 0 && errno == EFBIG ? 0 : 9);
      },
      testing::ExitedWithCode(0), "");
}

TEST(PrepareProcess, AThreadHasTheUsualStackWhateverTheLimitWas) {
  EXPECT_EXIT(
      {
        // The stack size that glibc derives from a small limit before main.
        pthread_attr_t attributes;
        pthread_getattr_default_np(&attributes);
        pthread_attr_setstacksize(&attributes, size_t{64} << 10);
        pthread_setattr_default_np(&attributes);
        PrepareProcess();
        size_t bytes = 0;
        pthread_getattr_default_np(&attributes);
        pthread_attr_getstacksize(&attributes, &bytes);
        std::_Exit(bytes == size_t{8} << 20 ? 0 : 9);
      },
      testing::ExitedWithCode(0), "");
}

TEST(PrepareProcess, WhereTheSystemRefusesAThreadOrMemoryTheEndHasWords) {
  EXPECT_EXIT(EndBy(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
              testing::ExitedWithCode(1), "the system refuses a thread");
  EXPECT_EXIT(EndBy(std::bad_alloc()), testing::ExitedWithCode(1), "the system refuses memory");
  EXPECT_EXIT(EndBy(std::logic_error("a mistake")), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace rnicd
