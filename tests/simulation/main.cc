// rnicd_simulation: simulates core and the soft card from a seed. See README.md.
//
//   rnicd_simulation [--seed N] [--sessions N] [--steps N] [--kept FILE] [--canary[=NAME]] [--trace]
//
// Without --seed the seed comes from the clock. --sessions: sessions to open. --steps: maximum per episode.
// --kept: runs each seed of a file. --canary: plants a bug, which must be found. --trace: prints every step as it
// happens. Exit status: 0 nothing found, 1 an invariant does not hold, 2 wrong usage.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/episode.h"
#include "tests/simulation/world/dice.h"

namespace rnicd::simulation {
namespace {

struct Arguments {
  std::optional<uint64_t> seed;
  uint64_t sessions = 1000;
  uint64_t steps = 3000;
  std::string kept_seeds;
  Canary canary = Canary::kNone;
  bool trace = false;
};

std::optional<Canary> CanaryNamed(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    Canary canary;
  } kRows[] = {
      {"completion_twice", Canary::kCompletionTwice},
      {"completion_lost", Canary::kCompletionLost},
      {"token_outlives_region", Canary::kTokenOutlivesRegion},
      {"stray_byte", Canary::kStrayByte},
      {"pages_kept", Canary::kPagesKept},
      {"page_charged_twice", Canary::kPageChargedTwice},
      {"page_given_back_early", Canary::kPageGivenBackEarly},
      {"outcome_twice", Canary::kOutcomeTwice},
      {"mapped_swapped", Canary::kMappedSwapped},
      {"refusal_at_once", Canary::kRefusalAtOnce},
  };
  for (const auto& row : kRows) {
    if (row.name == name) {
      return row.canary;
    }
  }
  return std::nullopt;
}

// Nullopt for invalid arguments.
std::optional<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (word.starts_with("--canary")) {
      const std::optional<Canary> canary = CanaryNamed(word == "--canary" ? "completion_twice" : word.substr(9));
      if (!canary.has_value()) {
        return std::nullopt;
      }
      arguments.canary = *canary;
      continue;
    }
    if (++index == words.size()) {
      return std::nullopt;
    }
    const uint64_t number = std::strtoull(words[index].c_str(), nullptr, 10);
    if (word == "--seed") {
      arguments.seed = number;
    } else if (word == "--sessions") {
      arguments.sessions = number;
    } else if (word == "--steps") {
      arguments.steps = number;
    } else if (word == "--kept") {
      arguments.kept_seeds = words[index];
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

void PrintFinding(const Findings& findings, const Trace& trace, uint64_t seed, uint64_t episode) {
  std::printf("\nThe last steps:\n");
  for (const std::string& step : trace.last()) {
    std::printf("  %s\n", step.c_str());
  }
  std::printf("\nFAILED %s\n  %s\n  seed %llu, episode %llu, step %llu\n", findings.first().invariant.c_str(),
              findings.first().difference.c_str(), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(episode), static_cast<unsigned long long>(trace.steps()));
}

// Exits the process at a finding.
void RunSeed(uint64_t seed, const Arguments& arguments) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Trace trace(arguments.trace);
  Findings findings;
  SeededRandom episode_seeds(seed);
  uint64_t sessions = 0;
  uint64_t episode = 0;
  while (sessions < arguments.sessions) {
    ++episode;
    const EpisodeLimits limits{.sessions = arguments.sessions - sessions, .steps = arguments.steps};
    sessions += RunEpisode(episode_seeds.Next(), limits, arguments.canary, trace, findings);
    if (findings.any()) {
      PrintFinding(findings, trace, seed, episode);
      std::fflush(stdout);
      // Skips destructors: the rest of the world is inconsistent.
      std::_Exit(1);
    }
  }
  std::printf("%llu sessions, %llu episodes, %llu steps, digest %016llx\n", static_cast<unsigned long long>(sessions),
              static_cast<unsigned long long>(episode), static_cast<unsigned long long>(trace.steps()),
              static_cast<unsigned long long>(trace.digest()));
}

// The seeds of a file of "seed | what it once found" lines.
std::vector<uint64_t> ReadSeeds(const std::string& path) {
  std::vector<uint64_t> seeds;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') {
      seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
    }
  }
  return seeds;
}

int Main(const std::vector<std::string>& words) {
  const std::optional<Arguments> arguments = Parse(words);
  if (!arguments.has_value()) {
    std::fprintf(stderr,
                 "usage: rnicd_simulation [--seed N] [--sessions N] [--steps N] [--kept FILE] "
                 "[--canary[=NAME]] [--trace]\n");
    return 2;
  }
  if (!arguments->kept_seeds.empty()) {
    const std::vector<uint64_t> seeds = ReadSeeds(arguments->kept_seeds);
    for (const uint64_t seed : seeds) {
      RunSeed(seed, *arguments);
    }
    return seeds.empty() ? 2 : 0;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  RunSeed(arguments->seed.value_or(static_cast<uint64_t>(std::chrono::nanoseconds(now).count())), *arguments);
  return 0;
}

}  // namespace
}  // namespace rnicd::simulation

int main(int argc, char** argv) { return rnicd::simulation::Main({argv + 1, argv + argc}); }
