// Posting chains of work requests.

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/ndk/operation_type_of.h"
#include "base/status.h"
#include "tests/simulation/steps/by_ring.h"
#include "tests/simulation/steps/post.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

bool IssuesToken(const Request& request) {
  return request.kind == RequestKind::kFastRegister || request.kind == RequestKind::kBind;
}

// Assigns the next token that the card issued to a request that was accepted, if it needs one.
void TakeToken(Scene& scene, Client& client, Request& request, size_t& next) {
  if (!IssuesToken(request)) {
    return;
  }
  const std::vector<RemoteToken>& issued = scene.world.witness.issued;
  const RemoteToken token = next < issued.size() ? issued[next++] : RemoteToken{};
  if (token.value == 0 || token == request.key->issued) {
    scene.findings.Report("TokensAreThoseOfTheCard",
                          "the request with context " + std::to_string(request.context) + " got no new token");
    return;
  }
  Model::BuryToken(client, request.key->issued.value);
  request.key->issued = token;
  request.token = token;
  scene.trace.Add(" token " + std::to_string(token.value));
}

// Each token was issued to one request. The outcome of a call, or of a ring's entry, names them in the same order.
void CheckTokens(Scene& scene, size_t taken, const PostOutcome* outcome) {
  const std::vector<RemoteToken>& issued = scene.world.witness.issued;
  if (taken != issued.size()) {
    scene.findings.Report("TokensAreThoseOfTheCard", "a token was issued to nobody");
  }
  const auto is_same = [](const IssuedToken& told, RemoteToken token) { return told.remote_token == token; };
  if (outcome != nullptr && !std::ranges::equal(outcome->issued_tokens, issued, is_same)) {
    scene.findings.Report("TokensAreThoseOfTheCard", "the outcome has other tokens");
  }
}

void Accept(QueuePair& pair, Request request) {
  if (request.kind == RequestKind::kReceive) {
    pair.receives.push_back(std::move(request));
    return;
  }
  request.serial = pair.next_serial++;
  pair.slots.push_back(std::move(request));
}

// `at`: the first request that was refused.
void CheckOutcome(Scene& scene, const PostOutcome& outcome, size_t posted, size_t at, const Refusals& why) {
  const std::string text = std::to_string(outcome.posted) + " posted, then " + TextOf(outcome.failure);
  scene.trace.Add(" -> " + text);
  const std::string prefix = "requests[" + std::to_string(at) + "]";
  const bool names_it = outcome.failure.ok() || ErrorInfoOf(outcome.failure).field.starts_with(prefix);
  if (outcome.posted != posted || !why.Allows(outcome.failure) || !names_it) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          text + " instead of " + std::to_string(posted) + " and " + why.Text());
  }
}

QueuePairId PickPair(const Scene& scene, const Client& client) {
  std::vector<QueuePairId> ready;
  for (const auto& pair : client.queue_pairs) {
    if (pair->state == provider::QueuePairState::kReadyToSend) {
      ready.push_back(pair->id);
    }
  }
  return ready.empty() || scene.dice.Chance(15) ? PickId(scene, client, &Client::queue_pairs) : scene.dice.Pick(ready);
}

// A chain as a client posts it.
struct DrawnChain {
  QueuePairId id;
  std::shared_ptr<QueuePair> pair;
  std::deque<Draft> drafts;
  std::vector<WorkRequest> requests;
  std::string text;
};

DrawnChain DrawPost(const Scene& scene, const Client& client) {
  DrawnChain chain{.id = PickPair(scene, client)};
  chain.pair = FindById(client.queue_pairs, chain.id);
  chain.text = "to " + Name("qp", chain.pair, chain.id.value);
  const uint64_t count = chain.pair != nullptr ? scene.dice.Between(1, 5) : 1;
  for (uint64_t index = 0; index < count; ++index) {
    Draft& draft = chain.drafts.emplace_back();
    if (chain.pair != nullptr) {
      DrawRequest(scene, *chain.pair, draft);
    }
    chain.requests.push_back(draft.request);
    chain.text += ", " + draft.text;
  }
  return chain;
}

CheckedRequest CheckAndRecord(const Scene& scene, const QueuePair& pair, const WorkRequest& request,
                              const std::vector<Request>& ahead) {
  CheckedRequest checked = CheckRequest(scene, pair, request, ahead);
  if (checked.why.none() && checked.window != nullptr) {
    checked.window->ever_bound = true;
  }
  return checked;
}

void Post(Scene& scene, Client& client) {
  const DrawnChain chain = DrawPost(scene, client);
  const std::shared_ptr<QueuePair>& pair = chain.pair;
  Call call(scene, client, "Post " + chain.text);
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  std::vector<Request> accepted;
  for (size_t index = 0; pair != nullptr && index < chain.requests.size() && why.none(); ++index) {
    CheckedRequest checked = CheckAndRecord(scene, *pair, chain.requests[index], accepted);
    why = checked.why;
    if (why.none()) {
      accepted.push_back(std::move(checked.request));
    }
  }
  Refusals whole;
  whole.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto outcome = PostEitherWay(scene, client, call.session(), chain.id, chain.requests);
  if (!call.Accepted(outcome.status(), whole)) {
    return;
  }
  CheckOutcome(scene, *outcome, accepted.size(), accepted.size(), why);
  size_t tokens = 0;
  for (Request& request : accepted) {
    TakeToken(scene, client, request, tokens);
  }
  CheckTokens(scene, tokens, &*outcome);
  if (scene.findings.any()) {
    return;
  }
  for (Request& request : accepted) {
    Accept(*pair, std::move(request));
  }
  scene.card.Kick(*pair);
}

RequestKind KindOf(const WorkRequest& request) {
  switch (TypeOf(request)) {
    case OperationType::kReceive:
      return RequestKind::kReceive;
    case OperationType::kRead:
      return RequestKind::kRead;
    case OperationType::kWrite:
      return RequestKind::kWrite;
    case OperationType::kFastRegister:
      return RequestKind::kFastRegister;
    case OperationType::kInvalidate:
      return RequestKind::kInvalidate;
    case OperationType::kBind:
      return RequestKind::kBind;
    default:
      return RequestKind::kSend;
  }
}

// The first refusal of a chain.
struct FirstRefusal {
  size_t index = 0;
  Refusals why;
};

// All requests count as posted: a refused one completes in its place, and fails the queue pair. What was posted before
// it may begin first. Behind it only receives are checked, until one of them is refused.
FirstRefusal AcceptOrRefuse(Scene& scene, Client& client, const DrawnChain& chain, size_t& tokens) {
  QueuePair& pair = *chain.pair;
  FirstRefusal first{.index = chain.requests.size()};
  bool receive_refused = false;
  for (size_t index = 0; index < chain.requests.size() && !scene.findings.any(); ++index) {
    const WorkRequest& posted = chain.requests[index];
    const RequestKind kind = KindOf(posted);
    const bool is_receive = kind == RequestKind::kReceive;
    Refusals why = first.why;
    if (why.none() || (is_receive && !receive_refused)) {
      CheckedRequest checked = CheckAndRecord(scene, pair, posted, {});
      why = checked.why;
      if (why.none()) {
        TakeToken(scene, client, checked.request, tokens);
        Accept(pair, std::move(checked.request));
        continue;
      }
      receive_refused = is_receive;
      scene.card.Kick(pair);
    }
    if (first.why.none()) {
      first = {.index = index, .why = why};
    }
    scene.card.Refuse(pair, {.kind = kind, .context = posted.request_context, .refused = why});
    DeliverDueCompletions(scene);
  }
  scene.card.Kick(pair);
  return first;
}

// Checked afterwards, because what a refusal sets off changes what the next request finds.
void PostWithoutOutcome(Scene& scene, Client& client) {
  const DrawnChain chain = DrawPost(scene, client);
  Call call(scene, client, "PostWithoutOutcome " + chain.text);
  if (!call.admitted()) {
    return;
  }
  const absl::Status refused =
      chain.pair == nullptr ? MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id") : absl::OkStatus();
  Refusals whole;
  whole.If(!refused.ok(), ErrorReason::OBJECT_NOT_FOUND);
  const auto outcome = PostWithoutOutcomeEitherWay(scene, client, call.session(), chain.id, chain.requests, refused);
  if (!call.Accepted(outcome.has_value() ? outcome->status() : refused, whole)) {
    return;
  }
  size_t tokens = 0;
  const FirstRefusal first = AcceptOrRefuse(scene, client, chain, tokens);
  if (scene.findings.any()) {
    return;
  }
  CheckTokens(scene, tokens, outcome.has_value() ? &**outcome : nullptr);
  if (outcome.has_value()) {
    CheckOutcome(scene, **outcome, chain.requests.size(), first.index, first.why);
  }
}

uint64_t HasReady(const Client& client) {
  uint64_t ready = 0;
  for (const auto& pair : client.queue_pairs) {
    ready += pair->state == provider::QueuePairState::kReadyToSend ? 1 : 0;
  }
  return ready;
}

uint64_t PostWeight(const Client& client) {
  return client.queue_pairs.empty() ? 0 : 20 + 150 * std::min<uint64_t>(HasReady(client), 3);
}

}  // namespace

std::vector<ClientStep> PostSteps() {
  return {{Post, PostWeight}, {PostWithoutOutcome, [](const Client& client) { return PostWeight(client) / 4; }}};
}

}  // namespace rnicd::simulation
