// Every assignment of devices to the requests of a pod, in the order of requests and devices.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "controller/plan/member_fit.h"

namespace tahoma::controller {
namespace {

// How many chips a request needs, and the chips that it may have.
struct Need {
  int count = 0;
  std::uint16_t chips = 0;
};

// Hall's condition is checked over this many requests together.
constexpr std::size_t kTogether = 6;

// Checks Hall's condition for the needs from `first` on: any set of needs may have at least as many
// chips as it needs. The request at `first` has taken `taken` chips already.
bool EnoughFor(const std::vector<Need>& needs, std::size_t first, int taken, std::uint16_t free) {
  const std::size_t count = std::min(needs.size() - first, kTogether);
  for (unsigned some = 1; some < 1U << count; ++some) {
    int sum = 0;
    std::uint16_t chips = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if ((some >> i & 1U) == 0) continue;
      sum += needs[first + i].count - (i == 0 ? taken : 0);
      chips |= needs[first + i].chips;
    }
    if (sum > std::popcount(static_cast<std::uint16_t>(chips & free))) return false;
  }
  return true;
}

void Occupy(const DeviceRole& role, Room& room) {
  switch (role.kind) {
    case DeviceKind::kChip:
      room.busy_cores[role.chip] = 0xff;
      break;
    case DeviceKind::kCore:
      room.busy_cores[role.chip] |= role.cores;
      room.lnc[role.chip] = role.lnc;
      break;
    case DeviceKind::kNode:
    case DeviceKind::kOther:
      room.busy_cores.fill(0xff);
      room.chips = 0;
      return;
  }
  room.chips &= static_cast<std::uint16_t>(~BitOf(role.chip));
}

}  // namespace

struct MemberFitter::Exact {
  // A request that is being given devices: its claim, and whether it takes chips.
  struct OpenRequest {
    std::size_t claim;
    std::size_t request;
    bool chips;  // in some alternative
    bool bound;  // by a constraint of its claim
  };

  const CompiledMember& member;
  Room room;
  // Requests for chips come before requests for cores, because cores find room anywhere; of the
  // requests for chips, bound ones come first, because few chips serve.
  std::vector<OpenRequest> requests;
  std::vector<Need> needs;                              // by request, in the same order
  std::vector<std::vector<std::optional<Pick>>> picks;  // by claim and request
  int steps = 0;
  bool fill = false;   // all chips of the room must be taken
  bool joint = false;  // of several members: chips that can be exchanged stand side by side
  Room whole = {};     // the room before anything is taken
  // By request and chip: chips of equal classes can be exchanged in every assignment from the
  // request on. Empty until needed.
  std::vector<std::vector<std::string>> classes = {};
  // From request `free_from` on, the chips that are left decide whether the requests fit. `failed`
  // has requests, and chips with which the requests from there on do not fit: see ChipsLeft.
  std::size_t free_from = 0;
  std::set<std::pair<std::size_t, std::uint16_t>> failed = {};
  MemberFit fit = {};  // once everything has devices

  std::size_t wanted(const Pick& pick) const {
    const DeviceRequest& spec = *pick.alternative->spec;
    return IsAll(spec) ? pick.selected : static_cast<std::size_t>(spec.count);
  }

  // Returns whether the request may take the device next.
  bool Allows(std::size_t claim, const Pick& pick, std::uint16_t device) const {
    const DeviceRole& role = room.node->role(device);
    if (!pick.alternative->spec->admin_access) {
      if (!IsFree(room, role)) return false;
      // A request gets logical cores of one size.
      if (!pick.taken.empty() && room.node->role(pick.taken.front()).lnc != role.lnc) return false;
    }
    const auto& rules = member.claims[claim].constraints;
    return std::all_of(rules.begin(), rules.end(), [&](const CompiledConstraint& rule) {
      return !rule.Covers(pick.request->name, pick.alternative->name) ||
             Keeps(rule, picks[claim], device);
    });
  }

  bool Keeps(const CompiledConstraint& rule, const std::vector<std::optional<Pick>>& others,
             std::uint16_t device) const {
    const auto value_of = [&](std::uint16_t one) {
      return room.node->Lookup(one, rule.attribute.domain, rule.attribute.id);
    };
    const AttributeValue* value = value_of(device);
    if (value == nullptr) return false;
    return std::all_of(others.begin(), others.end(), [&](const std::optional<Pick>& other) {
      if (!other || !rule.Covers(other->request->name, other->alternative->name)) return true;
      return std::all_of(other->taken.begin(), other->taken.end(), [&](std::uint16_t taken) {
        return (*value_of(taken) == *value) != rule.distinct;
      });
    });
  }
};

// Returns whether, for each matchAttribute, enough candidates have one value.
bool MemberFitter::MayMatch(const Exact& exact, std::size_t claim, const Pick& pick) {
  const auto& rules = exact.member.claims[claim].constraints;
  return std::all_of(rules.begin(), rules.end(), [&](const CompiledConstraint& rule) {
    if (rule.distinct || !rule.Covers(pick.request->name, pick.alternative->name)) return true;
    std::vector<std::pair<const AttributeValue*, std::size_t>> counts;
    for (const std::uint16_t device : pick.devices) {
      const auto* value = exact.room.node->Lookup(device, rule.attribute.domain, rule.attribute.id);
      if (value == nullptr) continue;
      auto at = std::find_if(counts.begin(), counts.end(),
                             [&](const auto& one) { return *one.first == *value; });
      if (at == counts.end()) at = counts.emplace(counts.end(), value, 0U);
      ++at->second;
    }
    return std::any_of(counts.begin(), counts.end(),
                       [&](const auto& one) { return one.second >= exact.wanted(pick); });
  });
}

bool MemberFitter::IsBound(const CompiledClaim& claim, const Pick& pick) {
  return std::ranges::any_of(claim.constraints, [&](const CompiledConstraint& rule) {
    return rule.Covers(pick.request->name, pick.alternative->name);
  });
}

// Returns whether each request has enough devices; fills requests and needs.
bool MemberFitter::Prepare(Exact& exact) {
  for (std::size_t c = 0; c < exact.member.claims.size(); ++c) {
    const std::size_t count = exact.member.claims[c].requests.size();
    exact.picks.emplace_back(count);
    for (std::size_t r = 0; r < count; ++r) exact.requests.push_back({c, r, false, false});
  }
  std::vector<std::pair<Exact::OpenRequest, Need>> both;
  for (Exact::OpenRequest open : exact.requests) {
    const CompiledRequest& request = exact.member.claims[open.claim].requests[open.request];
    Need need{.count = kChipsPerNode, .chips = 0};
    bool opens = false;
    for (const CompiledAlternative& alternative : request.alternatives) {
      const auto pick = Open(request, alternative, exact.room);
      if (!pick || !MayMatch(exact, open.claim, *pick)) continue;
      opens = true;
      open.bound = open.bound || IsBound(exact.member.claims[open.claim], *pick);
      const bool takes = pick->kind == DeviceKind::kChip && !alternative.spec->admin_access;
      open.chips = open.chips || takes;
      need.count = takes ? std::min(need.count, static_cast<int>(exact.wanted(*pick))) : 0;
      for (const std::uint16_t device : pick->devices) {
        need.chips |= BitOf(exact.room.node->role(device).chip);
      }
    }
    if (!opens) return false;
    both.emplace_back(open, need);
  }
  std::ranges::stable_sort(both, {}, [](const auto& one) {
    return std::pair(!one.first.chips, !(one.first.chips && one.first.bound));
  });
  exact.requests.clear();
  for (const auto& [open, need] : both) {
    exact.requests.push_back(open);
    exact.needs.push_back(need);
    if (open.bound || need.count == 0 || exact.member.wants_others()) {
      exact.free_from = exact.requests.size();
    }
  }
  return true;
}

// Returns the chips that are left, as one number for all sets of chips that can be exchanged: the
// last chips of each class stand for the others.
std::uint16_t MemberFitter::ChipsLeft(Exact& exact, std::size_t at) {
  const std::vector<std::string>& classes = ClassesOf(exact, at);
  std::uint16_t left = 0;
  std::map<std::string_view, std::vector<int>> of_class;
  for (int chip = kChipsPerNode - 1; chip >= 0; --chip) {
    if ((exact.whole.chips & BitOf(chip)) != 0) {
      of_class[classes[static_cast<std::size_t>(chip)]].push_back(chip);
    }
  }
  for (const auto& [its, chips] : of_class) {
    std::size_t count = 0;
    for (const int chip : chips) {
      if ((exact.room.chips & BitOf(chip)) != 0) left |= BitOf(chips[count++]);
    }
  }
  return left;
}

// Describes each chip: the requests from number `at` on that may have the chip, and the values for
// constraints.
const std::vector<std::string>& MemberFitter::ClassesOf(Exact& exact, std::size_t at) {
  exact.classes.resize(exact.requests.size());
  std::vector<std::string>& classes = exact.classes[at];
  if (!classes.empty()) return classes;
  classes.assign(kChipsPerNode, "");
  // Devices of other drivers may have to match any chip.
  const std::size_t first = exact.member.wants_others() ? 0 : at;
  for (std::size_t i = first; i < exact.requests.size(); ++i) {
    const CompiledClaim& claim = exact.member.claims[exact.requests[i].claim];
    for (const CompiledAlternative& alternative :
         claim.requests[exact.requests[i].request].alternatives) {
      const auto pick = Open(claim.requests[exact.requests[i].request], alternative, exact.whole);
      if (pick) Describe(claim, *pick, *exact.whole.node, classes);
    }
  }
  return classes;
}

// Adds to the text of each chip its devices for the request.
void MemberFitter::Describe(const CompiledClaim& claim, const Pick& pick, const Node& node,
                            std::vector<std::string>& of_chips) {
  for (std::string& text : of_chips) text += "/";
  for (const std::uint16_t device : pick.devices) {
    const DeviceRole& role = node.role(device);
    std::string& text = of_chips[role.chip];
    text += fmt::format("{}:{}:{}", static_cast<int>(role.kind), role.lnc, role.cores);
    for (const CompiledConstraint& rule : claim.constraints) {
      const auto* value = node.Lookup(device, rule.attribute.domain, rule.attribute.id);
      text += value == nullptr ? ",none" : fmt::format(",{}", HashOf(*value));
    }
  }
}

std::optional<MemberFit> MemberFitter::FitExactly(const CompiledMember& member, const Room& room,
                                                  bool fill, bool joint) {
  Exact exact{.member = member, .room = room, .requests = {}, .needs = {}, .picks = {}};
  exact.fill = fill;
  exact.joint = joint;
  exact.whole = room;
  if (!Prepare(exact)) return std::nullopt;
  const int allowed = std::min(kStepsMax, steps_left_);
  exact.steps = allowed;
  const bool fits = NextRequest(exact, 0);
  steps_left_ -= allowed - std::max(exact.steps, 0);
  gave_up_ = gave_up_ || (!fits && exact.steps < 0);
  if (!fits) return std::nullopt;
  return std::move(exact.fit);
}

// Writes the devices of all requests, and adds those of other drivers.
bool MemberFitter::Finish(Exact& exact) {
  exact.fit = {};
  for (std::size_t i = 0; i < exact.member.claims.size(); ++i) {
    std::vector<Pick> picks;
    for (const auto& pick : exact.picks[i]) {
      picks.push_back(*pick);
    }
    Write(exact.member.claims[i], picks, *exact.whole.node, exact.fit);
  }
  exact.fit.left = exact.room;
  return FitOthers(exact.member, exact.fit);
}

bool MemberFitter::NextRequest(Exact& exact, std::size_t at) {
  if (at == exact.requests.size()) {
    if (exact.fill && exact.room.chips != 0) return false;
    const auto may_have = [](const auto& picks) {
      std::size_t results = 0;
      for (const auto& pick : picks) results += pick->taken.size();
      return results <= static_cast<std::size_t>(allocate::kResultsMost);
    };
    return std::ranges::all_of(exact.picks, may_have) && Finish(exact);
  }
  const auto [claim, number, chips, bound] = exact.requests[at];
  const CompiledRequest& request = exact.member.claims[claim].requests[number];
  const bool remembers = at > 0 && at >= exact.free_from;
  const std::pair here(at, remembers ? ChipsLeft(exact, at) : std::uint16_t{0});
  if (remembers && exact.failed.contains(here)) return false;
  std::optional<Pick>& pick = exact.picks[claim][number];
  for (const CompiledAlternative& alternative : request.alternatives) {
    pick = Open(request, alternative, exact.room);
    if (pick && exact.joint && pick->kind == DeviceKind::kChip) SortByClass(exact, at, *pick);
    if (pick && NextDevice(exact, at, 0)) return true;
  }
  pick.reset();
  if (remembers) exact.failed.insert(here);
  return false;
}

// So that of equal choices, which differ only in the order of chips, one is tried.
void MemberFitter::SortByClass(Exact& exact, std::size_t at, Pick& pick) {
  const std::vector<std::string>& classes = ClassesOf(exact, at);
  const auto class_of = [&](std::uint16_t device) -> const std::string& {
    return classes[exact.room.node->role(device).chip];
  };
  std::stable_sort(pick.devices.begin(), pick.devices.end(),
                   [&](std::uint16_t a, std::uint16_t b) { return class_of(a) < class_of(b); });
}

// Returns whether a chip that can be exchanged with this one was tried before, in vain.
bool MemberFitter::LikeAnEarlier(Exact& exact, std::size_t at, const Pick& pick,
                                 std::span<const std::size_t> tried, std::size_t next) {
  if (pick.kind != DeviceKind::kChip || pick.alternative->spec->admin_access) return false;
  const std::vector<std::string>& classes = ClassesOf(exact, at);
  const auto chip_of = [&](std::size_t i) { return exact.room.node->role(pick.devices[i]).chip; };
  const std::string& its = classes[chip_of(next)];
  return std::any_of(tried.begin(), tried.end(),
                     [&](std::size_t i) { return classes[chip_of(i)] == its; });
}

// Gives the request its next device, from its candidates at `from` and behind.
bool MemberFitter::NextDevice(Exact& exact, std::size_t at, std::size_t from) {
  const std::size_t claim = exact.requests[at].claim;
  Pick& pick = *exact.picks[claim][exact.requests[at].request];
  const std::size_t wanted = exact.wanted(pick);
  const std::size_t taken = pick.taken.size();
  if (taken == wanted) return NextRequest(exact, at + 1);
  const int of_need = exact.needs[at].count == 0 ? 0 : static_cast<int>(taken);
  if (!EnoughFor(exact.needs, at, of_need, exact.room.chips)) return false;
  std::vector<std::size_t> open;
  for (std::size_t i = from; i < pick.devices.size(); ++i) {
    if (exact.Allows(claim, pick, pick.devices[i])) open.push_back(i);
  }
  if (open.size() + taken < wanted) return false;
  for (std::size_t o = 0; o < open.size(); ++o) {
    const std::size_t i = open[o];
    if (o > 0 && LikeAnEarlier(exact, at, pick, std::span(open).first(o), i)) continue;
    if (--exact.steps < 0) return false;
    const Room before = exact.room;
    const std::uint16_t device = pick.devices[i];
    pick.taken.push_back(device);
    if (!pick.alternative->spec->admin_access) {
      Occupy(exact.room.node->role(device), exact.room);
    }
    if (NextDevice(exact, at, i + 1)) return true;
    exact.room = before;
    pick.taken.pop_back();
  }
  return false;
}

std::optional<MemberFitter::JointFit> MemberFitter::FitInOrder(
    std::span<const CompiledMember* const> members, const Room& room) {
  JointFit joint{.claims = {}, .left = room};
  for (const CompiledMember* member : members) {
    auto fit = FitAdmitted(*member, joint.left);
    if (!fit) return std::nullopt;
    joint.claims.push_back(std::move(fit->claims));
    joint.left = fit->left;
  }
  return joint;
}

std::optional<MemberFitter::JointFit> MemberFitter::FitTogether(
    std::span<const CompiledMember* const> members, const Room& room, bool fill) {
  ChipRange sum;
  std::size_t requests = 0;
  for (const CompiledMember* member : members) {
    const auto range = ChipsOn(*member, *room.node);
    if (!range) return std::nullopt;
    sum.least += range->least;
    sum.most += range->most;
    for (const CompiledClaim& claim : member->claims) {
      requests += claim.requests.size() + (claim.others == nullptr ? 0 : 1);
    }
  }
  const int chips = std::popcount(room.chips);
  if (sum.least > chips || (fill && sum.most < chips)) return std::nullopt;
  Room needed = room;
  for (const CompiledMember* member : members) {
    if (!HasEnough(*member->spec, needed)) return std::nullopt;
    needed.use = UseBeside(*member->spec, needed.use);
  }
  auto joint = FitInOrder(members, room);
  if (joint && (!fill || joint->left.chips == 0)) return joint;
  // One request alone fits in its order or not at all, unless another alternative fills the room.
  if (members.size() == 1 && !(fill && members.front()->chooses)) return std::nullopt;
  if (requests == 0) return std::nullopt;
  // Only FitInOrder knows runs of neighbours: it finds room for pods that are alike.
  if (const auto* type = room.node->family->type; type && type->fabric == hw::FabricKind::kRing) {
    const auto differs = [&](const auto* member) { return member->alike != members[0]->alike; };
    gave_up_ = gave_up_ || std::any_of(members.begin(), members.end(), differs);
    return std::nullopt;
  }
  CompiledMember merged;
  for (const CompiledMember* member : members) {
    merged.claims.insert(merged.claims.end(), member->claims.begin(), member->claims.end());
  }
  auto fit = FitExactly(merged, room, fill, true);
  if (!fit) return std::nullopt;
  joint = JointFit{.claims = {}, .left = fit->left};
  joint->left.use = needed.use;
  auto next = fit->claims.begin();
  for (const CompiledMember* member : members) {
    const auto end = next + static_cast<std::ptrdiff_t>(member->claims.size());
    joint->claims.emplace_back(std::make_move_iterator(next), std::make_move_iterator(end));
    next = end;
  }
  return joint;
}

}  // namespace tahoma::controller
