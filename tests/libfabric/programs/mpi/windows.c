// One-sided transfers to memory of the heap, and to memory of MPI's.
#include <string.h>

#include "check.h"

enum { kPart = 100000 };
static int rank, ranks;

// Each rank writes its part into all windows, reads it back from the next one, and changes what rank 0 wrote.
static void Transfer(MPI_Win window, const Byte* memory) {
  const int next = (rank + 1) % ranks;
  Byte* mine = NewFilled(kPart, rank);
  Byte* back = NewBuffer(kPart);
  MPI_Win_fence(0, window);
  for (int to = 0; to < ranks; ++to) {
    MPI_Put(mine, kPart, MPI_BYTE, to, (MPI_Aint)rank * kPart, kPart, MPI_BYTE, window);
  }
  MPI_Win_fence(0, window);
  for (int of = 0; of < ranks; ++of) {
    CheckFilled(memory + (size_t)of * kPart, kPart, of);
  }
  MPI_Get(back, kPart, MPI_BYTE, next, (MPI_Aint)rank * kPart, kPart, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  CheckFilled(back, kPart, rank);
  memset(mine, 1, kPart);
  MPI_Accumulate(mine, kPart, MPI_BYTE, next, 0, kPart, MPI_BYTE, MPI_BXOR, window);
  MPI_Win_fence(0, window);
  for (size_t index = 0; index < kPart; ++index) {
    CHECK(memory[index] == (ByteOf(0, index) ^ 1));
  }
  MPI_Win_fence(0, window);
  free(mine);
  free(back);
}

// A counter in the window of rank 0, under a lock.
static void Count(void) {
  enum { kRounds = 20 };
  int counter = 0;
  MPI_Win window;
  MPI_Win_create(&counter, sizeof(counter), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int round = 0; round < kRounds; ++round) {
    int value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  int last = -1;
  MPI_Get(&last, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
  CHECK(last == kRounds * ranks);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  rank = RankIn(MPI_COMM_WORLD);
  ranks = SizeOf(MPI_COMM_WORLD);
  const MPI_Aint bytes = (MPI_Aint)ranks * kPart;
  MPI_Win window;
  Byte* memory = NewBuffer(bytes);
  MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  Transfer(window, memory);
  MPI_Win_free(&window);
  free(memory);
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  Transfer(window, memory);
  MPI_Win_free(&window);
  Count();
  return Finish();
}
