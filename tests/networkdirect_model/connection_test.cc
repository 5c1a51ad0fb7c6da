// Libraries, discovery, and who may connect from outside.

#include "provider/networkdirect/card/completion_loop.h"
#include "tests/networkdirect_model/model_fixture_test.h"

namespace rnicd::provider {
namespace {

TEST(NdLibrary, APathThatIsNotAbsoluteIsRefused) {
  const absl::Status status = NdLibrary::Load("rnicd_networkdirect_model").status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_FAILED)) << status;
}

TEST(NdLibrary, ALibraryThatIsNoneIsRefusedWithItsPath) {
  const std::string path = std::string(RNICD_NETWORKDIRECT_MODEL) + ".missing";
  const absl::Status status = NdLibrary::Load(path).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_FAILED)) << status;
  EXPECT_NE(status.message().find(path), std::string::npos) << status;
}

TEST(NetworkDirectProvider, TheLibraryOfTheOptionsIsLoaded) {
  KernelRandom random;
  const auto provider =
      NetworkDirectProvider::Create({.library = RNICD_NETWORKDIRECT_MODEL}, random, IgnoreAdapterEvents);
  ASSERT_TRUE(provider.ok()) << provider.status();
  const std::vector<AdapterDescription> adapters = (*provider)->ListAdapters();
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[0].name, kModelAdapter);
  EXPECT_EQ(adapters[1].name, kOtherModelAdapter);
  EXPECT_EQ(adapters[0].info.vendor_id, 0x5Eu);
}

TEST(NetworkDirectProvider, WithoutACatalogueThereAreNoCards) {
  KernelRandom random;
  const absl::Status status = NetworkDirectProvider::Create({}, random, IgnoreAdapterEvents).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
}

TEST(NetworkDirectProvider, ACardThatDoesNotAnswerIsLeftOut) {
  LoadedModel model;
  KernelRandom random;
  std::vector<std::string> left_out;
  model.control().FailNext("IND2Adapter::Query", kNdDeviceNotReady, 0, 1);
  const auto provider = NetworkDirectProvider::Create({}, random, {model.source()}, [&](const AdapterEvent& event) {
    EXPECT_EQ(event.kind, AdapterEventKind::kLeftOut);
    left_out.push_back(event.adapter);
  });
  ASSERT_TRUE(provider.ok()) << provider.status();
  EXPECT_EQ((*provider)->ListAdapters().size(), 1u);
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_NE(left_out[0].find("nd-10.83.0.5"), std::string::npos);
  EXPECT_NE(left_out[0].find("ND_DEVICE_NOT_READY"), std::string::npos);
}

// A program on the network that finds the port of a domain.
class Strangers : public OnModel {
 protected:
  // The result of a connection to that port with that private data.
  HRESULT Ask(uint16_t port, const void* data, ULONG bytes) {
    CompletionLoop loop;
    ComPtr<IND2Adapter> adapter;
    EXPECT_EQ(stranger_.source().provider->OpenAdapter(kIidNd2Adapter, kModelCard, adapter.out()), kNdSuccess);
    return AskWith(loop, *adapter, port, data, bytes);
  }

 private:
  static HRESULT AskWith(CompletionLoop& loop, IND2Adapter& adapter, uint16_t port, const void* data, ULONG bytes) {
    HANDLE file = nullptr;
    EXPECT_EQ(adapter.CreateOverlappedFile(&file), kNdSuccess);
    EXPECT_TRUE(loop.Associate(file));
    HRESULT result = kNdSuccess;
    {
      ComPtr<IND2CompletionQueue> queue;
      ComPtr<IND2QueuePair> pair;
      ComPtr<IND2Connector> connector;
      EXPECT_EQ(adapter.CreateCompletionQueue(kIidNd2CompletionQueue, file, 2, 0, 0, queue.out()), kNdSuccess);
      EXPECT_EQ(adapter.CreateQueuePair(kIidNd2QueuePair, queue.get(), queue.get(), nullptr, 1, 1, 1, 1, 0, pair.out()),
                kNdSuccess);
      EXPECT_EQ(adapter.CreateConnector(kIidNd2Connector, file, connector.out()), kNdSuccess);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(0x0A530005);
      const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
      EXPECT_EQ(connector->Bind(generic, sizeof(address)), kNdSuccess);
      address.sin_port = htons(port);
      result = loop.Await(*connector, [&](OVERLAPPED* call) {
        return connector->Connect(pair.get(), generic, sizeof(address), 1, 1, data, bytes, call);
      });
    }
    CompletionPort::CloseFile(file);
    return result;
  }

  // The same cards: both providers are of one object of the model.
  LoadedModel& stranger_ = model();
};

TEST_F(Strangers, AConnectionWithoutATicketIsRejectedAndThoseWithOneStillWork) {
  ProviderSide here(provider(), kModelAdapter);
  ProviderSide there(provider(), kModelAdapter);
  ConnectAndWait(here, there);
  // The first port that the model gave away is that of the only listener.
  constexpr uint16_t kPort = 49153;
  const uint64_t guess = 1;
  EXPECT_EQ(Ask(kPort, &guess, sizeof(guess)), kNdConnectionRefused);
  EXPECT_EQ(Ask(kPort, nullptr, 0), kNdConnectionRefused);
  EXPECT_EQ(Ask(kPort + 1, &guess, sizeof(guess)), kNdConnectionRefused) << "nobody listens";
  ProviderSide near_too(here);
  ProviderSide far_too(there);
  ConnectAndWait(near_too, far_too);
  EXPECT_EQ(here.state(), QueuePairState::kReadyToSend);
}

}  // namespace
}  // namespace rnicd::provider
