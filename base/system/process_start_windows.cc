#include "base/system/process_start.h"

namespace rnicd {

// Windows has neither those numbers nor that signal.
void PrepareProcess() {}

}  // namespace rnicd
