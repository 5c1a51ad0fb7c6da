// Passes messages of several sizes around.
#include "check.h"

int main(int argc, char** argv) {
  const int sizes[] = {0, 1, 1000, 65536, 1 << 20, (64 << 20) + 1};
  MPI_Init(&argc, &argv);
  for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); ++at) {
    PassAround(MPI_COMM_WORLD, sizes[at]);
  }
  return Finish();
}
