// All queues as a forest: which queues serve gangs, which are in trouble and why, and which queue a
// gang means.
//
// A queue in trouble, and the queues below, start no gang, keep nothing from others and stop nobody
// else. A parent whose children are guaranteed more than the parent is in trouble, not the
// children. Where two queues claim one namespace or one name of Kueue's or Volcano's, the first by
// name counts, and the other has a warning. The queue `default` exists without an object, and then
// all may use the queue.
//
// Scope: the objects alone. What the queues hold: queue_shares.h.
//
// Thread safety: immutable once made.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/share/queue_spec.h"
#include "controller/share/queue_view.h"

namespace tahoma::controller {

// How a gang names its queue.
struct QueueAsk {
  std::string ns;
  std::string queue = kDefaultQueue;      // spec.queue of the Gang
  std::vector<std::string> kueue = {};    // values of Kueue's label of its pods
  std::vector<std::string> volcano = {};  // values of Volcano's
};

class QueueTree {
 public:
  using Specs = std::map<std::string, std::shared_ptr<const QueueSpec>>;
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  struct Node {
    std::string name;
    std::shared_ptr<const QueueSpec> spec;  // nullptr: has no object
    QueueTrouble trouble = QueueTrouble::kNone;
    std::string message;                // the trouble, or a warning
    bool serves = true;                 // no trouble here and above
    std::size_t parent = kNoParent;     // nothing above, or a circle
    std::vector<std::size_t> children;  // by name
    ChipCounts guaranteed;              // as stated, or all of the children's; none in trouble
    std::chrono::seconds half_life = kHalfLife;
    std::int64_t weight = 1;

    // Returns whether gangs of the namespace may wait here.
    bool Admits(const std::string& ns) const;
  };

  QueueTree() : QueueTree(Specs(), {}) {}
  // `others` are queues without an object that have gangs.
  explicit QueueTree(const Specs& specs, const std::set<std::string>& others = {});

  // By name; parents and children are indexes into it.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Indexes of all queues, each behind its parent.
  const std::vector<std::size_t>& from_above() const { return from_above_; }
  std::optional<std::size_t> IndexOf(const std::string& name) const;
  const Node* Find(const std::string& name) const;
  // Returns whether there is any object. Without one all gangs are in one order of service.
  bool any() const { return any_; }
  // Returns the name of the gang's queue, which need not exist.
  std::string QueueFor(const QueueAsk& ask) const;
  // Returns the queue and those above, from below.
  std::vector<std::size_t> PathOf(std::size_t node) const;

 private:
  using Owners = absl::flat_hash_map<std::string, std::string>;

  void AddNodes(const Specs& specs, const std::set<std::string>& others);
  void Link();
  void FindCircles();
  void OrderFromAbove();
  void AddGuarantees();
  void TakeFromParents();
  void TakeClaims();

  std::vector<Node> nodes_;
  std::vector<std::size_t> from_above_;
  absl::flat_hash_map<std::string, std::size_t> by_name_;
  Owners default_of_;  // by namespace
  Owners of_kueue_;    // by the value of the label
  Owners of_volcano_;
  bool any_ = false;
};

}  // namespace tahoma::controller
