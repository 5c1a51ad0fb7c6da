// Passes messages of several sizes around, and one of as many bytes as the argument says.
#include "check.h"

int main(int argc, char** argv) {
  const int sizes[] = {0, 1, 1000, 65536, 1 << 20};
  MPI_Init(&argc, &argv);
  for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); ++at) {
    PassAround(MPI_COMM_WORLD, sizes[at]);
  }
  if (argc > 1) {
    PassAround(MPI_COMM_WORLD, atoi(argv[1]));
  }
  return Finish();
}
