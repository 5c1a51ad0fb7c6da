// What a receive may leave open, and where a message may go: any source, oneself, a part of the ranks.
#include "check.h"

static int rank, ranks;

static void FromAnySource(int bytes) {
  if (rank != 0) {
    Byte* out = NewFilled(bytes, rank);
    MPI_Send(out, bytes, MPI_BYTE, 0, 100 + rank, MPI_COMM_WORLD);
    free(out);
    return;
  }
  Byte* in = NewBuffer(bytes);
  unsigned seen = 1;
  for (int count = 1; count < ranks; ++count) {
    MPI_Status status;
    int received = 0;
    MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &received);
    CHECK(received == bytes && status.MPI_TAG == 100 + status.MPI_SOURCE);
    CheckFilled(in, bytes, status.MPI_SOURCE);
    seen |= 1u << status.MPI_SOURCE;
  }
  CHECK(seen == (1u << ranks) - 1);
  free(in);
}

static void ToOneself(int bytes) {
  MPI_Request request;
  Byte* out = NewFilled(bytes, rank);
  Byte* in = NewBuffer(bytes);
  MPI_Isend(out, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(in, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CheckFilled(in, bytes, rank);
  free(out);
  free(in);
}

// The receiver learns the size before it receives. RxM loses parts of larger messages that are received by their
// handle: with tcp, too.
static void Probed(int bytes) {
  const int before = (rank + ranks - 1) % ranks;
  MPI_Request request;
  MPI_Status status;
  MPI_Message message;
  int waiting = 0;
  int size = 0;
  Byte* out = NewFilled(bytes, rank);
  Byte* in = NewBuffer(bytes);
  MPI_Isend(out, bytes, MPI_BYTE, (rank + 1) % ranks, 2, MPI_COMM_WORLD, &request);
  MPI_Probe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &size);
  CHECK(size == bytes && status.MPI_TAG == 2);
  MPI_Improbe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &waiting, &message, &status);
  CHECK(waiting != 0 && status.MPI_SOURCE == before);
  MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  CheckFilled(in, bytes, before);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(out);
  free(in);
}

// A synchronous send completes only when it is received; a receive that nobody wants any more is cancelled.
static void SynchronousAndCancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int done = 0;
  Byte byte = 0;
  MPI_Irecv(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &done);
  CHECK(done != 0);
  if (rank == 0) {
    Byte out = 42;
    MPI_Issend(&out, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK(done == 0);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&byte, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(byte == 42);
  }
}

static void InParts(void) {
  MPI_Comm part;
  int sum = 0;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  PassAround(part, 70000);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
  int expected = 0;
  for (int of = rank % 2; of < ranks; of += 2) {
    expected += of;
  }
  CHECK(sum == expected);
  MPI_Comm_free(&part);
}

int main(int argc, char** argv) {
  const int sizes[] = {0, 8, 20000, 300000};
  MPI_Init(&argc, &argv);
  rank = RankIn(MPI_COMM_WORLD);
  ranks = SizeOf(MPI_COMM_WORLD);
  for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); ++at) {
    FromAnySource(sizes[at]);
    MPI_Barrier(MPI_COMM_WORLD);
    ToOneself(sizes[at]);
    Probed(sizes[at] % 16000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  SynchronousAndCancelled();
  InParts();
  return Finish();
}
