#include "provider/soft/soft_fabric.h"

namespace rnicd::provider {

uint64_t SoftFabric::NewNumber() {
  while (true) {
    const uint64_t number = random_.Next();
    if (number != 0 && Reserve(AddressOf(number))) {
      return number;
    }
  }
}

std::string SoftFabric::AddressOf(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace rnicd::provider
