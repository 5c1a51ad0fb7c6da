#include "client/libfabric/info/hint_rules.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>

#include "client/libfabric/info/attributes.h"
#include "client/libfabric/info/info_fixture.h"

namespace rnicd::fi {
namespace {

// Before the registration modes of today.
constexpr uint32_t kOld = FI_VERSION(1, 0);

struct HintCase {
  const char* name;
  void (*set)(fi_info&);
  // Field that is refused; NULL if the hints are satisfied.
  const char* refused = nullptr;
  uint32_t version = kToday;
};

void PrintTo(const HintCase& tested, std::ostream* out) { *out << tested.name; }

// All fit, but for what is set; the daemon's adapter is the first one.
class HintRules : public testing::TestWithParam<HintCase> {};

TEST_P(HintRules, OfferOrNameTheField) {
  const Info hints = AllModes();
  GetParam().set(*hints);
  const auto refusal = CheckHints(Hints(GetParam().version, hints.get()), kName);
  EXPECT_STREQ(refusal ? refusal->field : nullptr, GetParam().refused) << (refusal ? refusal->reason : "");
}

// What RxM 1.17 asks of a core provider for an application with tagged messages.
void AskAsRxm(fi_info& hints) {
  hints.caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints.mode = FI_RX_CQ_DATA | FI_CONTEXT;
  hints.domain_attr->mr_mode = kMrMode;
  hints.domain_attr->threading = FI_THREAD_DOMAIN;
  hints.tx_attr->msg_order = FI_ORDER_SAS;
  hints.rx_attr->msg_order = FI_ORDER_SAS;
  hints.tx_attr->op_flags = FI_TRANSMIT_COMPLETE;
  hints.tx_attr->size = 128;
  hints.rx_attr->size = 128;
}

void SetSource(fi_info& hints, sa_family_t family, size_t bytes) {
  auto* const address = static_cast<sockaddr_in6*>(std::calloc(1, sizeof(sockaddr_in6)));
  address->sin6_family = family;
  hints.src_addr = address;
  hints.src_addrlen = bytes;
}

constexpr HintCase kGeneral[] = {
    {"Nothing", [](fi_info&) {}},
    {"Rxm", AskAsRxm},
    {"RxmWithSharedReceives",
     [](fi_info& hints) {
       AskAsRxm(hints);
       hints.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
     },
     "ep_attr->rx_ctx_cnt"},
    {"AnyEndpoint", [](fi_info& hints) { hints.ep_attr->type = FI_EP_UNSPEC; }},
    {"ReliableDatagrams", [](fi_info& hints) { hints.ep_attr->type = FI_EP_RDM; }, "ep_attr->type"},
    {"AllCaps", [](fi_info& hints) { hints.caps = kCaps; }},
    {"Tagged", [](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED; }, "caps"},
    {"DeviceMemory", [](fi_info& hints) { hints.caps = FI_MSG | FI_HMEM; }, "caps"},
    {"Fences", [](fi_info& hints) { hints.caps = FI_MSG | FI_FENCE; }, "caps"},
    {"ReceiveCapsInTransmit", [](fi_info& hints) { hints.tx_attr->caps = FI_MSG | FI_RECV; }},
    {"MultiReceive", [](fi_info& hints) { hints.rx_attr->caps = FI_MSG | FI_MULTI_RECV; }, "rx_attr->caps"},
    {"IPv6", [](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IN6; }},
    {"InfiniBandAddress", [](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IB; }, "addr_format"},
    {"SourceOfLocalSockets", [](fi_info& hints) { SetSource(hints, AF_UNIX, sizeof(sockaddr_in)); }, "src_addr"},
    {"ShortSource", [](fi_info& hints) { SetSource(hints, AF_INET6, sizeof(sockaddr_in)); }, "src_addr"},
    {"LongSource", [](fi_info& hints) { SetSource(hints, AF_INET, sizeof(sockaddr_in6)); }},
    {"SourceOfAnotherFormat",
     [](fi_info& hints) {
       hints.addr_format = FI_SOCKADDR_IN;
       SetSource(hints, AF_INET6, sizeof(sockaddr_in6));
     },
     "src_addr"},
    {"OwnDomain", [](fi_info& hints) { hints.domain_attr->name = strdup("rnicd"); }},
    {"OtherDomain", [](fi_info& hints) { hints.domain_attr->name = strdup("invalid"); }, "domain_attr->name"},
    {"OtherFabric", [](fi_info& hints) { hints.fabric_attr->name = strdup("invalid"); }, "fabric_attr->name"},
    {"LaterProvider", [](fi_info& hints) { hints.fabric_attr->prov_version = kProviderVersion + 1; },
     "fabric_attr->prov_version"},
    {"OwnProtocol", [](fi_info& hints) { hints.ep_attr->protocol = kProtocol; }},
    {"TcpProtocol", [](fi_info& hints) { hints.ep_attr->protocol = FI_PROTO_SOCK_TCP; }, "ep_attr->protocol"},
};

constexpr HintCase kDomains[] = {
    {"ManualProgress",
     [](fi_info& hints) {
       hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
       hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
     }},
    {"AutomaticData", [](fi_info& hints) { hints.domain_attr->data_progress = FI_PROGRESS_AUTO; }},
    {"AutomaticControl", [](fi_info& hints) { hints.domain_attr->control_progress = FI_PROGRESS_AUTO; },
     "domain_attr->control_progress"},
    {"AnyThreads", [](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_COMPLETION; }},
    {"Counters", [](fi_info& hints) { hints.domain_attr->cntr_cnt = 1; }, "domain_attr->cntr_cnt"},
    {"CountersOfOldInterface",
     [](fi_info& hints) {
       hints.domain_attr->mr_mode = 0;
       hints.domain_attr->cntr_cnt = 1;
     },
     nullptr, kOld},
    {"SharedAddresses", [](fi_info& hints) { hints.domain_attr->caps = FI_SHARED_AV; }, "domain_attr->caps"},
    {"CqDataWithMode", [](fi_info& hints) { hints.domain_attr->cq_data_size = 8; }},
    {"CqDataWithoutMode",
     [](fi_info& hints) {
       hints.mode = FI_CONTEXT;
       hints.domain_attr->cq_data_size = 4;
     },
     "domain_attr->cq_data_size"},
    {"CqDataWithModeOfReceives",
     [](fi_info& hints) {
       hints.mode = FI_CONTEXT;
       hints.rx_attr->mode = FI_RX_CQ_DATA;
       hints.domain_attr->cq_data_size = 4;
     }},
    {"NoLocalRegistration",
     [](fi_info& hints) {
       hints.mode = FI_CONTEXT;
       hints.domain_attr->mr_mode = kMrMode & ~FI_MR_LOCAL;
     },
     "mode"},
    {"MessagesNeedNoKeys",
     [](fi_info& hints) {
       hints.caps = FI_MSG;
       hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
     }},
    {"InitiatorsNeedNoKeys",
     [](fi_info& hints) {
       hints.caps = FI_RMA | FI_WRITE;
       hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
     }},
    {"TargetsNeedKeys",
     [](fi_info& hints) {
       hints.caps = FI_RMA;
       hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
     },
     "domain_attr->mr_mode"},
    {"TargetsMustSayMode",
     [](fi_info& hints) {
       hints.caps = FI_RMA;
       hints.domain_attr->mr_mode = 0;
     },
     "domain_attr->mr_mode"},
    {"Scalable", [](fi_info& hints) { hints.domain_attr->mr_mode = kMrScalable; }, "domain_attr->mr_mode"},
    {"Basic", [](fi_info& hints) { hints.domain_attr->mr_mode = kMrBasic; }},
    {"BasicWithBits", [](fi_info& hints) { hints.domain_attr->mr_mode = kMrBasic | FI_MR_LOCAL; },
     "domain_attr->mr_mode"},
    {"OldUnspecified", [](fi_info& hints) { hints.domain_attr->mr_mode = 0; }, nullptr, kOld},
    {"OldBasic", [](fi_info& hints) { hints.domain_attr->mr_mode = kMrBasic; }, nullptr, kOld},
    {"OldScalable", [](fi_info& hints) { hints.domain_attr->mr_mode = kMrScalable; }, "domain_attr->mr_mode", kOld},
    {"OldWithoutLocal",
     [](fi_info& hints) {
       hints.mode = FI_CONTEXT;
       hints.domain_attr->mr_mode = kMrBasic;
     },
     "mode", kOld},
};

constexpr HintCase kQueues[] = {
    {"LargestQueues",
     [](fi_info& hints) {
       hints.tx_attr->size = kQueueSizeMax;
       hints.rx_attr->size = kQueueSizeMax;
     }},
    {"TransmitQueueTooLarge", [](fi_info& hints) { hints.tx_attr->size = kQueueSizeMax + 1; }, "tx_attr->size"},
    {"ReceiveQueueTooLarge", [](fi_info& hints) { hints.rx_attr->size = kQueueSizeMax + 1; }, "rx_attr->size"},
    {"InjectTooLarge", [](fi_info& hints) { hints.tx_attr->inject_size = kInjectBytesMax + 1; },
     "tx_attr->inject_size"},
    {"BuffersTooMany", [](fi_info& hints) { hints.rx_attr->iov_limit = kBuffersMax + 1; }, "rx_attr->iov_limit"},
    {"RmaBuffersTooMany", [](fi_info& hints) { hints.tx_attr->rma_iov_limit = 2; }, "tx_attr->rma_iov_limit"},
    {"MessageTooLarge", [](fi_info& hints) { hints.ep_attr->max_msg_size = kMessageBytesMax + 1; },
     "ep_attr->max_msg_size"},
    {"SendAfterSend", [](fi_info& hints) { hints.tx_attr->msg_order = FI_ORDER_SAS; }},
    {"WriteAfterRead", [](fi_info& hints) { hints.tx_attr->msg_order = FI_ORDER_WAR; }, "tx_attr->msg_order"},
    {"SendAfterRead", [](fi_info& hints) { hints.rx_attr->msg_order = FI_ORDER_SAR; }, "rx_attr->msg_order"},
    {"WriteAfterReadOfASize", [](fi_info& hints) { hints.ep_attr->max_order_war_size = 1; },
     "ep_attr->max_order_war_size"},
    {"BytesInOrder", [](fi_info& hints) { hints.rx_attr->comp_order = kOrderData; }, "rx_attr->comp_order"},
    {"Delivery", [](fi_info& hints) { hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE; }, "tx_attr->op_flags"},
    {"ScalableEndpoint", [](fi_info& hints) { hints.ep_attr->tx_ctx_cnt = 2; }, "ep_attr->tx_ctx_cnt"},
};

std::string HintCaseName(const testing::TestParamInfo<HintCase>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(General, HintRules, testing::ValuesIn(kGeneral), HintCaseName);
INSTANTIATE_TEST_SUITE_P(Domains, HintRules, testing::ValuesIn(kDomains), HintCaseName);
INSTANTIATE_TEST_SUITE_P(Queues, HintRules, testing::ValuesIn(kQueues), HintCaseName);

TEST(HintRule, SaysWhatWasAskedAndWhatIsOffered) {
  const Info hints = AllModes();
  hints->tx_attr->size = 9000;
  EXPECT_EQ(CheckHints(Hints(kToday, hints.get()), kName)->reason, "9000, but at most 4096");
  hints->tx_attr->size = 0;
  hints->domain_attr->caps = FI_SHARED_AV;
  EXPECT_EQ(CheckHints(Hints(kToday, hints.get()), kName)->reason,
            "0x20000000000000, but only bits of 0x18000000000000");
  hints->domain_attr->caps = 0;
  hints->domain_attr->name = strdup("mlx5_0");
  EXPECT_EQ(CheckHints(Hints(kToday, hints.get()), kName)->reason, "mlx5_0, but only rnicd");
}

TEST(HintRule, NoHintsAreSatisfied) { EXPECT_FALSE(CheckHints(Hints(kToday, nullptr), kName).has_value()); }

TEST(HintRule, MissingPartsAreNoWishes) {
  fi_info hints{};
  EXPECT_FALSE(CheckHints(Hints(kToday, &hints), kName).has_value());
}

}  // namespace
}  // namespace rnicd::fi
