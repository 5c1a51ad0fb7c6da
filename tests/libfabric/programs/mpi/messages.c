// usage: messages SEED COUNT
// Random messages between random ranks, in batches: sends and receives of a batch are posted in orders of their own.
// All ranks make the same batches of the seed.
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { kBatch = 50, kBytesMax = 256 * 1024 };

typedef struct {
  int from;
  int to;
  int bytes;
  int tag;
  int any_source;
  uint64_t seed;
} Planned;

// xorshift64*.
static uint64_t Next(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717u;
}

static int Below(uint64_t* state, int end) { return (int)((Next(state) >> 33) % (uint64_t)end); }

static void Write(Byte* buffer, int bytes, uint64_t seed) {
  uint64_t state = seed;
  for (int at = 0; at < bytes; at += 8) {
    const uint64_t word = Next(&state);
    memcpy(buffer + at, &word, bytes - at < 8 ? (size_t)(bytes - at) : 8);
  }
}

// FNV-1a.
static uint64_t Checksum(const Byte* buffer, int bytes) {
  uint64_t sum = 14695981039346656037u;
  for (int at = 0; at < bytes; ++at) {
    sum = (sum ^ buffer[at]) * 1099511628211u;
  }
  return sum;
}

static void Shuffle(int* order, int count, uint64_t* state) {
  for (int at = 0; at < count; ++at) {
    order[at] = at;
  }
  for (int at = count - 1; at > 0; --at) {
    const int other = Below(state, at + 1);
    const int kept = order[at];
    order[at] = order[other];
    order[other] = kept;
  }
}

static void Plan(Planned* planned, int count, int ranks, uint64_t* state) {
  for (int at = 0; at < count; ++at) {
    // As many small ones as large ones.
    const int limit = 1 << Below(state, 19);
    planned[at] = (Planned){.from = Below(state, ranks),
                            .to = Below(state, ranks),
                            .bytes = Below(state, 16) == 0 ? 0 : 1 + Below(state, limit),
                            .tag = at * 37,
                            .any_source = Below(state, 2),
                            .seed = Next(state) | 1};
  }
}

static void Exchange(const Planned* planned, int count, uint64_t* own_order) {
  const int rank = RankIn(MPI_COMM_WORLD);
  MPI_Request requests[2 * kBatch];
  Byte* out[kBatch] = {NULL};
  Byte* in[kBatch] = {NULL};
  int posted = 0;
  int order[2 * kBatch];
  Shuffle(order, 2 * count, own_order);
  for (int at = 0; at < 2 * count; ++at) {
    const int number = order[at] / 2;
    const Planned* one = &planned[number];
    if (order[at] % 2 == 0 && one->from == rank) {
      out[number] = NewBuffer(one->bytes);
      Write(out[number], one->bytes, one->seed);
      MPI_Isend(out[number], one->bytes, MPI_BYTE, one->to, one->tag, MPI_COMM_WORLD, &requests[posted++]);
    } else if (order[at] % 2 == 1 && one->to == rank) {
      in[number] = NewBuffer(one->bytes);
      MPI_Irecv(in[number], one->bytes, MPI_BYTE, one->any_source ? MPI_ANY_SOURCE : one->from, one->tag,
                MPI_COMM_WORLD, &requests[posted++]);
    }
  }
  MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
  Byte* expected = NewBuffer(kBytesMax);
  for (int number = 0; number < count; ++number) {
    if (in[number] != NULL) {
      Write(expected, planned[number].bytes, planned[number].seed);
      CHECK(Checksum(in[number], planned[number].bytes) == Checksum(expected, planned[number].bytes));
    }
    free(in[number]);
    free(out[number]);
  }
  free(expected);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  uint64_t plan = strtoull(argv[1], NULL, 10) * 2 + 1;
  uint64_t own_order = plan + 1000 * (uint64_t)RankIn(MPI_COMM_WORLD);
  Planned planned[kBatch];
  for (int left = atoi(argv[2]); left > 0; left -= kBatch) {
    const int count = left < kBatch ? left : kBatch;
    Plan(planned, count, SizeOf(MPI_COMM_WORLD), &plan);
    Exchange(planned, count, &own_order);
    // Tags repeat in the next batch.
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return Finish();
}
