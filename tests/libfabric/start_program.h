#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/child_process.h"

namespace rnicd::fi {

// tests/libfabric/process with these words, after those of a command that becomes it; null, and a failure of the test,
// if it cannot be started.
std::unique_ptr<test::ChildProcess> StartProgram(std::vector<std::string> words, std::vector<std::string> wrapper = {});

// For StartProgram: preloads librnicd-heap.so.
std::vector<std::string> OnThePreloadedHeap();

}  // namespace rnicd::fi
