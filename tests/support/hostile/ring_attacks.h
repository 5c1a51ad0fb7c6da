#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rnicd::test {

// What a hostile client may do with rings and mapped completion queues. Used by test_attacker, and by the soak.
std::vector<std::string> RingAttackNames();

// Opens a session with a ring, and runs rounds of the attack until `go_on` is false; a round is some hundred actions.
// Returns the number of rounds; 0 if there is no such attack, or the daemon refused the session or its first ring.
uint64_t RunRingAttack(const std::string& name, const std::string& socket_dir, uint64_t seed,
                       const std::function<bool(uint64_t rounds)>& go_on);

}  // namespace rnicd::test
