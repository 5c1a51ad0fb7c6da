// Rank 0 opens a port, to which rank 1 connects: two groups that knew nothing of each other.
#include "check.h"

int main(int argc, char** argv) {
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm other;
  MPI_Comm both;
  MPI_Init(&argc, &argv);
  const int rank = RankIn(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else {
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  }
  MPI_Intercomm_merge(other, rank, &both);
  CHECK(SizeOf(both) == 2);
  PassAround(both, 8);
  PassAround(both, 300000);
  MPI_Comm_free(&both);
  MPI_Comm_disconnect(&other);
  if (rank == 0) {
    MPI_Close_port(port);
  }
  return Finish();
}
