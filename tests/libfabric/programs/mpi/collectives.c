// Every collective operation with contents that are checked. Reductions are by exclusive or: sums of
// bytes saturate in some versions of Open MPI.
#include "check.h"

static int rank, ranks;

// Combination of what ranks [0, end) have at `index`.
static Byte CombinedAt(int end, size_t index) {
  Byte combined = 0;
  for (int of = 0; of < end; ++of) {
    combined ^= ByteOf(of, index);
  }
  return combined;
}

static void CheckCombined(const Byte* buffer, int end, size_t first, size_t bytes) {
  for (size_t index = 0; index < bytes; ++index) {
    CHECK(buffer[index] == CombinedAt(end, first + index));
  }
}

static void Reductions(int bytes) {
  Byte* mine = NewFilled(bytes, rank);
  Byte* combined = NewBuffer(bytes);
  MPI_Reduce(mine, combined, bytes, MPI_BYTE, MPI_BXOR, ranks - 1, MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    CheckCombined(combined, ranks, 0, bytes);
  }
  MPI_Allreduce(mine, combined, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
  CheckCombined(combined, ranks, 0, bytes);
  MPI_Scan(mine, combined, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
  CheckCombined(combined, rank + 1, 0, bytes);
  MPI_Exscan(mine, combined, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
  if (rank != 0) {
    CheckCombined(combined, rank, 0, bytes);
  }
  free(mine);
  free(combined);
}

// Rank r gets r + 1 parts of `bytes`, and in the regular case one.
static void ReduceScatters(int bytes) {
  int counts[8];
  int total = 0;
  int before = 0;
  for (int of = 0; of < ranks; ++of) {
    counts[of] = (of + 1) * bytes;
    before += of < rank ? counts[of] : 0;
    total += counts[of];
  }
  Byte* mine = NewFilled(total, rank);
  Byte* part = NewBuffer(counts[rank]);
  MPI_Reduce_scatter(mine, part, counts, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
  CheckCombined(part, ranks, before, counts[rank]);
  MPI_Reduce_scatter_block(mine, part, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
  CheckCombined(part, ranks, (size_t)rank * bytes, bytes);
  free(mine);
  free(part);
}

static void Gathers(int bytes) {
  int counts[8];
  int places[8];
  int total = 0;
  for (int of = 0; of < ranks; ++of) {
    counts[of] = (of + 1) * bytes;
    places[of] = total;
    total += counts[of];
  }
  Byte* mine = NewFilled(counts[rank], rank);
  Byte* all = NewBuffer(total);
  MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int of = 0; rank == 0 && of < ranks; ++of) {
    CheckFilled(all + (size_t)of * bytes, bytes, of);
  }
  MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
  for (int of = 0; of < ranks; ++of) {
    CheckFilled(all + (size_t)of * bytes, bytes, of);
  }
  MPI_Gatherv(mine, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int of = 0; rank == 0 && of < ranks; ++of) {
    CheckFilled(all + places[of], counts[of], of);
  }
  MPI_Allgatherv(mine, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD);
  for (int of = 0; of < ranks; ++of) {
    CheckFilled(all + places[of], counts[of], of);
  }
  free(mine);
  free(all);
}

static void Scatters(int bytes) {
  int counts[8];
  int places[8];
  int total = 0;
  for (int of = 0; of < ranks; ++of) {
    counts[of] = (of + 1) * bytes;
    places[of] = total;
    total += counts[of];
  }
  Byte* all = NewBuffer(total);
  Byte* part = NewBuffer(counts[rank]);
  for (int of = 0; of < ranks; ++of) {
    Fill(all + (size_t)of * bytes, bytes, of);
  }
  MPI_Scatter(all, bytes, MPI_BYTE, part, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  CheckFilled(part, bytes, rank);
  for (int of = 0; of < ranks; ++of) {
    Fill(all + places[of], counts[of], of);
  }
  MPI_Scatterv(all, counts, places, MPI_BYTE, part, counts[rank], MPI_BYTE, 0, MPI_COMM_WORLD);
  CheckFilled(part, counts[rank], rank);
  free(all);
  free(part);
}

// What goes from one rank to another is the stream from * ranks + to, and to + 1 parts long in the irregular case.
static void AllToAll(int bytes) {
  int out_counts[8];
  int out_places[8];
  int in_counts[8];
  int in_places[8];
  int total = 0;
  for (int to = 0; to < ranks; ++to) {
    out_counts[to] = (to + 1) * bytes;
    out_places[to] = total;
    in_counts[to] = (rank + 1) * bytes;
    in_places[to] = to * in_counts[to];
    total += out_counts[to];
  }
  Byte* out = NewBuffer(total);
  Byte* in = NewBuffer((size_t)ranks * (rank + 1) * bytes);
  for (int to = 0; to < ranks; ++to) {
    Fill(out + (size_t)to * bytes, bytes, rank * ranks + to);
  }
  MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
  for (int of = 0; of < ranks; ++of) {
    CheckFilled(in + (size_t)of * bytes, bytes, of * ranks + rank);
  }
  for (int to = 0; to < ranks; ++to) {
    Fill(out + out_places[to], out_counts[to], rank * ranks + to);
  }
  MPI_Alltoallv(out, out_counts, out_places, MPI_BYTE, in, in_counts, in_places, MPI_BYTE, MPI_COMM_WORLD);
  for (int of = 0; of < ranks; ++of) {
    CheckFilled(in + in_places[of], in_counts[of], of * ranks + rank);
  }
  free(out);
  free(in);
}

static void Broadcasts(int bytes) {
  for (int root = 0; root < ranks; ++root) {
    Byte* all = rank == root ? NewFilled(bytes, root) : NewBuffer(bytes);
    MPI_Bcast(all, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    CheckFilled(all, bytes, root);
    free(all);
  }
}

int main(int argc, char** argv) {
  const int sizes[] = {1, 1000, 65536, 1 << 20};
  MPI_Init(&argc, &argv);
  rank = RankIn(MPI_COMM_WORLD);
  ranks = SizeOf(MPI_COMM_WORLD);
  CHECK(ranks <= 8);
  for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); ++at) {
    Broadcasts(sizes[at]);
    Reductions(sizes[at]);
    ReduceScatters(sizes[at]);
    Gathers(sizes[at]);
    Scatters(sizes[at]);
    AllToAll(sizes[at]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return Finish();
}
