#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/child_process.h"

namespace rnicd::fi {

// tests/libfabric/process with these words; null, and a failure of the test, if it cannot be started.
std::unique_ptr<test::ChildProcess> StartProgram(std::vector<std::string> words);

}  // namespace rnicd::fi
