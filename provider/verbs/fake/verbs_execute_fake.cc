#include <algorithm>

#include "provider/verbs/fake/verbs_fake.h"
#include "provider/verbs/fake/verbs_records_fake.h"

namespace rnicd::provider {
namespace {

ibv_wc_opcode ReportedOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

uint64_t BytesOf(const std::vector<ibv_sge>& entries) {
  uint64_t bytes = 0;
  for (const ibv_sge& entry : entries) {
    bytes += entry.length;
  }
  return bytes;
}

// True when [start, start + length) lies inside [outer, outer + outer_length).
bool Inside(uint64_t start, uint64_t length, uint64_t outer, uint64_t outer_length) {
  return start >= outer && start - outer <= outer_length && length <= outer_length - (start - outer);
}

// Fields that are undefined in a failed completion get values that expose a reader of them.
ibv_wc FailedCompletion(uint64_t wr_id, ibv_wc_status status) {
  ibv_wc completion = {};
  completion.wr_id = wr_id;
  completion.status = status;
  completion.opcode = static_cast<ibv_wc_opcode>(0x7d);
  completion.byte_len = 0xdededede;
  completion.imm_data = 0xdededede;
  completion.wc_flags = 0xde;
  return completion;
}

}  // namespace

// --- What a card does with a request ---

bool FakeVerbs::KeysAreGood(const ibv_pd* pd, const std::vector<ibv_sge>& entries, bool write) const {
  for (const ibv_sge& entry : entries) {
    const auto good = [&](const auto& row) {
      const FakeRegion& region = row.second->region;
      return region.lkey == entry.lkey && row.second->verbs.pd == pd &&
             Inside(entry.addr, entry.length, region.iova, region.length) &&
             (!write || (region.access & IBV_ACCESS_LOCAL_WRITE) != 0);
    };
    if (entry.length > 0 && std::ranges::none_of(mrs_, good) && !keys.AllowsLocal(pd, entry, write)) {
      return false;
    }
  }
  return true;
}

bool FakeVerbs::Invalidate(const ibv_pd* pd, uint32_t rkey) {
  for (const auto& row : mws_) {
    if (row.second->key == rkey && row.second->verbs.pd == pd) {
      row.second->mr = nullptr;
      row.second->qp = nullptr;
      return true;
    }
  }
  return keys.Remove(pd, rkey);
}

ibv_wc_status FakeVerbs::Bind(Qp& qp, const PostedSend& send) {
  Mw* const mw = Find(mws_, send.mw);
  const Mr* const mr = Find(mrs_, send.bind.mr);
  if (mw == nullptr || mr == nullptr || mw->mr != nullptr || send.mw_rkey != mw->key || mw->verbs.pd != qp.verbs.pd ||
      mr->verbs.pd != qp.verbs.pd) {
    return IBV_WC_MW_BIND_ERR;
  }
  const FakeRegion& region = mr->region;
  const bool writes = (send.bind.mw_access_flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if ((region.access & IBV_ACCESS_MW_BIND) == 0 || (writes && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0) ||
      send.bind.length == 0 || !Inside(send.bind.addr, send.bind.length, region.iova, region.length)) {
    return IBV_WC_MW_BIND_ERR;
  }
  mw->key = (mw->key & ~uint32_t{0xff}) | (send.bind_rkey & 0xff);
  mw->mr = send.bind.mr;
  mw->qp = &qp.verbs;
  return IBV_WC_SUCCESS;
}

ibv_wc_status FakeVerbs::Execute(Qp& qp, const PostedSend& send) {
  switch (send.opcode) {
    case IBV_WR_BIND_MW:
      return Bind(qp, send);
    case IBV_WR_LOCAL_INV:
      return Invalidate(qp.verbs.pd, send.invalidate_rkey) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
    default:
      break;
  }
  if (!KeysAreGood(qp.verbs.pd, send.entries, send.opcode == IBV_WR_RDMA_READ)) {
    return IBV_WC_LOC_QP_OP_ERR;
  }
  const std::optional<ibv_wc_status> written =
      send.opcode == IBV_WR_RDMA_WRITE ? keys.Write(send.rkey, send.remote_addr, send.entries) : std::nullopt;
  return written.value_or(IBV_WC_SUCCESS);
}

bool FakeVerbs::Finish(Qp& qp, ibv_wc_status status) {
  if (qp.sends.empty()) {
    return false;
  }
  const PostedSend send = std::move(qp.sends.front());
  qp.sends.pop_front();
  if (status == IBV_WC_SUCCESS) {
    status = Execute(qp, send);
  }
  ++qp.unreported;
  if (status != IBV_WC_SUCCESS) {
    Push(qp, false, std::exchange(qp.unreported, 0), FailedCompletion(send.wr_id, status));
    Flush(qp);
  } else if (qp.init.sq_sig_all != 0 || (send.send_flags & IBV_SEND_SIGNALED) != 0) {
    ibv_wc completion = {};
    completion.wr_id = send.wr_id;
    completion.opcode = ReportedOpcode(send.opcode);
    completion.byte_len = static_cast<uint32_t>(BytesOf(send.entries) + send.inline_bytes.size());
    Push(qp, false, std::exchange(qp.unreported, 0), completion);
  }
  return true;
}

bool FakeVerbs::FinishReceive(Qp& qp, const FakeArrival& arrival) {
  if (qp.receives.empty() || (qp.state != IBV_QPS_RTR && qp.state != IBV_QPS_RTS)) {
    return false;
  }
  const PostedReceive receive = std::move(qp.receives.front());
  qp.receives.pop_front();
  ibv_wc_status status = arrival.status;
  if (status == IBV_WC_SUCCESS) {
    // The bytes of a write with immediate data do not go to the entries of the receive.
    const bool into_receive = arrival.opcode == IBV_WC_RECV;
    if (into_receive &&
        (arrival.byte_len > BytesOf(receive.entries) || !KeysAreGood(qp.verbs.pd, receive.entries, true))) {
      status = IBV_WC_LOC_QP_OP_ERR;
    } else if (arrival.invalidate.has_value() && !Invalidate(qp.verbs.pd, *arrival.invalidate)) {
      status = IBV_WC_REM_INV_REQ_ERR;
    }
  }
  if (status != IBV_WC_SUCCESS) {
    Push(qp, true, 1, FailedCompletion(receive.wr_id, status));
    Flush(qp);
    return true;
  }
  ibv_wc completion = {};
  completion.wr_id = receive.wr_id;
  completion.opcode = arrival.opcode;
  completion.byte_len = arrival.byte_len;
  completion.wc_flags = arrival.wc_flags;
  completion.imm_data = arrival.invalidate.value_or(arrival.imm_data);
  Push(qp, true, 1, completion);
  return true;
}

void FakeVerbs::Flush(Qp& qp) {
  qp.state = IBV_QPS_ERR;
  while (!qp.sends.empty()) {
    const uint64_t wr_id = qp.sends.front().wr_id;
    qp.sends.pop_front();
    Push(qp, false, 1 + std::exchange(qp.unreported, 0), FailedCompletion(wr_id, IBV_WC_WR_FLUSH_ERR));
  }
  while (!qp.receives.empty()) {
    const uint64_t wr_id = qp.receives.front().wr_id;
    qp.receives.pop_front();
    Push(qp, true, 1, FailedCompletion(wr_id, IBV_WC_WR_FLUSH_ERR));
  }
}

// --- Time, and what a test sees of queue pairs ---

void FakeVerbs::set_automatic(bool automatic) {
  MutexLock lock(mutex_);
  automatic_ = automatic;
}

bool FakeVerbs::Complete(uint32_t qp_num, ibv_wc_status status) {
  MutexLock lock(mutex_);
  Qp* const qp = FindQp(qp_num);
  return qp != nullptr && Finish(*qp, status);
}

size_t FakeVerbs::CompleteAll(uint32_t qp_num) {
  MutexLock lock(mutex_);
  Qp* const qp = FindQp(qp_num);
  const size_t count = qp == nullptr ? 0 : qp->sends.size();
  while (qp != nullptr && Finish(*qp, IBV_WC_SUCCESS)) {
  }
  return count;
}

bool FakeVerbs::Arrive(uint32_t qp_num, const FakeArrival& arrival) {
  MutexLock lock(mutex_);
  Qp* const qp = FindQp(qp_num);
  return qp != nullptr && FinishReceive(*qp, arrival);
}

bool FakeVerbs::Receive(uint32_t qp_num, uint32_t byte_len, unsigned wc_flags, uint32_t imm_data) {
  return Arrive(qp_num, {.byte_len = byte_len, .wc_flags = wc_flags, .imm_data = imm_data});
}

void FakeVerbs::FailQp(uint32_t qp_num) {
  MutexLock lock(mutex_);
  if (Qp* const qp = FindQp(qp_num); qp != nullptr) {
    Flush(*qp);
  }
}

void FakeVerbs::RaiseQpAsync(uint32_t qp_num, ibv_event_type type) {
  MutexLock lock(mutex_);
  if (Qp* const qp = FindQp(qp_num); qp != nullptr) {
    ibv_async_event event = {};
    event.element.qp = &qp->verbs;
    event.event_type = type;
    Raise(*qp->context, event);
  }
}

std::vector<uint32_t> FakeVerbs::qp_nums() const {
  MutexLock lock(mutex_);
  std::vector<uint32_t> numbers;
  for (const auto& row : qps_) {
    numbers.push_back(row.second->verbs.qp_num);
  }
  std::ranges::sort(numbers);
  return numbers;
}

ibv_qp_state FakeVerbs::state(uint32_t qp_num) const {
  MutexLock lock(mutex_);
  const Qp* const qp = FindQp(qp_num);
  return qp == nullptr ? IBV_QPS_UNKNOWN : qp->state;
}

ibv_qp_init_attr FakeVerbs::init_attributes(uint32_t qp_num) const {
  MutexLock lock(mutex_);
  const Qp* const qp = FindQp(qp_num);
  return qp == nullptr ? ibv_qp_init_attr{} : qp->init;
}

std::optional<std::pair<ibv_qp_attr, int>> FakeVerbs::transition(uint32_t qp_num, ibv_qp_state state) const {
  MutexLock lock(mutex_);
  const Qp* const qp = FindQp(qp_num);
  if (qp == nullptr) {
    return std::nullopt;
  }
  const auto found = qp->transitions.find(state);
  return found == qp->transitions.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PostedSend> FakeVerbs::PostedSends(uint32_t qp_num) const {
  MutexLock lock(mutex_);
  const Qp* const qp = FindQp(qp_num);
  return qp == nullptr ? std::vector<PostedSend>{} : std::vector(qp->sends.begin(), qp->sends.end());
}

std::vector<PostedReceive> FakeVerbs::PostedReceives(uint32_t qp_num) const {
  MutexLock lock(mutex_);
  const Qp* const qp = FindQp(qp_num);
  return qp == nullptr ? std::vector<PostedReceive>{} : std::vector(qp->receives.begin(), qp->receives.end());
}

std::vector<PostedSend> FakeVerbs::SendHistory(uint32_t qp_num) const {
  MutexLock lock(mutex_);
  const auto found = history_.find(qp_num);
  return found == history_.end() ? std::vector<PostedSend>{} : found->second;
}

}  // namespace rnicd::provider
