// Four threads of each of two ranks transfer at the same time.
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kMessages = 200, kBytesMax = 60000 };

static void* Transfer(void* argument) {
  const int thread = *(int*)argument;
  const int rank = RankIn(MPI_COMM_WORLD);
  Byte* out = NewBuffer(kBytesMax);
  Byte* in = NewBuffer(kBytesMax);
  for (int message = 0; message < kMessages; ++message) {
    const int bytes = message * 7919 % kBytesMax;
    Fill(out, bytes, (size_t)rank * 1000 + thread * 17 + message);
    MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, thread, in, bytes, MPI_BYTE, 1 - rank, thread, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CheckFilled(in, bytes, (size_t)(1 - rank) * 1000 + thread * 17 + message);
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  int numbers[kThreads];
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE && SizeOf(MPI_COMM_WORLD) == 2);
  for (int thread = 0; thread < kThreads; ++thread) {
    numbers[thread] = thread;
    CHECK(pthread_create(&threads[thread], NULL, Transfer, &numbers[thread]) == 0);
  }
  for (int thread = 0; thread < kThreads; ++thread) {
    pthread_join(threads[thread], NULL);
  }
  return Finish();
}
