#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the job with an error that says where, unless the condition holds.
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                           \
    }                                                                         \
  } while (0)

typedef unsigned char Byte;

static inline Byte ByteOf(size_t stream, size_t index) { return (Byte)(stream * 31 + index * 7 + index / 251 + 1); }

static inline Byte* NewBuffer(size_t bytes) {
  Byte* buffer = malloc(bytes + 1);
  CHECK(buffer != NULL);
  return buffer;
}

static inline void Fill(Byte* buffer, size_t bytes, size_t stream) {
  for (size_t index = 0; index < bytes; ++index) {
    buffer[index] = ByteOf(stream, index);
  }
}

static inline Byte* NewFilled(size_t bytes, size_t stream) {
  Byte* buffer = NewBuffer(bytes);
  Fill(buffer, bytes, stream);
  return buffer;
}

static inline void CheckFilled(const Byte* buffer, size_t bytes, size_t stream) {
  for (size_t index = 0; index < bytes; ++index) {
    CHECK(buffer[index] == ByteOf(stream, index));
  }
}

static inline int RankIn(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

static inline int SizeOf(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

// Every rank sends to the next one and checks what the one before it sends.
static inline void PassAround(MPI_Comm comm, int bytes) {
  const int rank = RankIn(comm);
  const int size = SizeOf(comm);
  const int before = (rank + size - 1) % size;
  Byte* out = NewFilled(bytes, rank);
  Byte* in = NewBuffer(bytes);
  MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, bytes, in, bytes, MPI_BYTE, before, bytes, comm,
               MPI_STATUS_IGNORE);
  CheckFilled(in, bytes, before);
  free(in);
  free(out);
}

// Says that the rank got through, and ends it.
static inline int Finish(void) {
  const int rank = RankIn(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    printf("all is well\n");
  }
  MPI_Finalize();
  return 0;
}
