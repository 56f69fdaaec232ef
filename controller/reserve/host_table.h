// The hosts that blocks are delivered on: each host's pool, health and bindings.
//
//   HostTable hosts(profile, {.one_spare_in = 32});
//   hosts.Put({.name = "us-0", .pool = pool, .healthy = true}, now);
//   const auto chosen = hosts.Choose(pool, 4, {.start = start, .end = end}, now);
//   for (const std::string& name : chosen) hosts.Bind(name, {.reservation = "cr-1"}, now);
//
// The table keeps the profile's supply, spares and occupations up to date: healthy hosts of a pool
// are the pool's supply, and hosts that work outside of blocks occupy the pool.
//
// Scope: hosts at this moment, and their bindings to blocks over time. book.h decides when hosts
// are bound.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The present state of a host, as the fleet shows it.
struct HostState {
  std::string name = {};  // of the UltraServer or node
  Pool pool = {};
  bool healthy = false;      // all of its hardware works, and its nodes take pods
  bool links_ok = true;      // no NeuronLink is down
  bool held = false;         // some of its chips are in use
  std::string held_by = {};  // the only namespace that uses them; empty: several, or none
  std::optional<WallTime> held_until = {};  // when everything there has ended; nullopt: not known
  // Some of its chips are lent to preemptible gangs. Lent chips count as unused, because the gangs
  // are ended when a block needs the chips, but no block begins beside such gangs.
  bool lent = false;

  friend bool operator==(const HostState&, const HostState&) = default;
};

// A block's right to a host.
struct HostBinding {
  std::string reservation;
  std::string owner;
  WallTime start;
  WallTime end;

  // Returns whether both bindings cover some moment; a binding may begin when the other ends.
  bool Overlaps(const HostBinding& other) const { return start < other.end && other.start < end; }
  friend bool operator==(const HostBinding&, const HostBinding&) = default;
};

struct HostTableOptions {
  // Each pool has one spare in this many hosts; 0: no spares.
  int one_spare_in = 32;
};

class HostTable {
 public:
  // `profile` must outlive the table.
  HostTable(TimeProfile& profile, HostTableOptions options)
      : profile_(profile), options_(options) {}

  // Adds a host, or replaces its state.
  void Put(HostState state, WallTime now);
  void Remove(const std::string& name, WallTime now);
  // Recounts the occupations outside of blocks after the profile has advanced to another day: a
  // gang may run longer than announced.
  void OnNewDay(WallTime now);
  const std::set<std::string>& NamesIn(const Pool& pool) const;
  // nullptr when there is no such host.
  const HostState* Find(const std::string& name) const;
  std::size_t size() const { return hosts_.size(); }

  // Chooses hosts for a block: healthy, bound to no other block in that time, and at the block's
  // start not held outside of blocks; from the start on, held by nobody but the owner. The order:
  // hosts that the owner has until the start, hosts in use by others until then, idle hosts, lent
  // hosts; each by name. This order leaves idle hosts to blocks that are bought at the last minute;
  // by the counts those need no more. Returns fewer than `count` when the pool has no more.
  std::vector<std::string> Choose(const Pool& pool, int count, const HostBinding& binding,
                                  WallTime now) const;

  // Returns whether Choose could choose the host.
  bool CanChoose(const std::string& name, const HostBinding& binding, WallTime now) const;

  // Gives a block the right to a host. The host may be unknown at the moment.
  void Bind(const std::string& name, HostBinding binding, WallTime now);
  void Unbind(const std::string& name, std::string_view reservation, WallTime now);
  // Returns the bindings of a host in the order of their starts.
  const std::vector<HostBinding>& BindingsOf(const std::string& name) const;
  // Returns whether a block can be delivered on the host as soon as its lent chips are back: the
  // host is healthy, bound to no other block at `now`, and only the owner's gangs run there.
  bool IsReady(const std::string& name, const HostBinding& binding, WallTime now) const;

 private:
  struct Entry {
    std::optional<HostState> state;  // nullopt: bound, but unknown at the moment
    std::vector<HostBinding> bindings;
    std::optional<Slot> occupied_until;  // as counted in the profile
  };

  Entry* FindEntry(const std::string& name);
  const Entry* FindEntry(const std::string& name) const;
  struct PoolHosts {
    std::set<std::string> names;
    int healthy = 0;
  };

  void SetSupply(const Pool& pool, const PoolHosts& hosts);
  void RecountOccupation(Entry& entry, WallTime now);
  void ForgetIfUnused(const std::string& name);
  static int RankOf(const Entry& entry, const HostBinding& binding, WallTime now);

  TimeProfile& profile_;
  const HostTableOptions options_;
  absl::flat_hash_map<std::string, Entry> hosts_;
  std::map<Pool, PoolHosts> by_pool_;
};

}  // namespace tahoma::controller
