#include "tests/bench/ring_user.h"

#include "base/ndk/access_rights.h"
#include "base/ndk/op_flags.h"
#include "client/cpp/session/connection.h"
#include "tests/bench/ring_turns.h"

namespace rnicd::bench {
namespace {

constexpr uint64_t kPage = 4096;
constexpr VirtualAddress kBase{uint64_t{1} << 32};
// Regions of one call, and requests of one chain, while live regions are added. More do not fit the payload area.
constexpr size_t kBatch = 250;
constexpr std::chrono::seconds kWaitMax{10};
RNICD_METHOD(MemoryService, BatchInitializeFastRegisterMr);
constexpr FastRegionOptions kFastRegion{.max_pages = 1, .remote_access = true};

}  // namespace

RingUser::RingUser(const std::string& socket_dir, DataPath path, std::chrono::microseconds spin)
    : client_(Must(Client::Connect({.socket_dir = socket_dir, .label = "bench", .data_path = path, .spin_max = spin}))),
      memory_(Must(Memory::Allocate(client_, {.size = 1 << 20}))),
      mapping_(Must(LogicalMapping::Build(memory_))),
      region_(Must(MemoryRegion::Register(memory_, kMrFlagRemoteWrite))),
      small_(Must(MemoryRegion::Register(memory_, memory_.bytes().first(kPage), kMrFlagRemoteWrite))),
      queue_(Must(CompletionQueue::Create(client_, 1024))),
      pair_(Must(QueuePair::Create(queue_, queue_, {.initiator_queue_depth = 1024}))),
      single_(Must(FastRegion::Create(client_, kFastRegion))) {
  Must(pair_.Connect(pair_.address()));
  for (int index = 0; index < kRingChain; ++index) {
    chain_.push_back(Must(FastRegion::Create(client_, kFastRegion)));
  }
}

void RingUser::FastRegisterAndPoll(int round) {
  WorkChain chain;
  Add(round, single_, 0, &chain);
  Post(chain);
  AwaitCompletion();
}

void RingUser::PostChain(int round) {
  WorkChain chain;
  for (const FastRegion& region : chain_) {
    Add(round, region, kOpFlagSilentSuccess, &chain);
  }
  Post(chain);
}

void RingUser::AddWrite(uint32_t flags, WorkChain* chain) const {
  chain->Write(
      {Sge::Of(memory_.bytes().first(64), region_.local_token())},
      {.address = {reinterpret_cast<uintptr_t>(memory_.bytes().data()) + kPage}, .token = region_.remote_token()},
      {.flags = flags});
}

void RingUser::WriteAndPoll() {
  WorkChain chain;
  AddWrite(0, &chain);
  Post(chain);
  AwaitCompletion();
}

void RingUser::WriteWithoutOutcomeAndPoll() {
  if (one_write_.empty()) {
    AddWrite(0, &one_write_);
  }
  Must(pair_.PostWithoutOutcome(one_write_));
  if (Must(queue_.PollFor(polled_, kWaitMax)) != 1 || !polled_.front().ok()) {
    Fail(absl::InternalError("a request has failed, or not completed"));
  }
}

void RingUser::WriteStream(const Stream& stream) {
  WorkChain silent;
  WorkChain last;
  for (int index = 1; index <= stream.chain; ++index) {
    AddWrite(kOpFlagSilentSuccess, &silent);
    AddWrite(stream.silent && index < stream.chain ? kOpFlagSilentSuccess : 0, &last);
  }
  for (int posted = 0, chains = 0; posted < stream.count; posted += stream.chain, ++chains) {
    while (static_cast<int>(pair_.Outstanding().initiator) > stream.outstanding - stream.chain) {
      Must(queue_.PollFor(polled_, kWaitMax));
    }
    Must(pair_.PostWithoutOutcome(stream.silent && chains % 16 != 15 ? silent : last));
  }
  while (pair_.Outstanding().initiator != 0) {
    Must(queue_.PollFor(polled_, kWaitMax));
  }
}

void RingUser::RegisterAndDeregister() {
  RingPath& rings = client_.connection()->rings();
  Must(*rings.Deregister(small_.id()));
  const MdlEntry entry = Must(memory_.Entry(memory_.bytes().first(kPage)));
  Must(rings.Register(small_.id(), {&entry, 1}, kPage, kMrFlagRemoteWrite)->status());
}

void RingUser::GetRemoteToken() { Must(client_.connection()->rings().GetRemoteToken(region_.id())->status()); }

void RingUser::GrowLiveRegions(size_t count) {
  Connection& connection = *client_.connection();
  const uint64_t domain = Must(connection.ProtectionDomain()).value;
  while (live_.size() < count) {
    v1::BatchCreateMrRequest creates;
    for (size_t index = 0; index < kBatch; ++index) {
      v1::CreateMrRequest* const create = creates.add_items();
      create->set_pd_id(domain);
      create->set_fast_register(true);
    }
    const auto created = Must(connection.Call(kBatchCreateMr, creates));
    v1::BatchInitializeFastRegisterMrRequest initializes;
    for (const v1::CreateMrOutcome& outcome : created.outcomes()) {
      live_.push_back(MemoryRegionId{outcome.response().mr_id()});
      v1::InitializeFastRegisterMrRequest* const initialize = initializes.add_items();
      initialize->set_mr_id(live_.back().value);
      initialize->set_adapter_page_count(1);
      initialize->set_remote_access(true);
    }
    Must(connection.Call(kBatchInitializeFastRegisterMr, initializes).status());
    std::vector<WorkRequest> chain;
    for (size_t index = live_.size() - kBatch; index < live_.size(); ++index) {
      chain.push_back(Registration(live_[index], kOpFlagSilentSuccess));
    }
    PostRequests(chain);
  }
}

void RingUser::RegisterAgainAndPoll() {
  const MemoryRegionId region = live_[random_() % live_.size()];
  const WorkRequest chain[] = {{.flags = kOpFlagSilentSuccess, .operation = WorkRequest::Invalidate{.target = region}},
                               Registration(region, 0)};
  PostRequests(chain);
  AwaitCompletion();
}

void RingUser::Add(int round, const FastRegion& region, uint32_t flags, WorkChain* chain) const {
  if (round % 2 == 0) {
    chain->FastRegister(region, {.pages = {mapping_.pages().front()}, .length = kPage, .base_address = kBase},
                        {.flags = flags | kOpFlagRemoteWrite});
  } else {
    chain->Invalidate(region, {.flags = flags});
  }
}

WorkRequest RingUser::Registration(MemoryRegionId region, uint32_t flags) const {
  return {.flags = flags | kOpFlagRemoteWrite,
          .operation = WorkRequest::FastRegister{
              .region = region, .pages = {&mapping_.pages().front().value, 1}, .length = kPage, .base_address = kBase}};
}

void RingUser::Post(const WorkChain& chain) { Must(Must(pair_.Post(chain)).failure); }

// Without a WorkChain, which names regions by their objects.
void RingUser::PostRequests(std::span<const WorkRequest> requests) {
  Must(Must(*client_.connection()->rings().Post(pair_.id(), requests)).failure);
}

void RingUser::AwaitCompletion() {
  const std::vector<Completion> completions = Must(queue_.PollFor(16, kWaitMax));
  if (completions.size() != 1 || !completions.front().ok()) {
    Fail(absl::InternalError("a request has failed, or not completed"));
  }
}

}  // namespace rnicd::bench
