// usage: endings fork | exit | endless
// fork: a rank makes a child in the middle, which writes into its memory and ends. exit: the ranks end without
// MPI_Finalize. endless: they transfer until somebody ends them. All say "ready" and their process when they are
// connected.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void Fork(void) {
  enum { kBytes = 500000 };
  Byte* kept = NewFilled(kBytes, 5);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    memset(kept, 0, kBytes);
    Byte* own = NewFilled(kBytes, 6);
    free(own);
    // As a program that starts another one, or that returns from main.
    RankIn(MPI_COMM_WORLD) % 2 == 0 ? _exit(0) : execl("/bin/true", "true", NULL);
    _exit(1);
  }
  PassAround(MPI_COMM_WORLD, kBytes);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CheckFilled(kept, kBytes, 5);
  free(kept);
  PassAround(MPI_COMM_WORLD, kBytes);
}

int main(int argc, char** argv) {
  const char* how = argv[argc - 1];
  MPI_Init(&argc, &argv);
  PassAround(MPI_COMM_WORLD, 100000);
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (strcmp(how, "endless") == 0) {
    PassAround(MPI_COMM_WORLD, 100000);
  }
  if (strcmp(how, "exit") == 0) {
    return 0;
  }
  Fork();
  return Finish();
}
