#include "controller/share/queue_turns.h"

#include "lib/base/check.h"

namespace tahoma::controller {

QueueTurns::Place QueueTurns::PlaceOf(std::size_t node, bool own) const {
  const QueueShares::Rank rank = own ? shares_.RankOfOwn(node, now_) : shares_.RankOf(node, now_);
  return {.guaranteed = rank.guaranteed,
          .use = rank.use,
          .below = !own,
          .name = shares_.tree().nodes()[node].name,
          .node = node};
}

void QueueTurns::Put(Level& level, const Place& place) {
  Remove(level, place.node);
  level.places.insert(place);
  level.of.emplace(place.node, place);
}

void QueueTurns::Remove(Level& level, std::size_t node) {
  const auto known = level.of.find(node);
  if (known == level.of.end()) return;
  level.places.erase(known->second);
  level.of.erase(known);
}

void QueueTurns::Add(const std::string& queue) {
  const std::optional<std::size_t> node = shares_.tree().IndexOf(queue);
  TAHOMA_CHECK(node.has_value());
  Put(levels_[*node], PlaceOf(*node, true));
  for (std::size_t at = *node; at != QueueTree::kNoParent;) {
    const std::size_t parent = shares_.tree().nodes()[at].parent;
    Level& level = levels_[parent];
    if (level.of.contains(at)) return;
    Put(level, PlaceOf(at, false));
    at = parent;
  }
}

void QueueTurns::Drop(const std::string& queue) {
  const std::optional<std::size_t> node = shares_.tree().IndexOf(queue);
  TAHOMA_CHECK(node.has_value());
  Remove(levels_[*node], *node);
  for (std::size_t at = *node; at != QueueTree::kNoParent && levels_[at].places.empty();) {
    const std::size_t parent = shares_.tree().nodes()[at].parent;
    levels_.erase(at);
    Remove(levels_[parent], at);
    at = parent;
  }
}

const std::string* QueueTurns::First() const {
  auto level = levels_.find(QueueTree::kNoParent);
  while (level != levels_.end() && !level->second.places.empty()) {
    const Place& first = *level->second.places.begin();
    if (!first.below) return &shares_.tree().nodes()[first.node].name;
    level = levels_.find(first.node);
  }
  return nullptr;
}

void QueueTurns::Update(const std::string& queue) {
  const std::optional<std::size_t> node = shares_.tree().IndexOf(queue);
  TAHOMA_CHECK(node.has_value());
  if (levels_.contains(*node) && levels_[*node].of.contains(*node)) {
    Put(levels_[*node], PlaceOf(*node, true));
  }
  for (std::size_t at = *node; at != QueueTree::kNoParent; at = shares_.tree().nodes()[at].parent) {
    Level& level = levels_[shares_.tree().nodes()[at].parent];
    if (level.of.contains(at)) Put(level, PlaceOf(at, false));
  }
}

}  // namespace tahoma::controller
