#include "base/this_process.h"
#include "client/cpp/process_mark.h"

namespace rnicd::inline client {

int32_t ThisProcess() {
  static const int32_t process = ProcessId();
  return process;
}

}  // namespace rnicd::inline client
