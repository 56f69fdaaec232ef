// A queue as an object of the kind Queue asks for: whose gangs wait there, how many chips the gangs
// may hold, and how large the queue's share is.
//
//   QueueSpec research;
//   research.name = "research";
//   research.guaranteed["trn2.48xlarge"] = 256;  // chips
//   research.namespaces = {"team-a", "team-b"};
//
// Queues form a forest: a queue without a parent stands at the top, beside the queue `default` for
// gangs without a queue, and `default` exists without an object. Chips are counted whole, by
// instance type; an instance type without a number has no bound and no guarantee.
//
// Scope: values. Whether a set of queues is valid as a whole: queue_tree.h.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tahoma::controller {

// Chips by instance type.
using ChipCounts = std::map<std::string, std::int64_t>;
// Eighths of chips by instance type: a core of a Trainium2 is an eighth.
using Eighths = std::map<std::string, std::int64_t>;

inline constexpr const char* kDefaultQueue = "default";
// The namespace that stands for all.
inline constexpr const char* kEveryNamespace = "*";

// Whether a queue lets gangs start.
enum class QueueStop : std::uint8_t {
  kNo,
  kHold,   // no gang starts; running gangs go on
  kDrain,  // no gang starts; running gangs are ended
};

struct QueueSpec {
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  std::string parent;  // empty: at the top
  // So many chips are the gangs' own: others borrow idle ones, and give them back.
  ChipCounts guaranteed;
  ChipCounts limit;            // the most that gangs here and in queues below hold
  ChipCounts borrowing_limit;  // the most beyond `guaranteed`
  ChipCounts lending_limit;    // the most of `guaranteed` that others may borrow
  std::int64_t weight = 1;     // the part of what siblings share, 1 to 1,000,000
  // The time after which half of the past use counts no more; nullopt: as the parent's, at the top
  // kHalfLife.
  std::optional<std::chrono::seconds> half_life;
  std::vector<std::string> namespaces;   // whose gangs may wait here
  std::vector<std::string> default_for;  // whose gangs wait here without naming a queue
  std::vector<std::string> kueue_names;  // values of Kueue's label that mean this queue
  std::vector<std::string> volcano_names;
  std::optional<std::chrono::seconds> default_max_runtime;  // of gangs without a longest run time
  std::optional<std::chrono::seconds> max_runtime;          // the most that a gang may ask for
  std::optional<std::int64_t> most_waiting;
  std::optional<std::int64_t> most_running;
  // How much work, in chip-hours, may pass a waiting gang while the gang's start is not known.
  std::optional<std::int64_t> patience;
  QueueStop stop = QueueStop::kNo;
  // The first broken rule of the fields above, where no CustomResourceDefinition has refused the
  // object; empty: none is broken.
  std::string invalid;

  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

inline constexpr std::chrono::hours kHalfLife{168};

}  // namespace tahoma::controller
