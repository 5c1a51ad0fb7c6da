// Half of a round trip, and bandwidth of 16 messages in flight, between two ranks: a line for each size, with bytes,
// median in microseconds, and MB/s.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kInFlight = 16 };

static int compare(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static double median_us(int rank, char* buffer, int bytes, int rounds) {
  double* took = malloc(sizeof(double) * (size_t)rounds);
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    took[round] = (MPI_Wtime() - begin) / 2 * 1e6;
  }
  qsort(took, (size_t)rounds, sizeof(double), compare);
  const double median = took[rounds / 2];
  free(took);
  return median;
}

static double megabytes_per_second(int rank, char* buffer, int bytes, int rounds) {
  MPI_Request requests[kInFlight];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    for (int index = 0; index < kInFlight; ++index) {
      if (rank == 0) {
        MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[index]);
      } else {
        MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[index]);
      }
    }
    MPI_Waitall(kInFlight, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return (double)bytes * kInFlight * rounds / (MPI_Wtime() - begin) / 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int at = 1; at < argc; ++at) {
    const int bytes = atoi(argv[at]);
    // Some tenths of a second for each size.
    const int rounds = bytes <= 8192 ? 5000 : bytes <= 1 << 16 ? 1000 : bytes <= 1 << 20 ? 100 : 10;
    char* buffer = malloc((size_t)bytes);
    memset(buffer, 1, (size_t)bytes);
    median_us(rank, buffer, bytes, rounds / 10 + 1);
    const double median = median_us(rank, buffer, bytes, rounds);
    const double rate = megabytes_per_second(rank, buffer, bytes, rounds / 10 + 1);
    if (rank == 0) printf("%d %.2f %.1f\n", bytes, median, rate);
    free(buffer);
  }
  MPI_Finalize();
  return 0;
}
