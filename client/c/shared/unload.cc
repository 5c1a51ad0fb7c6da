#include "google/protobuf/stubs/common.h"

// What the C++ runtime and protobuf leave to the end of the process, a library that is loaded again and again must not:
// memory in which an exception has room when there is no other, and defaults of messages.

namespace __gnu_cxx {
// In libstdc++.a, for tools that look for leaks; no header has it.
void __freeres();  // NOLINT(bugprone-reserved-identifier)
}  // namespace __gnu_cxx

[[gnu::destructor]] static void Unload() {
  google::protobuf::ShutdownProtobufLibrary();
  __gnu_cxx::__freeres();
}
