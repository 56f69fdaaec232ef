// Random small worlds against a slow oracle: the first of all choices, in the allocator's order,
// that is right when judged as a whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/controller/allocate/world.h"

namespace tahoma::controller::allocate {
namespace {

struct ToyDevice {
  std::vector<int> group;  // values of the attribute "group"; several are a list
  int kind = 0;
  int counter = 0;   // consumed of the pool's 4
  int capacity = 0;  // 0: has none
  bool tainted = false;
  bool shared = false;
  bool in_use = false;
};

struct ToyAlternative {
  int count = 0;  // 0: all
  int kind = -1;  // -1: any
  int ask = 0;    // capacity; 0: none
  bool tolerates = false;
  bool admin = false;
};

struct ToyClaim {
  std::vector<std::vector<ToyAlternative>> requests;
  int constraint = 0;             // 1: match, 2: distinct
  bool of_first_request = false;  // the constraint names the first request alone
};

struct Pick {
  std::size_t claim = 0;
  std::size_t request = 0;
  std::size_t alternative = 0;
  std::size_t device = 0;
};

constexpr int kCounterTotal = 4;

class ToyWorld {
 public:
  explicit ToyWorld(Rng& rng) {
    const std::size_t devices = 1 + rng.Below(5);
    for (std::size_t i = 0; i < devices; ++i) devices_.push_back(MakeDevice(rng));
    const std::size_t claims = 1 + rng.Below(2);
    for (std::size_t i = 0; i < claims; ++i) claims_.push_back(MakeClaim(rng));
  }

  World ToWorld() const;
  // The first right choice, as World::Devices says it.
  std::string Expected() {
    picks_.clear();
    return Try(0, 0) ? Text() : "none";
  }

 private:
  static ToyDevice MakeDevice(Rng& rng) {
    ToyDevice device;
    const auto values = rng.Below(4);
    for (std::uint64_t i = 0; i < (values == 3 ? 2 : values == 0 ? 0 : 1); ++i) {
      device.group.push_back(static_cast<int>(rng.Below(3)));
    }
    device.kind = static_cast<int>(rng.Below(2));
    device.counter = rng.Below(2) == 0 ? static_cast<int>(rng.Below(4)) : 0;
    device.capacity = rng.Below(2) == 0 ? static_cast<int>(1 + rng.Below(4)) : 0;
    device.tainted = rng.Below(5) == 0;
    device.shared = rng.Below(4) == 0;
    device.in_use = !device.shared && rng.Below(6) == 0;
    return device;
  }
  static ToyClaim MakeClaim(Rng& rng) {
    ToyClaim claim;
    const auto requests = 1 + rng.Below(2);
    bool all = false;
    for (std::uint64_t i = 0; i < requests; ++i) {
      auto& alternatives = claim.requests.emplace_back();
      const auto several = rng.Below(3) == 0 ? 2 : 1;
      for (int j = 0; j < several; ++j) {
        ToyAlternative one;
        one.count = static_cast<int>(rng.Below(4));
        one.kind = rng.Below(2) == 0 ? -1 : static_cast<int>(rng.Below(2));
        one.ask = rng.Below(4) == 0 ? static_cast<int>(1 + rng.Below(3)) : 0;
        one.tolerates = rng.Below(2) == 0;
        one.admin = several == 1 && rng.Below(6) == 0;
        all = all || one.count == 0;
        alternatives.push_back(one);
      }
    }
    // "All" against a constraint is an error, which another test shows.
    claim.constraint = all ? 0 : static_cast<int>(rng.Below(3));
    claim.of_first_request = rng.Below(3) == 0;
    return claim;
  }

  const ToyAlternative& AlternativeOf(const Pick& pick) const {
    return claims_[pick.claim].requests[pick.request][pick.alternative];
  }
  bool Selects(const ToyAlternative& alternative, const ToyDevice& device) const {
    return alternative.kind < 0 || alternative.kind == device.kind;
  }
  static int Consumed(const ToyAlternative& alternative, const ToyDevice& device) {
    return alternative.ask > 0 ? alternative.ask : device.capacity;
  }

  bool IsRight() const { return DevicesAreFree() && AmountsFit() && ConstraintsHold(); }
  bool DevicesAreFree() const;
  bool AmountsFit() const;
  bool ConstraintsHold() const;

  // Chooses for all requests from this one on, and judges whole choices.
  bool Try(std::size_t claim, std::size_t request);
  bool TrySubsets(Pick pick, std::size_t from, std::size_t left);
  std::string Text() const;

  std::vector<ToyDevice> devices_;
  std::vector<ToyClaim> claims_;
  std::vector<Pick> picks_;
};

bool ToyWorld::DevicesAreFree() const {
  for (std::size_t i = 0; i < picks_.size(); ++i) {
    const Pick& pick = picks_[i];
    const ToyDevice& device = devices_[pick.device];
    if (!Selects(AlternativeOf(pick), device)) return false;
    if (device.tainted && !AlternativeOf(pick).tolerates) return false;
    if (device.shared) continue;
    const bool admin = AlternativeOf(pick).admin;
    if (device.in_use && !admin) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (picks_[j].device != pick.device) continue;
      if (!admin || picks_[j].claim == pick.claim) return false;
    }
  }
  return true;
}

bool ToyWorld::AmountsFit() const {
  int counter = 0;
  std::vector<int> capacity(devices_.size(), 0);
  std::vector<bool> counted(devices_.size(), false);
  for (const ToyDevice& device : devices_) counter += device.in_use ? device.counter : 0;
  for (const Pick& pick : picks_) {
    const ToyDevice& device = devices_[pick.device];
    const ToyAlternative& alternative = AlternativeOf(pick);
    if (alternative.ask > 0 && device.capacity == 0) return false;
    const int used = Consumed(alternative, device);
    if (used > device.capacity) return false;
    if (device.shared) capacity[pick.device] += used;
    if (!device.shared || !counted[pick.device]) {
      if (device.counter > 0 && counter + device.counter > kCounterTotal) return false;
      counter += device.counter;
    }
    counted[pick.device] = true;
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (capacity[i] > devices_[i].capacity) return false;
  }
  return true;
}

bool ToyWorld::ConstraintsHold() const {
  for (std::size_t c = 0; c < claims_.size(); ++c) {
    const ToyClaim& claim = claims_[c];
    if (claim.constraint == 0) continue;
    std::vector<const ToyDevice*> bound;
    for (const Pick& pick : picks_) {
      if (pick.claim == c && (pick.request == 0 || !claim.of_first_request)) {
        bound.push_back(&devices_[pick.device]);
      }
    }
    if (std::ranges::any_of(bound, [](const auto* d) { return d->group.empty(); })) return false;
    bool have_common = bound.empty();
    for (int value = 0; value < 3; ++value) {
      const auto having = std::ranges::count_if(bound, [&](const auto* d) {
        return std::ranges::find(d->group, value) != d->group.end();
      });
      if (claim.constraint == 2 && having > 1) return false;
      have_common = have_common || having == static_cast<std::ptrdiff_t>(bound.size());
    }
    if (claim.constraint == 1 && !have_common) return false;
  }
  return true;
}

bool ToyWorld::Try(std::size_t claim, std::size_t request) {
  if (claim == claims_.size()) return IsRight();
  if (request == claims_[claim].requests.size()) return Try(claim + 1, 0);
  const auto& alternatives = claims_[claim].requests[request];
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Pick pick{claim, request, i, 0};
    if (alternatives[i].count > 0) {
      if (TrySubsets(pick, 0, static_cast<std::size_t>(alternatives[i].count))) return true;
      continue;
    }
    const std::size_t before = picks_.size();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const int ask = alternatives[i].ask;
      if (!Selects(alternatives[i], devices_[d]) || ask > devices_[d].capacity) continue;
      picks_.push_back({claim, request, i, d});
    }
    if (picks_.size() > before && Try(claim, request + 1)) return true;
    picks_.resize(before);
  }
  return false;
}

bool ToyWorld::TrySubsets(Pick pick, std::size_t from, std::size_t left) {
  if (left == 0) return Try(pick.claim, pick.request + 1);
  for (pick.device = from; pick.device < devices_.size(); ++pick.device) {
    picks_.push_back(pick);
    if (TrySubsets(pick, pick.device + 1, left - 1)) return true;
    picks_.pop_back();
  }
  return false;
}

std::string ToyWorld::Text() const {
  std::string text;
  std::size_t claim = 0;
  for (const Pick& pick : picks_) {
    if (pick.claim != claim) text += " |";
    claim = pick.claim;
    text += text.empty() ? "" : " ";
    text += fmt::format("r{}", pick.request);
    if (claims_[pick.claim].requests[pick.request].size() > 1) {
      text += fmt::format("/{}", pick.alternative);
    }
    text += fmt::format(":d{}", pick.device);
  }
  return text;
}

Json ToJson(const ToyDevice& device, std::size_t index) {
  Json out = {{"name", fmt::format("d{}", index)},
              {"attributes", {{"kind", {{"int", device.kind}}}}},
              {"allowMultipleAllocations", device.shared}};
  if (device.group.size() == 1) out["attributes"]["group"] = {{"int", device.group[0]}};
  if (device.group.size() > 1) out["attributes"]["group"] = {{"ints", device.group}};
  if (device.capacity > 0) out["capacity"]["c"] = {{"value", device.capacity}};
  if (device.tainted) {
    out["taints"] = Json::array({Json{{"key", "t"}, {"effect", "NoSchedule"}}});
  }
  if (device.counter > 0) {
    out["consumesCounters"] = Json::array({Json{
        {"counterSet", "s"}, {"counters", {{"n", {{"value", std::to_string(device.counter)}}}}}}});
  }
  return out;
}

Json ToJson(const ToyAlternative& alternative) {
  Json out = {{"deviceClassName", "any"}};
  if (alternative.count > 0) {
    out["count"] = alternative.count;
  } else {
    out["allocationMode"] = "All";
  }
  if (alternative.kind >= 0) {
    out.update(Selector(fmt::format("device.attributes['d.com'].kind == {}", alternative.kind)));
  }
  if (alternative.ask > 0) out["capacity"]["requests"]["c"] = alternative.ask;
  if (alternative.tolerates) out["tolerations"] = Json::array({Json{{"operator", "Exists"}}});
  if (alternative.admin) out["adminAccess"] = true;
  return out;
}

World ToyWorld::ToWorld() const {
  World world;
  std::vector<Json> devices;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    devices.push_back(ToJson(devices_[i], i));
    if (devices_[i].in_use) world.in_use.devices.insert({"d.com", "p", fmt::format("d{}", i)});
  }
  world.slices = {SliceOf("p", devices), SliceOf("p", {})};
  world.slices[1]["metadata"]["name"] = "counters";
  world.slices[1]["spec"]["sharedCounters"] = Json::array(
      {Json{{"name", "s"}, {"counters", {{"n", {{"value", std::to_string(kCounterTotal)}}}}}}});
  for (Json& slice : world.slices) slice["spec"]["pool"]["resourceSliceCount"] = 2;
  for (const ToyClaim& claim : claims_) {
    std::vector<Json> requests;
    for (std::size_t r = 0; r < claim.requests.size(); ++r) {
      Json request = {{"name", fmt::format("r{}", r)}};
      if (claim.requests[r].size() == 1) {
        request["exactly"] = ToJson(claim.requests[r][0]);
      } else {
        for (std::size_t a = 0; a < claim.requests[r].size(); ++a) {
          Json one = ToJson(claim.requests[r][a]);
          one["name"] = std::to_string(a);
          request["firstAvailable"].push_back(std::move(one));
        }
      }
      requests.push_back(std::move(request));
    }
    Json constraints = Json::array();
    if (claim.constraint > 0) {
      Json one = {{claim.constraint == 1 ? "matchAttribute" : "distinctAttribute", "d.com/group"}};
      if (claim.of_first_request) one["requests"] = Json::array({"r0"});
      constraints.push_back(std::move(one));
    }
    world.claims.push_back(ClaimOf(requests, std::move(constraints)));
  }
  return world;
}

TEST(AllocatorOracleTest, TheChoiceIsTheFirstOfAllThatAreRight) {
  constexpr int kWorlds = 3000;
  int none = 0;
  for (int seed = 0; seed < kWorlds; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    ToyWorld toy(rng);
    const World world = toy.ToWorld();
    const std::string expected = toy.Expected();
    none += expected == "none" ? 1 : 0;
    ASSERT_EQ(world.Devices(), expected) << "seed " << seed;
  }
  EXPECT_GT(none, kWorlds / 10);
  EXPECT_LT(none, kWorlds * 9 / 10);
}

}  // namespace
}  // namespace tahoma::controller::allocate
