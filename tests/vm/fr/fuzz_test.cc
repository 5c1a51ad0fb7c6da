// Random requests to the device. The guest's kernel must survive them; run_steps.sh reads its log.
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

#include "tests/vm/fr/fixture.h"

namespace {

constexpr int kRequests = 5000;

class Fuzz : public FastRegistration {
 protected:
  // Mostly small numbers and edges: numbers from the whole range are refused by the first check.
  uint64_t Number() {
    const uint64_t edges[] = {0,     1,          2,          7,          8,     kPage - 1, kPage,
                              0xfff, 0x80000000, UINT32_MAX, UINT64_MAX, kBase, mapping_,  pages_.address()};
    switch (random_() % 4) {
      case 0:
        return edges[random_() % std::size(edges)];
      case 1:
        return random_();
      default:
        return random_() % 9;
    }
  }

  // Changes some words of the request.
  template <typename Request>
  void Spoil(Request& request) {
    for (uint64_t count = random_() % 3; count > 0; --count) {
      const size_t at = random_() % (sizeof(request) / 4) * 4;
      const auto value = static_cast<uint32_t>(Number());
      std::memcpy(reinterpret_cast<char*>(&request) + at, &value, sizeof(value));
    }
  }

  rnicd_fr_op RandomOp() {
    const auto region = static_cast<uint32_t>(random_() % 4);
    const auto slot = static_cast<uint32_t>(random_() % 2);
    rnicd_fr_op op = InvalidateOp(region, slot, 0);
    if (random_() % 2 == 0) op = RegisterOp({.region = region, .slot = slot, .base = kBase}, random_() % 4, 1);
    Spoil(op);
    return op;
  }

  int SubmitRandom() {
    std::vector<rnicd_fr_op> ops(1 + random_() % 8);
    std::vector<rnicd_fr_run> runs(4, FirstPage());
    for (rnicd_fr_op& op : ops) op = RandomOp();
    if (random_() % 2 == 0) Spoil(runs[random_() % runs.size()]);
    rnicd_fr_submit submit = {};
    submit.ops = reinterpret_cast<uintptr_t>(ops.data());
    submit.op_count = static_cast<uint32_t>(ops.size());
    submit.runs = reinterpret_cast<uintptr_t>(runs.data());
    submit.run_count = static_cast<uint32_t>(runs.size());
    // Larger counts would let the module read and write beyond the vectors, in this process.
    if (random_() % 8 == 0) submit.op_count = RNICD_FR_OPS_MAX + 1 + static_cast<uint32_t>(Number() % 9);
    if (random_() % 8 == 0) submit.ops = Number() % kPage;
    if (Call(domain_.file(), RNICD_FR_SUBMIT, &submit) != 0) return 0;
    return static_cast<int>(submit.done);
  }

  template <typename Request>
  int CallSpoiled(unsigned long command, Request request) {
    Spoil(request);
    return Call(domain_.file(), command, &request) == 0 ? 1 : 0;
  }

  int CallRandom() {
    const auto number = static_cast<uint32_t>(random_() % 6);
    switch (random_() % 12) {
      case 0:
        return CallSpoiled(RNICD_FR_MAP, rnicd_fr_map{.address = pages_.address(), .length = kPage * (number + 1)});
      case 1:
        return CallSpoiled(RNICD_FR_UNMAP, rnicd_fr_unmap{.mapping = number, .reserved = 0});
      case 2:
        return CallSpoiled(RNICD_FR_CREATE_REGION, rnicd_fr_create_region{.pages = number});
      case 3:
        return CallSpoiled(RNICD_FR_DESTROY_REGION, rnicd_fr_destroy_region{.region = number, .reserved = 0});
      case 4: {
        rnicd_fr_take take = TakeRequest(owner_);
        Spoil(take);
        return Call(control_.number(), RNICD_FR_TAKE, &take) == 0 ? 1 : 0;
      }
      default:
        return SubmitRandom();
    }
  }

  std::mt19937_64 random_;
};

TEST_F(Fuzz, RandomRequestsHarmNobody) {
  const char* wanted = std::getenv("RNICD_FR_SEED");
  const uint64_t seed = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
  std::cout << "RNICD_FR_SEED=" << seed << '\n';
  random_.seed(seed);
  int accepted = 0;
  for (int i = 0; i < kRequests; ++i) accepted += CallRandom();
  // If all were refused the fuzzer would test one check.
  EXPECT_GT(accepted, kRequests / 50);
  std::cout << accepted << " accepted\n";

  const Card fresh(CardName());
  Domain domain(control_.number(), fresh);
  uint32_t mapping = 0;
  EXPECT_EQ(domain.Map(pages_, mapping), 0);
}

}  // namespace
