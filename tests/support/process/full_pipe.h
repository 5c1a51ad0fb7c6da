#pragma once

#include "base/files/unique_fd.h"

namespace rnicd::test {

// A pipe that is full, so that its writers block until it is read. Lines that are read are behind the filling, which is
// one line.
struct FullPipe {
  FullPipe();

  UniqueFd read_end;
  UniqueFd write_end;
};

}  // namespace rnicd::test
