#include "client/c/chain.h"

#include <type_traits>
#include <variant>

#include "base/ndk/op_flags.h"
#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::RemoteMemory;
using rnicd::RemoteToken;
using rnicd::Sges;
using rnicd::VirtualAddress;
using rnicd::WorkRequest;
using rnicd::c::CheckGiven;
using rnicd::c::Run;

namespace rnicd::c {

ReusedRequests::Draft::Draft(ReusedRequests& owner) : owner_(owner) {
  if (owner_.requests_.size() == owner_.count_) {
    owner_.requests_.emplace_back();
  }
  if (owner_.kept_.size() == owner_.count_) {
    owner_.kept_.emplace_back();
  }
}

Sges ReusedRequests::Draft::SgesOf(std::span<const rnicd_sge> sges) {
  Sges list = std::visit(
      [](auto& before) {
        if constexpr (requires { before.sges; }) {
          return std::move(before.sges);
        } else {
          return Sges();
        }
      },
      owner_.requests_[owner_.count_].operation);
  list.clear();
  for (const rnicd_sge& sge : sges) {
    list.push_back(Sge::At(VirtualAddress{sge.address}, sge.length, LocalToken{sge.token}));
  }
  return list;
}

Sges ReusedRequests::Draft::InlineSgesOf(std::span<const std::byte> bytes) {
  Sges list = SgesOf({});
  if (!bytes.empty()) {
    std::vector<std::byte>& kept = owner_.kept_[owner_.count_].bytes;
    kept.assign(bytes.begin(), bytes.end());
    list.push_back(Sge::Inline(kept));
  }
  return list;
}

std::span<const uint64_t> ReusedRequests::Draft::PagesOf(std::span<const uint64_t> pages) {
  std::vector<uint64_t>& kept = owner_.kept_[owner_.count_].pages;
  kept.assign(pages.begin(), pages.end());
  return kept;
}

void ReusedRequests::Draft::Add(WorkRequest::Operation operation, uint32_t flags, uint64_t context) {
  WorkRequest& request = owner_.requests_[owner_.count_];
  request.request_context = context;
  request.flags = flags;
  request.operation = std::move(operation);
  ++owner_.count_;
}

namespace {

using Draft = ReusedRequests::Draft;

// Adds a request with SGEs; `make` returns its operation.
template <typename Make>
int AddWithSges(rnicd_chain* chain, const rnicd_sge* sges, uint32_t count, uint32_t flags, uint64_t context,
                const Make& make) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain));
    RNICD_RETURN_IF_ERROR(count == 0 ? absl::OkStatus() : CheckGiven("sges", sges));
    Draft draft(chain->requests);
    draft.Add(make(draft.SgesOf(std::span(sges, count))), flags, context);
    return absl::OkStatus();
  });
}

// The same with an inline payload.
template <typename Make>
int AddInline(rnicd_chain* chain, const void* bytes, size_t length, uint32_t flags, uint64_t context,
              const Make& make) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain));
    RNICD_RETURN_IF_ERROR(length == 0 ? absl::OkStatus() : CheckGiven("bytes", bytes));
    Draft draft(chain->requests);
    draft.Add(make(draft.InlineSgesOf(std::span(static_cast<const std::byte*>(bytes), length))), flags | kOpFlagInline,
              context);
    return absl::OkStatus();
  });
}

auto SendOf() {
  return [](Sges sges) { return WorkRequest::Send{.sges = std::move(sges)}; };
}
auto SendAndInvalidateOf(uint32_t token) {
  return [token](Sges sges) {
    return WorkRequest::SendAndInvalidate{.sges = std::move(sges), .token = RemoteToken{token}};
  };
}
auto WriteOf(uint64_t address, uint32_t token) {
  return [address, token](Sges sges) {
    return WorkRequest::Write{.sges = std::move(sges), .remote = {VirtualAddress{address}, RemoteToken{token}}};
  };
}

}  // namespace
}  // namespace rnicd::c

int rnicd_create_chain(rnicd_chain** chain) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain));
    *chain = std::make_unique<rnicd_chain>().release();
    return absl::OkStatus();
  });
}

int rnicd_reset_chain(rnicd_chain* chain) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain));
    chain->requests.Clear();
    return absl::OkStatus();
  });
}

int rnicd_close_chain(rnicd_chain* chain) {
  const std::unique_ptr<rnicd_chain> freed(chain);
  return 0;
}

uint32_t rnicd_chain_length(const rnicd_chain* chain) {
  return chain != nullptr ? static_cast<uint32_t>(chain->requests.all().size()) : 0;
}

uint32_t rnicd_chain_posted(const rnicd_chain* chain) {
  return chain != nullptr ? chain->requests.outcome().posted : 0;
}

uint32_t rnicd_chain_token(const rnicd_chain* chain, uint32_t index) {
  return chain != nullptr ? chain->requests.outcome().TokenOf(index).value : 0;
}

int rnicd_chain_send(rnicd_chain* chain, const rnicd_sge* sges, uint32_t sge_count, uint32_t flags, uint64_t context) {
  return rnicd::c::AddWithSges(chain, sges, sge_count, flags, context, rnicd::c::SendOf());
}

int rnicd_chain_send_inline(rnicd_chain* chain, const void* bytes, size_t length, uint32_t flags, uint64_t context) {
  return rnicd::c::AddInline(chain, bytes, length, flags, context, rnicd::c::SendOf());
}

int rnicd_chain_send_and_invalidate(rnicd_chain* chain, const rnicd_sge* sges, uint32_t sge_count, uint32_t token,
                                    uint32_t flags, uint64_t context) {
  return rnicd::c::AddWithSges(chain, sges, sge_count, flags, context, rnicd::c::SendAndInvalidateOf(token));
}

int rnicd_chain_send_inline_and_invalidate(rnicd_chain* chain, const void* bytes, size_t length, uint32_t token,
                                           uint32_t flags, uint64_t context) {
  return rnicd::c::AddInline(chain, bytes, length, flags, context, rnicd::c::SendAndInvalidateOf(token));
}

int rnicd_chain_receive(rnicd_chain* chain, const rnicd_sge* sges, uint32_t sge_count, uint64_t context) {
  return rnicd::c::AddWithSges(chain, sges, sge_count, 0, context,
                               [](Sges list) { return WorkRequest::Receive{.sges = std::move(list)}; });
}

int rnicd_chain_read(rnicd_chain* chain, const rnicd_sge* sges, uint32_t sge_count, uint64_t remote_address,
                     uint32_t remote_token, uint32_t flags, uint64_t context) {
  const RemoteMemory remote{.address = VirtualAddress{remote_address}, .token = RemoteToken{remote_token}};
  return rnicd::c::AddWithSges(chain, sges, sge_count, flags, context,
                               [&](Sges list) { return WorkRequest::Read{.sges = std::move(list), .remote = remote}; });
}

int rnicd_chain_write(rnicd_chain* chain, const rnicd_sge* sges, uint32_t sge_count, uint64_t remote_address,
                      uint32_t remote_token, uint32_t flags, uint64_t context) {
  return rnicd::c::AddWithSges(chain, sges, sge_count, flags, context, rnicd::c::WriteOf(remote_address, remote_token));
}

int rnicd_chain_write_inline(rnicd_chain* chain, const void* bytes, size_t length, uint64_t remote_address,
                             uint32_t remote_token, uint32_t flags, uint64_t context) {
  return rnicd::c::AddInline(chain, bytes, length, flags, context, rnicd::c::WriteOf(remote_address, remote_token));
}

int rnicd_chain_fast_register(rnicd_chain* chain, const rnicd_fast_mr* mr, const rnicd_pages* pages, uint32_t flags,
                              uint64_t context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain, "mr", mr));
    RNICD_ASSIGN_OR_RETURN(const rnicd_pages own, rnicd::c::Take(pages, "pages"));
    RNICD_RETURN_IF_ERROR(own.page_count == 0 ? absl::OkStatus() : CheckGiven("pages.pages", own.pages));
    rnicd::c::Draft draft(chain->requests);
    draft.Add(WorkRequest::FastRegister{.region = mr->object.id(),
                                        .pages = draft.PagesOf(std::span(own.pages, own.page_count)),
                                        .fbo = own.fbo,
                                        .length = own.length,
                                        .base_address = VirtualAddress{own.address}},
              flags, context);
    return absl::OkStatus();
  });
}

int rnicd_chain_invalidate_fast_mr(rnicd_chain* chain, const rnicd_fast_mr* mr, uint32_t flags, uint64_t context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain, "mr", mr));
    rnicd::c::Draft(chain->requests).Add(WorkRequest::Invalidate{.target = mr->object.id()}, flags, context);
    return absl::OkStatus();
  });
}

int rnicd_chain_bind(rnicd_chain* chain, const rnicd_mr* mr, const rnicd_mw* mw, uint64_t address, uint64_t length,
                     uint32_t flags, uint64_t context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain, "mr", mr, "mw", mw));
    rnicd::c::Draft(chain->requests)
        .Add(WorkRequest::Bind{.region = mr->object->id(),
                               .window = mw->object.id(),
                               .address = VirtualAddress{address},
                               .length = length},
             flags, context);
    return absl::OkStatus();
  });
}

int rnicd_chain_invalidate_mw(rnicd_chain* chain, const rnicd_mw* mw, uint32_t flags, uint64_t context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("chain", chain, "mw", mw));
    rnicd::c::Draft(chain->requests).Add(WorkRequest::Invalidate{.target = mw->object.id()}, flags, context);
    return absl::OkStatus();
  });
}
