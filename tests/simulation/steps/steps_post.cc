// Posting chains of work requests.

#include <string>

#include "tests/simulation/steps/by_ring.h"
#include "tests/simulation/steps/post.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

bool IssuesToken(const Request& request) {
  return request.kind == RequestKind::kFastRegister || request.kind == RequestKind::kBind;
}

// Assigns the tokens the card issued to the requests in order.
void TakeTokens(Scene& scene, Client& client, const PostOutcome& outcome, std::vector<Request>& accepted) {
  size_t next = 0;
  for (size_t index = 0; index < accepted.size(); ++index) {
    Request& request = accepted[index];
    if (!IssuesToken(request)) {
      continue;
    }
    const bool is_there = next < outcome.issued_tokens.size() && outcome.issued_tokens[next].request_index == index;
    const RemoteToken token = is_there ? outcome.issued_tokens[next++].remote_token : RemoteToken{};
    if (token.value == 0 || token == request.key->issued) {
      scene.findings.Report("TokensAreThoseOfTheCard", "request " + std::to_string(index) + " got no new token");
      return;
    }
    Model::BuryToken(client, request.key->issued.value);
    request.key->issued = token;
    request.token = token;
    scene.trace.Add(" token " + std::to_string(token.value));
  }
  if (next != outcome.issued_tokens.size()) {
    scene.findings.Report("TokensAreThoseOfTheCard", "a token was issued to nobody");
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

// A chain ends at the first request that is refused; those before it count.
void CheckOutcome(Scene& scene, const PostOutcome& outcome, size_t accepted, const Refusals& why) {
  const std::string text = std::to_string(outcome.posted) + " posted, then " + TextOf(outcome.failure);
  scene.trace.Add(" -> " + text);
  const std::string prefix = "requests[" + std::to_string(accepted) + "]";
  const bool names_it = outcome.failure.ok() || ErrorInfoOf(outcome.failure).field.starts_with(prefix);
  if (outcome.posted != accepted || !why.Allows(outcome.failure) || !names_it) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          text + " instead of " + std::to_string(accepted) + " and " + why.Text());
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

void Post(Scene& scene, Client& client) {
  const QueuePairId id = PickPair(scene, client);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  std::deque<Draft> drafts;
  std::vector<WorkRequest> requests;
  std::string text = "Post to " + Name("qp", pair, id.value);
  const uint64_t count = pair != nullptr ? scene.dice.Between(1, 5) : 1;
  for (uint64_t index = 0; index < count; ++index) {
    Draft& draft = drafts.emplace_back();
    if (pair != nullptr) {
      DrawRequest(scene, *pair, draft);
    }
    requests.push_back(draft.request);
    text += ", " + draft.text;
  }
  Call call(scene, client, text);
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  std::vector<Request> accepted;
  for (size_t index = 0; pair != nullptr && index < requests.size() && why.none(); ++index) {
    CheckedRequest checked = CheckRequest(scene, *pair, requests[index], accepted);
    why = checked.why;
    if (why.none()) {
      accepted.push_back(std::move(checked.request));
      if (checked.window != nullptr) {
        checked.window->ever_bound = true;
      }
    }
  }
  Refusals whole;
  whole.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto outcome = PostEitherWay(scene, client, call.session(), id, requests);
  if (!call.Accepted(outcome.status(), whole)) {
    return;
  }
  CheckOutcome(scene, *outcome, accepted.size(), why);
  TakeTokens(scene, client, *outcome, accepted);
  if (scene.findings.any()) {
    return;
  }
  for (Request& request : accepted) {
    Accept(*pair, std::move(request));
  }
  scene.card.Kick(*pair);
}

uint64_t HasReady(const Client& client) {
  uint64_t ready = 0;
  for (const auto& pair : client.queue_pairs) {
    ready += pair->state == provider::QueuePairState::kReadyToSend ? 1 : 0;
  }
  return ready;
}

}  // namespace

std::vector<ClientStep> PostSteps() {
  return {{Post, [](const Client& client) -> uint64_t {
             return client.queue_pairs.empty() ? 0 : 20 + 150 * std::min<uint64_t>(HasReady(client), 3);
           }}};
}

}  // namespace rnicd::simulation
