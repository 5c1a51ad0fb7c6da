#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/queue/mapped_queue_fixture_test.h"

namespace rnicd::core {
namespace {

TEST_F(MappedQueueTest, AHoleInItsFileCostsOnlyItsClient) {
  const CreatedMappedCq created = Create(4);
  MappedClient client(owner_.session, created);
  ASSERT_EQ(ftruncate(client.file.get(), 0), -1);
  ASSERT_EQ(fallocate(client.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(created.file_bytes)),
            0);
  Push(created, 1);
  EXPECT_EQ(client.ReadAll(), std::vector<uint64_t>{1});
}

TEST_F(MappedQueueTest, ThePipeAnnouncesWhatIsAskedForAndAFullOneDelaysNothing) {
  const CreatedMappedCq created = Create(4);
  MappedClient client(owner_.session, created);
  const UniqueFd pipe = *queues().Duplicate(created.queue, SharedDescriptor::kPipe);
  char byte = 0;
  Push(created);
  EXPECT_EQ(read(pipe.get(), &byte, 1), -1) << "nobody asked";
  client.ReadAll();
  EXPECT_FALSE(client.reader.PrepareToWait());
  Push(created);
  EXPECT_EQ(read(pipe.get(), &byte, 1), 1);
  for (uint64_t context = 0; context < 100'000; ++context) {
    client.ReadAll();
    Push(created, context);
  }
  EXPECT_EQ(client.reader.status(), 0u);
  EXPECT_EQ(send(pipe.get(), &byte, 1, MSG_NOSIGNAL), -1) << "the client's end only reads";
}

}  // namespace
}  // namespace rnicd::core
