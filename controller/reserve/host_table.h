// The hosts that blocks are delivered on: which pool each is in, how it is, and whose it is.
//
//   HostTable hosts(profile, {.one_spare_in = 32});
//   hosts.Put({.name = "us-0", .pool = pool, .healthy = true}, now);
//   const auto chosen = hosts.Choose(pool, 4, {.start = start, .end = end}, now);
//   for (const std::string& name : chosen) hosts.Bind(name, {.reservation = "cr-1"}, now);
//
// It keeps the profile's supply, spares and occupations up to date: healthy hosts of a pool are its
// supply, and those that work outside of blocks occupy it.
//
// Scope: hosts at this moment and who has them when. book.h decides when they are bound.
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
  std::string name = {};  // an UltraServer's or a node's
  Pool pool = {};
  bool healthy = false;      // all of its hardware works, and its nodes take pods
  bool links_ok = true;      // no NeuronLink is down
  bool held = false;         // some of its chips are in use
  std::string held_by = {};  // the namespace of all that uses them; empty: several, or nothing
  std::optional<WallTime> held_until = {};  // when all that is held has ended; nullopt: not known
  // Some of its chips are lent to preemptible gangs. They count as unused, for they are ended when
  // a block needs them, but no block begins beside them.
  bool lent = false;

  friend bool operator==(const HostState&, const HostState&) = default;
};

// A block's right to a host.
struct HostBinding {
  std::string reservation;
  std::string owner;
  WallTime start;
  WallTime end;

  // Whether both would have the host at some time; one may begin when the other ends.
  bool Overlaps(const HostBinding& other) const { return start < other.end && other.start < end; }
  friend bool operator==(const HostBinding&, const HostBinding&) = default;
};

struct HostTableOptions {
  // One host of so many in a pool is a spare; 0: none is.
  int one_spare_in = 32;
};

class HostTable {
 public:
  // `profile` must outlive it.
  HostTable(TimeProfile& profile, HostTableOptions options)
      : profile_(profile), options_(options) {}

  // Adds a host, or replaces its state.
  void Put(HostState state, WallTime now);
  void Remove(const std::string& name, WallTime now);
  // Counts again what runs outside of blocks, after the profile has advanced to another day: some
  // of it may run longer than it said.
  void OnNewDay(WallTime now);
  const std::set<std::string>& NamesIn(const Pool& pool) const;
  // nullptr when there is no such host.
  const HostState* Find(const std::string& name) const;
  std::size_t size() const { return hosts_.size(); }

  // Chooses hosts for a block: healthy, bound to nobody in that time, and not held outside of
  // blocks at its start; from the start on, held by nobody but its owner. First those that
  // `binding.owner` has until the start, then those that are in use by others until then, then
  // those that are idle, then those that are lent; each by name. So idle hosts remain for blocks
  // that begin sooner and are bought at the last minute, which need no others by the counts. Fewer
  // than `count` when the pool has no more.
  std::vector<std::string> Choose(const Pool& pool, int count, const HostBinding& binding,
                                  WallTime now) const;

  // Returns whether the host is one that could be chosen.
  bool CanChoose(const std::string& name, const HostBinding& binding, WallTime now) const;

  // Gives a block the right to a host. The host may be unknown at the moment.
  void Bind(const std::string& name, HostBinding binding, WallTime now);
  void Unbind(const std::string& name, std::string_view reservation, WallTime now);
  // Returns the bindings of a host in the order of their starts.
  const std::vector<HostBinding>& BindingsOf(const std::string& name) const;
  // Returns whether a block can be delivered on the host as soon as nothing of it is lent: it is
  // healthy, no other block has it at `now`, and nothing runs there that is not its owner's.
  bool IsReady(const std::string& name, const HostBinding& binding, WallTime now) const;

 private:
  struct Entry {
    std::optional<HostState> state;  // nullopt: it is bound, and not known at the moment
    std::vector<HostBinding> bindings;
    std::optional<Slot> occupied_until;  // as it is counted in the profile
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
