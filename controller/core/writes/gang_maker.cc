#include "controller/core/writes/gang_maker.h"

#include <utility>

namespace tahoma::controller {

void GangMaker::Want(const GangKey& key, std::shared_ptr<const GangWish> wish) {
  Wanted& wanted = wanted_[key];
  if (wanted.wish != nullptr && wanted.wish->IsLike(*wish)) return;
  wanted = {.wish = std::move(wish), .refusal = ""};
  outbox_.EndHold(key);
  outbox_.Add(key);
}

void GangMaker::Forget(const GangKey& key) {
  wanted_.erase(key);
  outbox_.Forget(key);
}

std::string GangMaker::RefusalOf(const GangKey& key) const {
  const auto wanted = wanted_.find(key);
  return wanted == wanted_.end() ? "" : wanted->second.refusal;
}

bool GangMaker::OnResult(const ApiResult& result, const Now& now) {
  const GangKey key{result.ns, result.name};
  if (!outbox_.OnAnswer(key, result.attempt)) return false;
  const auto wanted = wanted_.find(key);
  if (wanted == wanted_.end()) {
    outbox_.OnDone(key);
    return false;
  }
  const bool refused =
      result.outcome == WriteOutcome::kRefused || result.outcome == WriteOutcome::kGone;
  const std::string before = std::exchange(wanted->second.refusal, refused ? result.message : "");
  if (refused || result.outcome == WriteOutcome::kUnavailable) {
    outbox_.OnFailure(key, now.monotonic);
  } else {
    outbox_.OnDone(key);
  }
  return before != wanted->second.refusal;
}

void GangMaker::Flush(const Now& now) {
  for (const GangKey& key : outbox_.DrainDue(now.monotonic)) {
    const auto wanted = wanted_.find(key);
    if (wanted == wanted_.end()) continue;
    outbox_.NoteSent(key, writes_.Add(GangCreation{.key = key, .wish = wanted->second.wish}));
  }
}

}  // namespace tahoma::controller
