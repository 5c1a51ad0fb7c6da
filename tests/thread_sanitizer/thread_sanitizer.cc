// Linked into every program of a build with the thread sanitizer.

#include <atomic>

#include "absl/status/status.h"

// A report ends the program, so that no test misses it. A default, because a daemon that a test starts as another user
// need not have the environment of the tests.
extern "C" const char* __tsan_default_options() { return "halt_on_error=1:second_deadlock_stack=1"; }

namespace absl {
ABSL_NAMESPACE_BEGIN

// Replaces the definition in Debian's library, which is not instrumented. There the sanitizer does not see by which
// atomic the owners of an error release it, and reports the deletion by the last one as a race with an earlier read.
void Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* const shared = RepToPointer(rep);
  if (shared->ref.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete shared;
  }
}

ABSL_NAMESPACE_END
}  // namespace absl
