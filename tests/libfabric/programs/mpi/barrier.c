// Nothing but a first barrier.
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  return Finish();
}
