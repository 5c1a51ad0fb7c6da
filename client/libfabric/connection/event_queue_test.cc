#include "client/libfabric/connection/event_queue.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "client/libfabric/connection/connection_fixture.h"

namespace rnicd::fi {
namespace {

constexpr ssize_t kEntryBytes = sizeof(fi_eq_entry);
constexpr ssize_t kHeaderBytesOfEvent = sizeof(fi_eq_cm_entry);

// Counts how often it was ready, and does nothing about it.
struct CountingWatch final : Watched {
  void OnReady() override { ++times; }
  int times = 0;
};

// A session that turns out to have ended.
struct EndingSession final : Watched {
  EndingSession(EventQueue& its_queue, fid& its_endpoint) : queue(its_queue), endpoint(its_endpoint) {}
  void OnReady() override {
    queue.Unwatch(descriptor.get());
    queue.ReportEnd(endpoint);
  }
  EventQueue& queue;
  fid& endpoint;
  const UniqueFd descriptor = UniqueFd(eventfd(1, EFD_CLOEXEC));
};

UniqueFd ReadyDescriptor() { return UniqueFd(eventfd(1, EFD_CLOEXEC)); }

TEST(FiEventQueue, ReadsWhatTheProgramWroteAfterPeekingAtIt) {
  Queue queue;
  fi_eq_entry entry = {.fid = &queue.eq->fid, .context = &queue, .data = 5};
  ASSERT_EQ(fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0), kEntryBytes);
  for (const uint64_t flags : {uint64_t{FI_PEEK}, uint64_t{0}}) {
    fi_eq_entry read = {};
    uint32_t event = 99;
    ASSERT_EQ(fi_eq_read(queue.eq, &event, &read, sizeof(read), flags), kEntryBytes);
    EXPECT_EQ(event, FI_NOTIFY);
    EXPECT_EQ(read.data, 5U);
  }
  EXPECT_EQ(queue.Read().result, -FI_EAGAIN);
}

TEST(FiEventQueue, IsReadableExactlyWhileAnEventIsQueued) {
  Queue queue;
  EXPECT_FALSE(queue.Readable());
  fi_eq_entry entry = {};
  fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  EXPECT_EQ((*queue).TryWait(), -FI_EAGAIN);
  queue.Read();
  EXPECT_TRUE(queue.Readable());
  EXPECT_EQ(fi_eq_read(queue.eq, nullptr, &entry, sizeof(entry), FI_PEEK), kEntryBytes);
  EXPECT_TRUE(queue.Readable());
  queue.Read();
  EXPECT_FALSE(queue.Readable());
  EXPECT_EQ((*queue).TryWait(), 0);
}

TEST(FiEventQueue, ABufferThatIsTooSmallLosesNothing) {
  Queue queue;
  FakeEndpoint endpoint("e");
  fi_eq_entry entry = {};
  fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  EXPECT_EQ(fi_eq_read(queue.eq, nullptr, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
  EXPECT_EQ(fi_eq_read(queue.eq, nullptr, &entry, sizeof(entry), 0), kEntryBytes);
  (*queue).Report(FI_CONNECTED, endpoint.Fid(), BytesOf("data"));
  EXPECT_EQ(fi_eq_read(queue.eq, nullptr, &entry, kHeaderBytesOfEvent - 1, 0), -FI_ETOOSMALL);
  EXPECT_EQ(queue.Read().data, "data");
}

TEST(FiEventQueue, PrivateDataBeyondTheBufferIsCutOff) {
  Queue queue;
  FakeEndpoint endpoint("e");
  (*queue).Report(FI_CONNECTED, endpoint.Fid(), BytesOf("data"));
  std::array<std::byte, kHeaderBytesOfEvent + 2> buffer;
  EXPECT_EQ(fi_eq_read(queue.eq, nullptr, buffer.data(), buffer.size(), 0), kHeaderBytesOfEvent + 2);
  EXPECT_EQ(TextOf(std::span(buffer).subspan(kHeaderBytesOfEvent)), "da");
}

TEST(FiEventQueue, AnErrorIsReadByReaderrAlone) {
  Queue queue;
  FakeEndpoint endpoint("e");
  fi_eq_err_entry error = {};
  EXPECT_EQ(fi_eq_readerr(queue.eq, &error, 0), -FI_EAGAIN);
  (*queue).ReportError(endpoint.Fid(), FI_ECONNREFUSED, BytesOf("why"));
  (*queue).Report(FI_SHUTDOWN, endpoint.Fid());
  EXPECT_EQ(fi_eq_sread(queue.eq, nullptr, nullptr, 0, -1, 0), -FI_EAVAIL);
  EXPECT_EQ(fi_eq_readerr(queue.eq, &error, FI_PEEK), static_cast<ssize_t>(sizeof(error)));
  error = {};
  EXPECT_EQ(fi_eq_readerr(queue.eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
  EXPECT_EQ(error.err, FI_ECONNREFUSED);
  EXPECT_EQ(error.fid, &endpoint.Fid());
  EXPECT_STREQ(fi_eq_strerror(queue.eq, error.prov_errno, error.err_data, nullptr, 0), "Connection refused");
  EXPECT_EQ(fi_eq_readerr(queue.eq, &error, 0), -FI_EAGAIN);
  // Until the next error the data stay where they are.
  EXPECT_EQ(TextOf({static_cast<std::byte*>(error.err_data), error.err_data_size}), "why");
  EXPECT_EQ(queue.Read().event, FI_SHUTDOWN);
}

TEST(FiEventQueue, TheReadThatNoticesASessionsEndDoesNotReportItButTheNextDoes) {
  Queue queue;
  FakeEndpoint endpoint("e");
  EndingSession session(*queue, endpoint.Fid());
  {
    MutexLock lock((*queue).connection_mutex());
    ASSERT_EQ((*queue).Watch(session.descriptor.get(), EPOLLIN, session), 0);
  }
  EXPECT_EQ(queue.Read().result, -FI_EAGAIN);
  EXPECT_TRUE(queue.Readable());
  EXPECT_EQ(queue.Read().event, FI_SHUTDOWN);
  EXPECT_FALSE(queue.Readable());
}

TEST(FiEventQueue, ErrorDataGoToTheProgramsBufferIfItHasOne) {
  Queue queue;
  FakeEndpoint endpoint("e");
  (*queue).ReportError(endpoint.Fid(), FI_ECONNREFUSED, BytesOf("why"));
  std::array<char, 2> buffer = {};
  fi_eq_err_entry error = {};
  error.err_data = buffer.data();
  error.err_data_size = buffer.size();
  EXPECT_EQ(fi_eq_readerr(queue.eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
  EXPECT_EQ(error.err_data, buffer.data());
  EXPECT_EQ(error.err_data_size, 2U);
  EXPECT_EQ(std::string(buffer.data(), 2), "wh");
}

TEST(FiEventQueue, ForgetsEventsOfAnObjectAndNoOther) {
  Queue queue;
  FakeEndpoint closed("closed");
  FakeEndpoint open("open");
  (*queue).Report(FI_CONNREQ, closed.Fid(), {}, OwnedInfo(fi_allocinfo()));
  (*queue).Report(FI_CONNECTED, open.Fid());
  (*queue).ReportError(closed.Fid(), EPROTO, BytesOf("x"));
  (*queue).Forget(closed.Fid());
  EXPECT_EQ(queue.Read().of, &open.Fid());
  EXPECT_EQ(queue.Read().result, -FI_EAGAIN);
  EXPECT_FALSE(queue.Readable());
}

TEST(FiEventQueue, WaitsNoLongerThanItMay) {
  Queue queue;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_sread(queue.eq, nullptr, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_eq_sread(queue.eq, nullptr, &entry, sizeof(entry), 1, 0), -FI_EAGAIN);
}

// How libfabric's RxM waits in a thread of its own, and reads under its lock.
TEST(FiEventQueue, AnEventWakesEachThreadThatWaitsAndStaysForOne) {
  Queue queue;
  const auto wait = [&queue] {
    fi_eq_entry entry = {};
    EXPECT_EQ(fi_eq_sread(queue.eq, nullptr, &entry, sizeof(entry), -1, FI_PEEK), kEntryBytes);
  };
  std::thread first(wait);
  std::thread second(wait);
  fi_eq_entry entry = {};
  fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  first.join();
  second.join();
  EXPECT_EQ(queue.Read().event, FI_NOTIFY);
}

TEST(FiEventQueue, WaitObjectsAreNoneAndADescriptor) {
  fid_fabric fabric = {};
  fid_eq* eq = nullptr;
  fi_eq_attr attr = {};
  for (const fi_wait_obj other : {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD, FI_WAIT_POLLFD}) {
    attr.wait_obj = other;
    EXPECT_EQ(EventQueue::Open(&fabric, &attr, &eq, nullptr), -FI_ENOSYS);
  }
  Queue unspecified(FI_WAIT_UNSPEC);
  fi_wait_obj kind = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&unspecified.eq->fid, FI_GETWAITOBJ, &kind), 0);
  EXPECT_EQ(kind, FI_WAIT_FD);
  EXPECT_FALSE(unspecified.Readable());
  Queue none(FI_WAIT_NONE);
  int descriptor = -1;
  EXPECT_EQ(fi_control(&none.eq->fid, FI_GETWAIT, &descriptor), -FI_ENODATA);
  EXPECT_EQ(fi_eq_sread(none.eq, nullptr, nullptr, 0, 0, 0), -FI_ENOSYS);
}

TEST(FiEventQueue, TakesNoEventsOfTheProgramWithoutFiWrite) {
  Queue queue(FI_WAIT_FD, 0);
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_write(queue.eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EINVAL);
}

TEST(FiEventQueue, DoesNotCloseWhileSomethingIsBound) {
  Queue queue;
  (*queue).Bind();
  EXPECT_EQ(fi_close(&queue.eq->fid), -FI_EBUSY);
  (*queue).Unbind();
}

TEST(FiEventQueue, CallsWhatItWatchesUntilUnwatch) {
  Queue queue;
  CountingWatch watched;
  const UniqueFd descriptor = ReadyDescriptor();
  {
    MutexLock lock((*queue).connection_mutex());
    ASSERT_EQ((*queue).Watch(descriptor.get(), EPOLLIN, watched), 0);
  }
  EXPECT_TRUE(queue.Readable());
  EXPECT_EQ(queue.Read().result, -FI_EAGAIN);
  EXPECT_EQ(watched.times, 1);
  {
    MutexLock lock((*queue).connection_mutex());
    (*queue).Unwatch(descriptor.get());
  }
  EXPECT_FALSE(queue.Readable());
  (*queue).Progress();
  EXPECT_EQ(watched.times, 1);
}

// What a listener without descriptors does: nobody may spin on it, and it must go on by itself.
TEST(FiEventQueue, TriesWhatHasPausedAtTheNextReadAndWhenAnotherEnds) {
  struct PausingWatch final : Watched {
    PausingWatch(EventQueue& its_queue, int fd) : queue(its_queue), descriptor(fd) {}
    void OnReady() override {
      ++times;
      queue.Pause(descriptor);
    }
    EventQueue& queue;
    int descriptor;
    int times = 0;
  };
  Queue queue;
  const UniqueFd descriptor = ReadyDescriptor();
  const UniqueFd other = ReadyDescriptor();
  PausingWatch pausing(*queue, descriptor.get());
  CountingWatch counting;
  {
    MutexLock lock((*queue).connection_mutex());
    ASSERT_EQ((*queue).Watch(descriptor.get(), EPOLLIN, pausing), 0);
  }
  (*queue).Progress();
  EXPECT_FALSE(queue.Readable());
  (*queue).Progress();
  EXPECT_EQ(pausing.times, 2);
  EXPECT_FALSE(queue.Readable());
  MutexLock lock((*queue).connection_mutex());
  ASSERT_EQ((*queue).Watch(other.get(), EPOLLIN, counting), 0);
  (*queue).Unwatch(other.get());
  EXPECT_TRUE(queue.Readable());
  (*queue).Unwatch(descriptor.get());
}

}  // namespace
}  // namespace rnicd::fi
