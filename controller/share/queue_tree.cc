#include "controller/share/queue_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tahoma::controller {
namespace {

constexpr std::int64_t kWeightMost = 1'000'000;

std::string NegativeIn(std::string_view field, const ChipCounts& counts) {
  for (const auto& [type, chips] : counts) {
    if (chips < 0) return fmt::format("{}: {} chips of {} are less than 0", field, chips, type);
  }
  return "";
}

// Returns the first field without a valid value, as a sentence; "" when all are valid.
std::string FaultOf(const QueueSpec& spec) {
  for (const auto& [field, counts] :
       {std::pair<std::string_view, const ChipCounts*>{"guaranteed", &spec.guaranteed},
        {"limit", &spec.limit},
        {"borrowingLimit", &spec.borrowing_limit},
        {"lendingLimit", &spec.lending_limit}}) {
    if (std::string fault = NegativeIn(field, *counts); !fault.empty()) return fault;
  }
  for (const auto& [type, chips] : spec.guaranteed) {
    const auto limit = spec.limit.find(type);
    if (limit != spec.limit.end() && limit->second < chips) {
      return fmt::format("guaranteed: {} chips of {} are more than its limit of {}", chips, type,
                         limit->second);
    }
  }
  if (spec.weight < 1 || spec.weight > kWeightMost) {
    return fmt::format("weight {}: must be 1 to {}", spec.weight, kWeightMost);
  }
  if (spec.half_life && spec.half_life->count() <= 0) return "halfLife: must be more than 0";
  for (const auto& [field, time] :
       {std::pair<std::string_view, std::optional<std::chrono::seconds>>{"defaultMaxRuntime",
                                                                         spec.default_max_runtime},
        {"maxRuntime", spec.max_runtime}}) {
    if (time && time->count() <= 0) return fmt::format("{}: must be more than 0", field);
  }
  for (const auto& [field, number] :
       {std::pair<std::string_view, std::optional<std::int64_t>>{"maxWaiting", spec.most_waiting},
        {"maxRunning", spec.most_running},
        {"patience", spec.patience}}) {
    if (number && *number < 0) return fmt::format("{} {}: is less than 0", field, *number);
  }
  return "";
}

void Warn(QueueTree::Node& node, std::string_view field, const std::string& value,
          const std::string& owner) {
  if (!node.message.empty()) return;
  node.message = fmt::format("{} {}: queue {} has it already", field, value, owner);
}

}  // namespace

bool QueueTree::Node::Admits(const std::string& ns) const {
  if (spec == nullptr) return true;
  return std::ranges::any_of(spec->namespaces, [&](const std::string& one) {
    return one == ns || one == kEveryNamespace;
  });
}

QueueTree::QueueTree(const Specs& specs, const std::set<std::string>& others)
    : any_(!specs.empty()) {
  AddNodes(specs, others);
  Link();
  FindCircles();
  OrderFromAbove();
  AddGuarantees();
  TakeFromParents();
  TakeClaims();
}

void QueueTree::AddNodes(const Specs& specs, const std::set<std::string>& others) {
  std::set<std::string> names = others;
  names.insert(kDefaultQueue);
  for (const auto& [name, spec] : specs) names.insert(name);
  nodes_.reserve(names.size());
  by_name_.reserve(names.size());
  for (const std::string& name : names) {
    by_name_[name] = nodes_.size();
    Node& node = nodes_.emplace_back();
    node.name = name;
    const auto found = specs.find(name);
    if (found == specs.end()) continue;
    node.spec = found->second;
    node.message = node.spec->invalid.empty() ? FaultOf(*node.spec) : node.spec->invalid;
    if (!node.message.empty()) {
      node.trouble = QueueTrouble::kInvalid;
    } else {
      node.weight = node.spec->weight;
    }
  }
}

void QueueTree::Link() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.spec == nullptr || node.spec->parent.empty()) continue;
    const std::optional<std::size_t> parent = IndexOf(node.spec->parent);
    if (parent && nodes_[*parent].spec != nullptr) {
      node.parent = *parent;
    } else if (node.trouble == QueueTrouble::kNone) {
      node.trouble = QueueTrouble::kNoParent;
      node.message = fmt::format("its parent, queue {}, does not exist", node.spec->parent);
    }
  }
}

// Cuts the circles, so that each queue of one stands at the top.
void QueueTree::FindCircles() {
  std::vector<std::size_t> seen_from(nodes_.size(), kNoParent);
  std::vector<std::size_t> in_circle;
  for (std::size_t first = 0; first < nodes_.size(); ++first) {
    std::size_t at = first;
    while (at != kNoParent && seen_from[at] == kNoParent) {
      seen_from[at] = first;
      at = nodes_[at].parent;
    }
    if (at == kNoParent || seen_from[at] != first) continue;
    const std::size_t start = at;
    do {
      in_circle.push_back(at);
      at = nodes_[at].parent;
    } while (at != start);
  }
  for (const std::size_t i : in_circle) {
    nodes_[i].trouble = QueueTrouble::kCircle;
    nodes_[i].message =
        fmt::format("it is above itself: its parent is queue {}", nodes_[nodes_[i].parent].name);
  }
  for (const std::size_t i : in_circle) nodes_[i].parent = kNoParent;
}

void QueueTree::OrderFromAbove() {
  std::vector<std::vector<std::size_t>> children(nodes_.size());
  std::vector<std::size_t>& order = from_above_;
  order.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == kNoParent) {
      order.push_back(i);
    } else {
      children[nodes_[i].parent].push_back(i);
    }
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    order.insert(order.end(), children[order[next]].begin(), children[order[next]].end());
  }
}

void QueueTree::AddGuarantees() {
  std::vector<ChipCounts> below(nodes_.size());
  for (auto at = from_above_.rbegin(); at != from_above_.rend(); ++at) {
    Node& node = nodes_[*at];
    if (node.spec != nullptr && node.trouble == QueueTrouble::kNone) {
      node.guaranteed = node.spec->guaranteed;
      for (const auto& [type, chips] : below[*at]) {
        const std::int64_t own = node.guaranteed.try_emplace(type, chips).first->second;
        if (own >= chips) continue;
        node.trouble = QueueTrouble::kGuarantees;
        node.message =
            fmt::format("the queues below are guaranteed {} chips of {}, more than its own {}",
                        chips, type, own);
        break;
      }
    }
    if (node.trouble != QueueTrouble::kNone) node.guaranteed.clear();
    if (node.parent == kNoParent) continue;
    for (const auto& [type, chips] : node.guaranteed) {
      std::int64_t& sum = below[node.parent][type];
      if (__builtin_add_overflow(sum, chips, &sum)) sum = INT64_MAX;
    }
  }
}

void QueueTree::TakeFromParents() {
  for (const std::size_t i : from_above_) {
    Node& node = nodes_[i];
    const Node* parent = node.parent == kNoParent ? nullptr : &nodes_[node.parent];
    if (parent != nullptr) {
      nodes_[node.parent].children.push_back(i);
      node.half_life = parent->half_life;
    }
    const auto own = node.spec == nullptr ? std::nullopt : node.spec->half_life;
    if (own && own->count() > 0) node.half_life = *own;
    node.serves = node.trouble == QueueTrouble::kNone && (parent == nullptr || parent->serves);
    if (node.serves) continue;
    node.guaranteed.clear();
    if (node.trouble == QueueTrouble::kNone) {
      node.message = fmt::format("queue {} above is in trouble: {}", parent->name, parent->message);
    }
  }
}

void QueueTree::TakeClaims() {
  for (Node& node : nodes_) {
    if (node.spec == nullptr) continue;
    const auto take = [&](const char* field, const std::vector<std::string>& values, Owners& of) {
      for (const std::string& value : values) {
        const auto [owner, added] = of.try_emplace(value, node.name);
        if (!added && owner->second != node.name) Warn(node, field, value, owner->second);
      }
    };
    take("defaultFor", node.spec->default_for, default_of_);
    take("kueueNames", node.spec->kueue_names, of_kueue_);
    take("volcanoNames", node.spec->volcano_names, of_volcano_);
  }
}

std::optional<std::size_t> QueueTree::IndexOf(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

const QueueTree::Node* QueueTree::Find(const std::string& name) const {
  const std::optional<std::size_t> index = IndexOf(name);
  return index ? &nodes_[*index] : nullptr;
}

std::string QueueTree::QueueFor(const QueueAsk& ask) const {
  if (ask.queue != kDefaultQueue) return ask.queue;
  const auto first_of = [](const Owners& owners,
                           const std::vector<std::string>& values) -> const std::string* {
    for (const std::string& value : values) {
      if (const auto found = owners.find(value); found != owners.end()) return &found->second;
    }
    return nullptr;
  };
  for (const std::string* queue :
       {first_of(of_kueue_, ask.kueue), first_of(of_volcano_, ask.volcano),
        first_of(default_of_, {ask.ns})}) {
    if (queue != nullptr) return *queue;
  }
  return kDefaultQueue;
}

std::vector<std::size_t> QueueTree::PathOf(std::size_t node) const {
  std::vector<std::size_t> path;
  for (; node != kNoParent; node = nodes_[node].parent) path.push_back(node);
  return path;
}

}  // namespace tahoma::controller
