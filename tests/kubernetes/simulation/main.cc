// rnicd_grant_simulation: simulates the grants of a node's pods from a seed. See README.md.
//
//   rnicd_grant_simulation [--seed N] [--episodes N] [--steps N] [--kept FILE] [--canary NAME]
//
// Without --seed the seed comes from the clock. --kept: also runs each seed of a file. --canary: plants a bug, which
// must be found. Exit status: 0 nothing found, 1 an invariant does not hold, 2 wrong usage.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/kubernetes/simulation/invariants.h"
#include "tests/kubernetes/simulation/world.h"

namespace rnicd::test {
namespace {

struct Arguments {
  std::optional<uint64_t> seed;
  uint64_t episodes = 1;
  uint64_t steps = 2000;
  std::string kept_seeds;
  GrantCanary canary = GrantCanary::kNone;
};

const std::map<std::string, GrantCanary>& Canaries() {
  static const std::map<std::string, GrantCanary> canaries = {{"revocations_ignored", GrantCanary::kRevocationsIgnored},
                                                              {"starts_unannounced", GrantCanary::kStartsUnannounced},
                                                              {"reviews_skipped", GrantCanary::kReviewsSkipped},
                                                              {"bindings_ignored", GrantCanary::kBindingsIgnored}};
  return canaries;
}

// Nullopt for invalid arguments.
std::optional<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t index = 0; index + 1 < words.size(); index += 2) {
    const std::string& word = words[index];
    const std::string& value = words[index + 1];
    if (word == "--seed") {
      arguments.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--episodes") {
      arguments.episodes = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--steps") {
      arguments.steps = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--kept") {
      arguments.kept_seeds = value;
    } else if (word == "--canary" && Canaries().contains(value)) {
      arguments.canary = Canaries().at(value);
    } else {
      return std::nullopt;
    }
  }
  return words.size() % 2 == 0 ? std::optional(arguments) : std::nullopt;
}

// Returns whether every invariant held.
bool RunEpisode(uint64_t seed, uint64_t episode, const Arguments& arguments, std::map<std::string, uint64_t>& counts) {
  World world(seed + episode, arguments.canary);
  for (uint64_t step = 1; step <= arguments.steps; ++step) {
    world.Step();
    const Finding finding = CheckGrants(world);
    if (finding.invariant.empty()) {
      continue;
    }
    for (const std::string& line : world.last_steps()) {
      std::printf("  %s\n", line.c_str());
    }
    std::printf("\nFAILED %s\n  %s\n  seed %llu, episode %llu, step %llu\n", finding.invariant.c_str(),
                finding.difference.c_str(), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(episode), static_cast<unsigned long long>(step));
    return false;
  }
  for (const auto& [kind, count] : world.counts()) {
    counts[kind] += count;
  }
  return true;
}

bool RunSeed(uint64_t seed, const Arguments& arguments) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::map<std::string, uint64_t> counts;
  for (uint64_t episode = 0; episode < arguments.episodes; ++episode) {
    if (!RunEpisode(seed, episode, arguments, counts)) {
      return false;
    }
  }
  for (const auto& [kind, count] : counts) {
    std::printf("%s %llu  ", kind.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf("\n");
  return true;
}

std::vector<uint64_t> SeedsOf(const Arguments& arguments) {
  std::vector<uint64_t> seeds;
  std::ifstream file(arguments.kept_seeds);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') {
      seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
    }
  }
  if (seeds.empty() || arguments.seed.has_value()) {
    seeds.push_back(arguments.seed.value_or(
        static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1))));
  }
  return seeds;
}

}  // namespace
}  // namespace rnicd::test

int main(int argc, char** argv) {
  const auto arguments = rnicd::test::Parse(std::vector<std::string>(argv + 1, argv + argc));
  if (!arguments.has_value()) {
    std::fprintf(stderr, "rnicd_grant_simulation: invalid arguments; the head of main.cc has the valid ones\n");
    return 2;
  }
  for (const uint64_t seed : rnicd::test::SeedsOf(*arguments)) {
    if (!rnicd::test::RunSeed(seed, *arguments)) {
      return 1;
    }
  }
  return 0;
}
