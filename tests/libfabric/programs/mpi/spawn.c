// usage: spawn
// Two ranks start two more, which run the same program, and transfer with them.
#include "check.h"

int main(int argc, char** argv) {
  MPI_Comm others;
  MPI_Comm all;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&others);
  const int is_child = others != MPI_COMM_NULL;
  if (!is_child) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(others, is_child, &all);
  CHECK(SizeOf(all) == SizeOf(MPI_COMM_WORLD) + 2);
  PassAround(all, 8);
  PassAround(all, 300000);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
  if (is_child) {
    MPI_Finalize();
    return 0;
  }
  return Finish();
}
