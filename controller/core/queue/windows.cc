#include "controller/core/queue/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

// Returns a holding of all chips of the node for the window, under the uid of no claim.
std::shared_ptr<const Holding> WholeNode(const WindowSpec& window, const Node& node) {
  Holding holding;
  holding.claim.name = fmt::format("maintenance window {} on {}", window.name, node.name);
  holding.claim_uid = holding.claim.name;
  holding.holder = Describe(window);
  const NodeTemplate& devices = *node.family->devices;
  std::uint16_t left = devices.chip_mask;
  // A device of the whole node holds all chips; without one, each chip; without chips, each core.
  for (const DeviceKind kind : {DeviceKind::kNode, DeviceKind::kChip, DeviceKind::kCore}) {
    for (std::size_t i = 0; i < devices.devices.size() && left != 0; ++i) {
      const auto index = static_cast<std::uint16_t>(i);
      if (node.role(index).kind != kind) continue;
      const std::string& name = node.device(index).name;
      if ((node.ChipsNamed(name) & left) == 0) continue;
      holding.devices.push_back({.node = node.name, .device = name});
      if (kind != DeviceKind::kCore) left &= static_cast<std::uint16_t>(~node.ChipsNamed(name));
    }
  }
  return std::make_shared<const Holding>(std::move(holding));
}

// A longer grace is no time before the window, and would leave the range of times.
constexpr std::chrono::hours kGraceMost{24 * 365};

// Returns when the run begins to end for the window; nullopt when the run may go on.
std::optional<WallTime> EndFor(const WindowSpec& window, const GangDecision& decision) {
  const bool ends = window.drain || (decision.preemptible && decision.reservation.empty());
  if (!ends) return std::nullopt;
  return window.from - std::min<std::chrono::seconds>(decision.grace, kGraceMost);
}

// Returns the next time after `now` at which the phase changes.
std::optional<WallTime> NextPhase(const WindowSpec& window, WallTime now) {
  for (const WallTime when : {window.from - window.warning, window.from, window.until}) {
    if (when > now) return when;
  }
  return std::nullopt;
}

bool Keeps(WindowPhase phase) {
  return phase != WindowPhase::kOver && phase != WindowPhase::kInvalid;
}

void Earlier(std::optional<WallTime>& first, std::optional<WallTime> other) {
  if (other && (!first || *other < *first)) first = other;
}

}  // namespace

void Windows::OnWindow(std::shared_ptr<const WindowSpec> spec) {
  const std::string name = spec->name;
  OnWindowGone(name);
  for (const std::string& node : spec->nodes) of_node_[node].insert(name);
  for (const std::string& server : spec->ultra_servers) of_ultra_server_[server].insert(name);
  windows_[name].spec = std::move(spec);
  new_.insert(name);
}

void Windows::OnWindowGone(const std::string& name) {
  const auto found = windows_.find(name);
  if (found == windows_.end()) return;
  Clear(found->second);
  Forget(name);
}

void Windows::Clear(Window& window) {
  std::vector<DomainId> domains;
  for (const auto& [domain, part] : window.parts) domains.push_back(domain);
  for (const DomainId domain : domains) SetPart(window, domain, {});
}

void Windows::Forget(const std::string& name) {
  const auto forget = [&](auto& index, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      const auto found = index.find(key);
      found->second.erase(name);
      if (found->second.empty()) index.erase(found);
    }
  };
  const Window& window = windows_.at(name);
  forget(of_node_, window.spec->nodes);
  forget(of_ultra_server_, window.spec->ultra_servers);
  promises_changed_ = promises_changed_ || window.promise != nullptr;
  windows_.erase(name);
  new_.erase(name);
  changed_.erase(name);
  untold_.erase(name);
}

std::set<std::string> Windows::WindowsOn(DomainId id, const ClusterState& cluster) const {
  std::set<std::string> names;
  if (const auto known = on_domain_.find(id); known != on_domain_.end()) names = known->second;
  if (id.value() >= cluster.domain_count()) return names;
  const auto add = [&](const auto& index, const std::string& key) {
    const auto found = index.find(key);
    if (found != index.end()) names.insert(found->second.begin(), found->second.end());
  };
  const DomainState& domain = cluster.domain(id);
  if (domain.ultra) add(of_ultra_server_, domain.name);
  for (const NodeId node : domain.nodes) {
    if (node.valid()) add(of_node_, cluster.node(node).node->name);
  }
  return names;
}

Windows::Part Windows::PartOn(const Window& window, DomainId id,
                              const ClusterState& cluster) const {
  Part part;
  if (id.value() >= cluster.domain_count() || !Keeps(*window.phase)) return part;
  const DomainState& domain = cluster.domain(id);
  const auto known = window.parts.find(id);
  const auto is_named = [&](const auto& index, const std::string& hardware) {
    const auto names = index.find(hardware);
    return names != index.end() && names->second.contains(window.spec->name);
  };
  const bool whole = domain.ultra && is_named(of_ultra_server_, domain.name);
  for (const NodeId node_id : domain.nodes) {
    if (!node_id.valid()) continue;
    const std::shared_ptr<const Node>& node = cluster.node(node_id).node;
    if (!whole && !is_named(of_node_, node->name)) continue;
    Place place{.id = node_id, .node = node, .holding = nullptr};
    if (known != window.parts.end()) {
      for (const Place& before : known->second.places) {
        if (before.id == node_id && before.node == node) place.holding = before.holding;
      }
    }
    if (place.holding == nullptr) place.holding = WholeNode(*window.spec, *node);
    part.places.push_back(std::move(place));
    runs_.ForEachOn(node_id, [&](const GangRun& run) { part.runs.insert(run.id()); });
  }
  return part;
}

// The run holds hardware of one more domain of the window.
void Windows::Come(Window& window, RunId run) {
  Guest& guest = window.runs[run];
  if (++guest.domains > 1) return;
  guest.end = EndFor(*window.spec, runs_.FindRun(run)->decision());
  if (!guest.end) return;
  ends_.insert({*guest.end, run, window.spec->name});
  untold_.insert(window.spec->name);
}

// The run holds hardware of one domain less.
void Windows::Leave(Window& window, RunId run) {
  const auto guest = window.runs.find(run);
  if (--guest->second.domains > 0) return;
  if (const auto end = guest->second.end) {
    const std::string& name = window.spec->name;
    ends_.erase({*end, run, name});
    const auto told = told_.find(run);
    if (told != told_.end() && told->second.erase({*end, name}) > 0) {
      told_less_.insert(run);
      if (told->second.empty()) told_.erase(told);
    }
  }
  window.runs.erase(guest);
}

void Windows::SetPart(Window& window, DomainId id, Part part) {
  const std::string& name = window.spec->name;
  const Part before = std::exchange(window.parts[id], std::move(part));
  const Part& after = window.parts.at(id);
  if (!std::ranges::equal(before.places, after.places, {}, &Place::holding, &Place::holding)) {
    window.promise = nullptr;
    promises_changed_ = true;
  }
  for (const RunId run : after.runs) {
    if (!before.runs.contains(run)) Come(window, run);
  }
  for (const RunId run : before.runs) {
    if (!after.runs.contains(run)) Leave(window, run);
  }
  changed_.insert(name);
  if (after.places.empty()) {
    window.parts.erase(id);
    const auto those = on_domain_.find(id);
    if (those != on_domain_.end() && those->second.erase(name) > 0 && those->second.empty()) {
      on_domain_.erase(those);
    }
    return;
  }
  on_domain_[id].insert(name);
}

// Looks at all hardware that a window names.
void Windows::Look(const std::string& name, const ClusterState& cluster) {
  Window& window = windows_.at(name);
  if (!Keeps(*window.phase)) return;
  std::set<DomainId> domains;
  for (const std::string& server : window.spec->ultra_servers) {
    const auto id = cluster.FindDomain(server);
    if (id && cluster.domain(*id).ultra) domains.insert(*id);
  }
  for (const std::string& node : window.spec->nodes) {
    const auto id = cluster.FindNode(node);
    if (id && cluster.node(*id).domain.valid()) domains.insert(cluster.node(*id).domain);
  }
  for (const DomainId domain : domains) SetPart(window, domain, PartOn(window, domain, cluster));
  changed_.insert(name);
  promises_changed_ = true;
}

void Windows::LookAt(DomainId id, const ClusterState& cluster) {
  for (const std::string& name : WindowsOn(id, cluster)) {
    if (new_.contains(name)) continue;
    Window& window = windows_.at(name);
    SetPart(window, id, PartOn(window, id, cluster));
  }
}

// Sets the phases of all windows when some phase may have changed.
void Windows::PassTime(WallTime now) {
  const bool back = now < std::exchange(at_, now);
  if (new_.empty() && !back && (!next_ || now < *next_)) return;
  next_.reset();
  for (auto& [name, window] : windows_) {
    const WindowPhase phase = PhaseAt(*window.spec, now);
    Earlier(next_, NextPhase(*window.spec, now));
    if (window.phase == phase) continue;
    const bool kept = window.phase && Keeps(*window.phase);
    window.phase = phase;
    if (!kept && Keeps(phase)) new_.insert(name);
    if (kept && !Keeps(phase)) Clear(window);
    changed_.insert(name);
    untold_.insert(name);
  }
}

// Promises the hardware of all windows but those of the past.
void Windows::KeepPromises(const ClusterState& cluster, WallTime now) {
  if (!std::exchange(promises_changed_, false)) return;
  std::vector<Promises::FixedPromise> fixed;
  for (auto& [name, window] : windows_) {
    if (!Keeps(*window.phase) || window.parts.empty()) {
      window.promise = nullptr;
      continue;
    }
    if (window.promise == nullptr) {
      Promise promise;
      promise.kind = PromiseKind::kMaintenance;
      promise.holder = Describe(*window.spec);
      promise.from = window.spec->from;
      promise.until = window.spec->until;
      for (const auto& [domain, part] : window.parts) {
        if (!promise.place.empty()) promise.place += ", ";
        promise.place += cluster.domain(domain).name;
        for (const Place& place : part.places) promise.holdings.push_back(place.holding);
      }
      window.promise = std::make_shared<const Promise>(std::move(promise));
    }
    std::vector<DomainId> domains;
    for (const auto& [domain, part] : window.parts) domains.push_back(domain);
    fixed.push_back({.promise = window.promise, .domains = std::move(domains)});
  }
  promises_.SetFixed(std::move(fixed), cluster, now);
}

// Ends runs early enough before a window begins.
void Windows::EndDue(WallTime now) {
  for (const auto& [when, id, name] : ends_) {
    if (when > now) break;
    const WindowSpec& spec = *windows_.at(name).spec;
    const GangRun* run = runs_.FindRun(id);
    if (run == nullptr || run->ending()) continue;
    const std::string why = spec.reason.empty() ? "" : fmt::format(": {}", spec.reason);
    runs_.End(id, EndCause::kPreempted,
              fmt::format("its hardware is kept for {}{}", Describe(spec), why));
  }
}

// Tells runs of the end by a near window, and runs whose end is no more.
void Windows::TellAll(WallTime now) {
  std::map<RunId, std::string> warnings;
  for (const std::string& name : std::exchange(untold_, {})) {
    const Window& window = windows_.at(name);
    const bool near = window.phase == WindowPhase::kWarned || window.phase == WindowPhase::kActive;
    if (!near) continue;
    for (const auto& [id, guest] : window.runs) {
      const GangRun* run = runs_.FindRun(id);
      if (!guest.end || run == nullptr || run->ending()) continue;
      if (!told_[id].insert({*guest.end, name}).second) continue;
      warnings[id] = fmt::format("Its hardware is kept for {}: the gang ends {}",
                                 Describe(*window.spec), FormatTime(std::max(now, *guest.end)));
    }
  }
  for (const RunId id : std::exchange(told_less_, {})) {
    if (runs_.FindRun(id) != nullptr) warnings.try_emplace(id, "");
  }
  for (auto& [id, warning] : warnings) {
    notices_.push_back({.run = id, .end = EndToldTo(id), .warning = std::move(warning)});
  }
}

std::optional<WallTime> Windows::EndToldTo(RunId run) const {
  const auto told = told_.find(run);
  return told == told_.end() ? std::nullopt : std::optional(told->second.begin()->first);
}

// A window may have gone while no controller ran: the notices to its gangs are taken back.
void Windows::TellAfterStart() {
  for (const auto& [end, run] : runs_.by_end()) {
    if (!runs_.FindRun(run)->decision().reclaim) told_less_.insert(run);
  }
}

void Windows::Step(const ClusterState& cluster, WallTime now) {
  if (!std::exchange(begun_, true)) TellAfterStart();
  if (windows_.empty()) seen_ = {};
  if (windows_.empty() && !promises_changed_ && told_less_.empty()) return;
  const bool all_new = windows_.size() == new_.size();
  if (!all_new) {
    ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) { LookAt(id, cluster); });
  }
  seen_ = cluster;
  PassTime(now);
  for (const std::string& name : std::exchange(new_, {})) Look(name, cluster);
  KeepPromises(cluster, now);
  TellAll(now);
  EndDue(now);
}

std::vector<std::shared_ptr<const WindowSpec>> Windows::DrainChanged(MonotonicTime now) {
  std::vector<std::shared_ptr<const WindowSpec>> due;
  for (auto name = changed_.begin(); name != changed_.end();) {
    Window& window = windows_.at(*name);
    const bool early = window.shown && now < *window.shown + kStatusPause;
    if (early || !window.phase) {
      ++name;
      continue;
    }
    window.shown = now;
    due.push_back(window.spec);
    name = changed_.erase(name);
  }
  return due;
}

std::optional<MonotonicTime> Windows::wake_status() const {
  std::optional<MonotonicTime> wake;
  for (const std::string& name : changed_) {
    const Window& window = windows_.at(name);
    if (!window.shown) continue;
    const MonotonicTime when = *window.shown + kStatusPause;
    if (!wake || when < *wake) wake = when;
  }
  return wake;
}

std::optional<WallTime> Windows::wake() const {
  std::optional<WallTime> wake = next_;
  const auto next = ends_.lower_bound(End{at_ + std::chrono::nanoseconds(1), RunId{}, ""});
  if (next != ends_.end()) Earlier(wake, std::get<WallTime>(*next));
  return wake;
}

WindowStatus Windows::StatusOf(const WindowSpec& spec, const CapacityBlocks& blocks) const {
  const Window& window = windows_.at(spec.name);
  WindowStatus status;
  status.observed_generation = spec.generation;
  status.phase = *window.phase;
  status.invalid = spec.invalid;
  if (!Keeps(status.phase)) return status;
  std::set<std::string_view> nodes, servers;
  for (const auto& [domain, part] : window.parts) {
    for (const Place& place : part.places) {
      nodes.insert(place.node->name);
      if (!place.node->ultraserver_id.empty()) servers.insert(place.node->ultraserver_id);
    }
  }
  status.nodes = std::ssize(nodes);
  const auto note_missing = [&](const std::vector<std::string>& names, const auto& found) {
    for (const std::string& name : names) {
      if (found.contains(name)) continue;
      ++status.missing;
      if (status.missing_names.size() < kWindowNamesMost) status.missing_names.push_back(name);
    }
  };
  note_missing(spec.nodes, nodes);
  note_missing(spec.ultra_servers, servers);
  std::set<std::string> gangs;
  for (const auto& [id, domains] : window.runs) {
    const GangRun* run = runs_.FindRun(id);
    if (run == nullptr) continue;
    ++status.gangs;
    gangs.insert(ToString(run->decision().key));
    if (gangs.size() > kWindowNamesMost) gangs.erase(std::prev(gangs.end()));
  }
  status.gang_names.assign(gangs.begin(), gangs.end());
  status.blocks = BlocksOn(window, blocks);
  return status;
}

// Returns the Capacity Blocks with chosen hardware of the window whose time meets the window's.
std::vector<std::string> Windows::BlocksOn(const Window& window,
                                           const CapacityBlocks& blocks) const {
  std::set<std::string_view> hosts;
  for (const auto& [id, part] : window.parts) {
    const DomainState& domain = seen_.domain(id);
    const bool used = !domain.block.reservation.empty() || domain.block.kept_from;
    if (used) hosts.insert(domain.name);
  }
  std::set<std::string> names;
  if (hosts.empty()) return {};
  const WindowSpec& spec = *window.spec;
  blocks.book().blocks().ForEach([&](const std::string&, const auto& block) {
    if (!HoldsCapacity(block->state)) return;
    const bool meets = blocks.time().ToWall(block->start()) < spec.until &&
                       spec.from < blocks.time().ToWall(block->end);
    const bool has = meets && std::ranges::any_of(block->hosts, [&](const std::string& host) {
                       return hosts.contains(host);
                     });
    if (has) names.insert(ToString(block->key));
    if (names.size() > kWindowNamesMost) names.erase(std::prev(names.end()));
  });
  return {names.begin(), names.end()};
}

}  // namespace tahoma::controller
