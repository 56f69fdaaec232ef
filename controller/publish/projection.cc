#include "controller/publish/projection.h"

#include <utility>

#include "lib/base/json.h"
#include "lib/kube/patch.h"

namespace tahoma::controller {
namespace {

// Null members are as absent ones; those of objects come in the order of their names.
std::string TextOf(const Json& content) {
  return kube::MergePatch(Json::object(), content)
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void Projection::Want(const kube::ObjectKey& key, const Json& content) {
  Entry& entry = entries_[key];
  entry.wanted = TextOf(content);
  Queue(key, entry);
}

void Projection::Unwant(const kube::ObjectKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.wanted.reset();
  Queue(key, found->second);
}

void Projection::OnSeen(const kube::ObjectKey& key, const Json& content) {
  Entry& entry = entries_[key];
  entry.seen = TextOf(content);
  entry.news = entry.in_flight;
  Queue(key, entry);
}

void Projection::OnGone(const kube::ObjectKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.seen.reset();
  found->second.news = found->second.in_flight;
  Queue(key, found->second);
}

// An object that is looked at while a write is under way is looked at again with its answer.
void Projection::Queue(const kube::ObjectKey& key, Entry& entry) {
  if (entry.queued || entry.in_flight) return;
  if (entry.wanted == entry.seen) {
    if (!entry.wanted) entries_.erase(key);
    return;
  }
  entry.queued = true;
  queue_.push_back(key);
}

std::vector<Projection::Write> Projection::PopDue(std::size_t most) {
  std::vector<Write> writes;
  while (listed_ && !queue_.empty() && writes.size() < most) {
    const kube::ObjectKey key = std::move(queue_.front());
    queue_.pop_front();
    const auto found = entries_.find(key);
    Entry& entry = found->second;
    entry.queued = false;
    if (entry.wanted == entry.seen) {
      if (!entry.wanted) entries_.erase(found);
      continue;
    }
    entry.in_flight = true;
    entry.news = false;
    writes.push_back({.kind = !entry.wanted ? Kind::kDelete
                              : entry.seen  ? Kind::kReplace
                                            : Kind::kCreate,
                      .key = key,
                      .content = entry.wanted.value_or(""),
                      .before = entry.seen.value_or("")});
    entry.sent = entry.wanted;
  }
  return writes;
}

void Projection::OnAnswer(const kube::ObjectKey& key, bool done) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.in_flight = false;
  // News from a watch is newer than the write, or newer news will follow.
  const std::optional<std::string> sent = std::exchange(entry.sent, std::nullopt);
  if (done && !entry.news) entry.seen = sent;
  Queue(key, entry);
}

}  // namespace tahoma::controller
