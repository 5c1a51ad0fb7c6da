#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "base/system/process_start.h"

namespace rnicd {
namespace {

constexpr int kCouldNotRun = 1;
// What Linux has by default.
constexpr size_t kUsualStackBytes = size_t{8} << 20;

// A new descriptor has the lowest number that is free. The direction is wrong on purpose: each use of a stream that was
// closed fails as before.
void OpenMissingStreams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) {
      std::_Exit(kCouldNotRun);
    }
  }
}

// glibc gives each thread as much as the limit of the main thread's stack was at the start.
void WidenStacks() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kUsualStackBytes) {
    limit.rlim_cur = std::min<rlim_t>(kUsualStackBytes, limit.rlim_max);
    setrlimit(RLIMIT_STACK, &limit);
  }
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) {
    return;
  }
  if (pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < kUsualStackBytes &&
      pthread_attr_setstacksize(&attributes, kUsualStackBytes) == 0) {
    pthread_setattr_default_np(&attributes);
  }
  pthread_attr_destroy(&attributes);
}

// The standard library throws where the system refuses memory or a thread. Anything else is a mistake in the program.
[[noreturn]] void EndInPlainWords() {
  const char* what = nullptr;
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      what = "memory";
    } catch (const std::system_error& error) {
      what = error.code() == std::errc::resource_unavailable_try_again ? "a thread" : nullptr;
    } catch (...) {
      what = nullptr;
    }
  }
  if (what == nullptr) {
    std::abort();
  }
  std::fprintf(stderr, "%s: cannot go on: the system refuses %s; 'ulimit -a' and the control group have the limits\n",
               program_invocation_short_name, what);
  std::_Exit(kCouldNotRun);
}

}  // namespace

void PrepareProcess() {
  OpenMissingStreams();
  WidenStacks();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(EndInPlainWords);
}

}  // namespace rnicd
