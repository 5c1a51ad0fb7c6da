#pragma once

#include <string>
#include <vector>

namespace rnicd::test {

// The command with the emulator of RNICD_TEST_EMULATOR, its words separated by spaces, in front of the program: the
// first word that is the path of a program of this process's architecture. Without that variable the command itself.
// For tests that an emulator runs: the kernel starts only programs of the machine's own architecture. Others, such as
// setpriv, stay programs of the machine.
std::vector<std::string> WithEmulator(std::vector<std::string> command);

}  // namespace rnicd::test
