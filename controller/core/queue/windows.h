// Maintenance windows: hardware that people keep free of gangs for a while.
//
//   Windows windows(runs, promises);
//   windows.OnWindow(spec);                          // a watch saw it; OnWindowGone(name)
//   windows.Step(cluster, now.wall);                 // before anything is planned
//   for (const WindowNotice& notice : windows.DrainNotices()) Tell(notice);
//   for (const auto& changed : windows.DrainChanged(now.monotonic)) {
//     Show(*changed, windows.StatusOf(*changed, blocks));
//   }
//
// A window is a promise of the devices of the window's nodes, from `from` to `until`
// (promises.h): no gang begins there and runs at a time of the window. Preemptible gangs that are
// there already, or all gangs of a window with `drain`, are told from `warning` before `from` on,
// and end early enough for the pods' grace. Other gangs go on.
//
// Everything follows from the time as the time is now: a clock that is set back or forward skips
// nothing, and a restart finds the same. Nothing is journalled.
//
// Scope: what windows keep, and which runs end. Cost: a change of a domain looks at the windows on
// that domain; without windows nothing is looked at.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/window_object.h"
#include "controller/core/queue/promises.h"
#include "controller/model/cluster.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A notice of windows to the gang of a run.
struct WindowNotice {
  RunId run;
  std::optional<WallTime> end;  // when the run begins to end; nullopt: no window ends the run
  std::string warning;          // empty: the end alone has changed

  friend bool operator==(const WindowNotice&, const WindowNotice&) = default;
};

class Windows {
 public:
  // A window's status is counted at most once in this time.
  static constexpr std::chrono::seconds kStatusPause{1};

  // Both must outlive it.
  Windows(GangRuns& runs, Promises& promises) : runs_(runs), promises_(promises) {}

  // Take news.
  void OnWindow(std::shared_ptr<const WindowSpec> spec);
  void OnWindowGone(const std::string& name);

  // Follows the fleet and the time.
  void Step(const ClusterState& cluster, WallTime now);

  // Takes the notices to gangs. After a start each run without a block gets a notice, if only that
  // no window ends the run.
  std::vector<WindowNotice> DrainNotices() { return std::exchange(notices_, {}); }
  // Returns the end that the run was told of; nullopt for none.
  std::optional<WallTime> EndToldTo(RunId run) const;
  // Takes the windows whose status may be another, each at most once in kStatusPause.
  std::vector<std::shared_ptr<const WindowSpec>> DrainChanged(MonotonicTime now);
  // The window is known, and Step has seen it.
  WindowStatus StatusOf(const WindowSpec& spec, const CapacityBlocks& blocks) const;

  // When Step has something to do without any news.
  std::optional<WallTime> wake() const;
  // When DrainChanged has something without any news.
  std::optional<MonotonicTime> wake_status() const;

 private:
  // A node of a window.
  struct Place {
    NodeId id;
    std::shared_ptr<const Node> node;
    std::shared_ptr<const Holding> holding;  // of the promise
  };
  // The nodes of a window in one domain, and the runs there.
  struct Part {
    std::vector<Place> places;
    std::set<RunId> runs;
  };
  // A run on hardware of a window.
  struct Guest {
    int domains = 0;
    std::optional<WallTime> end = {};  // when the run begins to end; nullopt: not by the window
  };
  struct Window {
    std::shared_ptr<const WindowSpec> spec;
    std::optional<WindowPhase> phase = {};  // as of the last Step; nullopt: not seen yet
    std::map<DomainId, Part> parts = {};    // none when the window is over, or invalid
    std::map<RunId, Guest> runs = {};
    std::shared_ptr<const Promise> promise = {};  // nullptr: nothing is kept
    std::optional<MonotonicTime> shown = {};
  };
  using End = std::tuple<WallTime, RunId, std::string>;  // the window's name

  void Forget(const std::string& name);
  void Look(const std::string& name, const ClusterState& cluster);
  void LookAt(DomainId id, const ClusterState& cluster);
  Part PartOn(const Window& window, DomainId id, const ClusterState& cluster) const;
  void SetPart(Window& window, DomainId id, Part part);
  void Clear(Window& window);
  void Come(Window& window, RunId run);
  void Leave(Window& window, RunId run);
  std::set<std::string> WindowsOn(DomainId id, const ClusterState& cluster) const;
  void PassTime(WallTime now);
  void KeepPromises(const ClusterState& cluster, WallTime now);
  void EndDue(WallTime now);
  void TellAll(WallTime now);
  void TellAfterStart();
  std::vector<std::string> BlocksOn(const Window& window, const CapacityBlocks& blocks) const;

  GangRuns& runs_;
  Promises& promises_;
  std::map<std::string, Window> windows_;
  // The windows that name a node, and an UltraServer.
  absl::flat_hash_map<std::string, std::set<std::string>> of_node_;
  absl::flat_hash_map<std::string, std::set<std::string>> of_ultra_server_;
  std::map<DomainId, std::set<std::string>> on_domain_;  // the windows with a part there
  std::set<std::string> new_;                            // windows to be looked at as a whole
  std::set<std::string> changed_;                        // windows with another status, perhaps
  std::set<std::string> untold_;                         // windows with new guests, or near by now
  std::set<End> ends_;                                   // of all guests with an end
  // The ends that each run has been told of, and the windows.
  std::map<RunId, std::set<std::pair<WallTime, std::string>>> told_;
  std::set<RunId> told_less_;  // runs with a told end that is no more
  std::vector<WindowNotice> notices_;
  ClusterState seen_;
  // When a phase changes next, and the time of the last Step: a time before that is a clock set
  // back.
  std::optional<WallTime> next_;
  WallTime at_{};
  bool promises_changed_ = false;
  bool begun_ = false;
};

}  // namespace tahoma::controller
