#include <fcntl.h>
#include <infiniband/verbs.h>

#include <cerrno>

#include "provider/verbs/card/kernel_cards.h"
#include "provider/verbs/card/verbs_api.h"

namespace rnicd::provider {
namespace {

// False on failure, with errno set.
bool MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

// Most calls return a positive errno; ibv_close_device(3) returns -1 with errno, and some drivers return a negative
// errno.
int ErrorOf(int result) {
  if (result >= 0) {
    return result;
  }
  if (result < -1) {
    return -result;
  }
  return errno != 0 ? errno : EIO;
}

class RdmaCoreImplementation final : public VerbsApi {
 public:
  CardList& cards() override { return cards_; }

  ibv_context* Open(const CardId& card) override {
    for (ibv_device* device : DeviceList()) {
      const CardId found = KernelCards::IdOf(*device);
      if (found.name == card.name && (card.instance == 0 || found.instance == card.instance)) {
        return OpenDevice(device);
      }
    }
    errno = ENODEV;
    return nullptr;
  }

  int Close(ibv_context* context) override { return ErrorOf(ibv_close_device(context)); }

  int QueryDevice(ibv_context* context, ibv_device_attr& attributes) override {
    return ErrorOf(ibv_query_device(context, &attributes));
  }

  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr& attributes) override {
    return ErrorOf(ibv_query_port(context, port, &attributes));
  }

  std::vector<GidEntry> QueryGids(ibv_context* context, uint8_t port) override {
    // The call returns the entries of all ports at once, and fails if the table is too small for all of them.
    ibv_device_attr device = {};
    if (ibv_query_device(context, &device) != 0) {
      return {};
    }
    size_t room = 0;
    for (int number = 1; number <= device.phys_port_cnt; ++number) {
      ibv_port_attr attributes = {};
      if (ibv_query_port(context, static_cast<uint8_t>(number), &attributes) == 0 && attributes.gid_tbl_len > 0) {
        room += static_cast<size_t>(attributes.gid_tbl_len);
      }
    }
    if (room == 0) {
      return {};
    }
    std::vector<ibv_gid_entry> table(room);
    const ssize_t count = ibv_query_gid_table(context, table.data(), table.size(), 0);
    table.resize(count < 0 ? 0 : static_cast<size_t>(count));
    std::vector<GidEntry> gids;
    for (const ibv_gid_entry& entry : table) {
      if (entry.port_num == port) {
        gids.push_back({.gid = entry.gid, .index = entry.gid_index, .type = entry.gid_type});
      }
    }
    return gids;
  }

  int NextAsyncEvent(ibv_context* context, ibv_async_event& event) override {
    errno = 0;
    if (ibv_get_async_event(context, &event) != 0) {
      return errno != 0 ? errno : EIO;
    }
    // Destroying an object waits until its events are acknowledged, so acknowledge at once.
    ibv_ack_async_event(&event);
    return 0;
  }

  ibv_pd* AllocPd(ibv_context* context) override { return ibv_alloc_pd(context); }
  int DeallocPd(ibv_pd* pd) override { return ErrorOf(ibv_dealloc_pd(pd)); }

  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) override {
    return ibv_reg_mr_iova(pd, address, length, iova, access);
  }
  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int file, int access) override {
    return ibv_reg_dmabuf_mr(pd, offset, length, iova, file, access);
  }
  int DeregMr(ibv_mr* mr) override { return ErrorOf(ibv_dereg_mr(mr)); }

  ibv_mw* AllocMw(ibv_pd* pd) override { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); }
  int DeallocMw(ibv_mw* mw) override { return ErrorOf(ibv_dealloc_mw(mw)); }

  ibv_comp_channel* CreateChannel(ibv_context* context) override {
    ibv_comp_channel* const channel = ibv_create_comp_channel(context);
    if (channel != nullptr && !MakeNonBlocking(channel->fd)) {
      const int error = errno;
      ibv_destroy_comp_channel(channel);
      errno = error;
      return nullptr;
    }
    return channel;
  }
  int DestroyChannel(ibv_comp_channel* channel) override { return ErrorOf(ibv_destroy_comp_channel(channel)); }

  ibv_cq* NextCqEvent(ibv_comp_channel* channel) override {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    if (ibv_get_cq_event(channel, &cq, &cq_context) != 0) {
      return nullptr;
    }
    ibv_ack_cq_events(cq, 1);
    return cq;
  }

  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) override {
    return ibv_create_cq(context, entries, nullptr, channel, 0);
  }
  int DestroyCq(ibv_cq* cq) override { return ErrorOf(ibv_destroy_cq(cq)); }
  int ArmCq(ibv_cq* cq) override { return ErrorOf(ibv_req_notify_cq(cq, 0)); }
  int PollCq(ibv_cq* cq, int max, ibv_wc* completions) override { return ibv_poll_cq(cq, max, completions); }

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) override { return ibv_create_qp(pd, &attributes); }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) override {
    return ErrorOf(ibv_modify_qp(qp, &attributes, mask));
  }
  int QueryQpState(ibv_qp* qp, ibv_qp_state& state) override {
    ibv_qp_attr attributes = {};
    ibv_qp_init_attr init = {};
    const int error = ErrorOf(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init));
    if (error == 0) {
      state = attributes.qp_state;
    }
    return error;
  }
  int DestroyQp(ibv_qp* qp) override { return ErrorOf(ibv_destroy_qp(qp)); }
  int PostSend(ibv_qp* qp, ibv_send_wr& request) override {
    ibv_send_wr* refused = nullptr;
    return ErrorOf(ibv_post_send(qp, &request, &refused));
  }
  int PostRecv(ibv_qp* qp, ibv_recv_wr& request) override {
    ibv_recv_wr* refused = nullptr;
    return ErrorOf(ibv_post_recv(qp, &request, &refused));
  }

 private:
  static ibv_context* OpenDevice(ibv_device* device) {
    errno = 0;
    ibv_context* const context = ibv_open_device(device);
    if (context == nullptr) {
      // A missing device file: the card was removed between the listing and the opening.
      errno = errno == ENOENT || errno == ENXIO || errno == 0 ? ENODEV : errno;
      return nullptr;
    }
    if (!MakeNonBlocking(context->async_fd)) {
      const int error = errno;
      ibv_close_device(context);
      errno = error;
      return nullptr;
    }
    return context;
  }

  KernelCards cards_;
};

}  // namespace

VerbsApi& RdmaCore() {
  static RdmaCoreImplementation api;
  return api;
}

}  // namespace rnicd::provider
