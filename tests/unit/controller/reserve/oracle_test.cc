// Every block that the book sells can be served: checked against a search of all ways to give hosts
// to blocks, and against the book itself with requests split, in another order, or on other days.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lib/base/rng.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

struct Request {
  int pass_days = 0;  // before it is made
  int start = 0;      // days from then
  int days = 1;
  int count = 1;
  bool any_cell = false;
  bool at_purchase = false;
};

void showValue(const Request& request, std::ostream& out) {
  out << "{.pass_days = " << request.pass_days << ", .start = " << request.start
      << ", .days = " << request.days << ", .count = " << request.count
      << ", .any_cell = " << request.any_cell << ", .at_purchase = " << request.at_purchase << "}";
}

// One host for some days: which one is fixed once it is bound.
struct Need {
  std::int64_t first;
  std::int64_t last;
  int host = -1;
};

// Tries every assignment of the hosts of one cell.
class Exhaustive {
 public:
  explicit Exhaustive(int hosts) : hosts_(static_cast<std::size_t>(hosts)) {}

  bool Serves(std::vector<Need> needs) {
    // The order is for speed only.
    std::sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) {
      return std::tuple(a.host < 0, a.first) < std::tuple(b.host < 0, b.first);
    });
    return Place(needs, 0);
  }

 private:
  bool Place(const std::vector<Need>& needs, std::size_t next) {
    if (next == needs.size()) return true;
    const Need& need = needs[next];
    bool tried_unused = false;  // the unused ones are all the same
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      if (need.host >= 0 && static_cast<std::size_t>(need.host) != host) continue;
      const bool taken = std::any_of(
          hosts_[host].begin(), hosts_[host].end(),
          [&](const Need& other) { return need.first < other.last && other.first < need.last; });
      if (taken || (hosts_[host].empty() && tried_unused)) continue;
      tried_unused = tried_unused || (hosts_[host].empty() && need.host < 0);
      hosts_[host].push_back(need);
      if (Place(needs, next + 1)) return true;
      hosts_[host].pop_back();
    }
    return false;
  }

  std::vector<std::vector<Need>> hosts_;
};

struct Fleet {
  int hosts = 4;
  int cells = 1;
};

// The needs of all blocks that were sold, by cell.
std::map<int, std::vector<Need>> NeedsOf(BlockWorld& world, const Fleet& fleet) {
  std::map<int, std::vector<Need>> needs;
  world.book().blocks().ForEach([&](const std::string&, const auto& block) {
    if (block->end <= world.now() || block->state == BlockState::kExpired) return;
    std::map<int, std::vector<int>> bound;
    for (const std::string& name : block->hosts) {
      for (int host = 0; host < fleet.hosts; ++host) {
        if (BlockWorld::NameOf(host) == name)
          bound[host % fleet.cells].push_back(host / fleet.cells);
      }
    }
    const bool early = block->terms.binding == BindingMode::kAtPurchase;
    const Slot first = SlotOf(early ? block->created : block->start());
    for (const CellShare& share : block->cells) {
      const int cell = share.cell.back() - '0';
      const std::vector<int>& hosts = bound[cell];
      for (std::size_t i = 0; i < static_cast<std::size_t>(share.hosts); ++i) {
        needs[cell].push_back({first, SlotOf(block->end), i < hosts.size() ? hosts[i] : -1});
      }
    }
  });
  return needs;
}

bool CanServe(BlockWorld& world, const Fleet& fleet, const Request& request, Slot start) {
  const std::map<int, std::vector<Need>> sold = NeedsOf(world, fleet);
  const Slot first = request.at_purchase ? SlotOf(world.now()) : start;
  const auto room = [&](int cell) {
    const int hosts = (fleet.hosts - cell + fleet.cells - 1) / fleet.cells;
    int most = 0;
    for (int count = 1; count <= request.count; ++count) {
      std::vector<Need> needs = sold.contains(cell) ? sold.at(cell) : std::vector<Need>{};
      for (int i = 0; i < count; ++i) needs.push_back({first, start + request.days});
      if (Exhaustive(hosts).Serves(needs)) most = count;
    }
    return most;
  };
  int most = 0;
  for (int cell = 0; cell < fleet.cells; ++cell) {
    most = request.any_cell ? most + room(cell) : std::max(most, room(cell));
  }
  return most >= request.count;
}

rc::Gen<Request> AnyRequest() {
  return rc::gen::build<Request>(
      rc::gen::set(&Request::pass_days, rc::gen::element(0, 0, 0, 1, 2)),
      rc::gen::set(&Request::start, rc::gen::inRange(0, 8)),
      rc::gen::set(&Request::days, rc::gen::inRange(1, 5)),
      rc::gen::set(&Request::count, rc::gen::inRange(1, 5)),
      rc::gen::set(&Request::any_cell, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Request::at_purchase,
                   rc::gen::map(rc::gen::inRange(0, 4), [](int number) { return number == 3; })));
}

Offering OfferingFor(const BlockWorld& world, const Request& request) {
  const WallTime start = world.next_boundary() + kDay * request.start;
  return {.product = &world.product(),
          .count = request.count,
          .zone = "tahoma-1a",
          .any_cell = request.any_cell,
          .start = start,
          .end = start + kDay * request.days,
          .rate = world.product().rate};
}

RC_GTEST_PROP(OracleTest, ABlockIsSoldWhenAndOnlyWhenSomeAssignmentOfHostsServesAll, ()) {
  const Fleet fleet{.hosts = *rc::gen::inRange(4, 9), .cells = *rc::gen::inRange(1, 3)};
  BlockWorld world({.hosts = fleet.hosts, .cells = fleet.cells, .product = "trn2.48xlarge"});
  const auto requests =
      *rc::gen::resize(16, rc::gen::container<std::vector<Request>>(AnyRequest()));
  for (const Request& request : requests) {
    world.MoveBy(kDay * request.pass_days);
    const Offering offering = OfferingFor(world, request);
    const bool possible = CanServe(world, fleet, request, SlotOf(offering.start));
    Wish wish;
    if (request.at_purchase) wish.terms.binding = BindingMode::kAtPurchase;
    const auto sold = world.TryToBuy(offering, wish);
    RC_ASSERT(sold.ok() == possible);
  }
  // All of it is delivered.
  for (int day = 0; day < 14; ++day) {
    world.MoveBy(kDay);
    world.book().blocks().ForEach(
        [&](const std::string&, const auto& block) { RC_ASSERT(block->trouble.empty()); });
  }
}

struct Outcome {
  WallTime start;
  WallTime end;
  std::vector<CellShare> cells;
  BlockState state;
  std::int64_t fee;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome OutcomeOf(BlockWorld& world, const Block& block, int days_later) {
  const auto now = world.Now(block);
  return {now->start() - kDay * days_later, now->end - kDay * days_later, now->cells, now->state,
          now->fee().millionths};
}

std::vector<Request> SomeRequests(Rng& rng, int most_count) {
  std::vector<Request> requests(4 + rng.Below(16));
  for (Request& request : requests) {
    request = {.start = static_cast<int>(rng.Below(20)),
               .days = LegalDays()[rng.Below(14)],
               .count = 1 + static_cast<int>(rng.Below(static_cast<std::uint64_t>(most_count))),
               .any_cell = rng.Chance(1, 3)};
  }
  return requests;
}

TEST(MetamorphicTest, DaysThatAreBoughtOneByOneAreNeverFewer) {
  int whole = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    BlockWorld one({.hosts = 6, .cells = 2}), other({.hosts = 6, .cells = 2});
    for (const Request& request : SomeRequests(rng, 3)) {
      EXPECT_EQ(one.TryToBuy(OfferingFor(one, request), {}).ok(),
                other.TryToBuy(OfferingFor(other, request), {}).ok());
    }
    const Request request = SomeRequests(rng, 3).front();
    if (!one.TryToBuy(OfferingFor(one, request), {}).ok()) continue;
    ++whole;
    for (int day = 0; day < request.days; ++day) {
      Request piece = request;
      piece.start += day;
      piece.days = 1;
      EXPECT_TRUE(other.TryToBuy(OfferingFor(other, piece), {}).ok()) << "seed " << seed;
    }
  }
  EXPECT_GT(whole, 20);
}

TEST(MetamorphicTest, TheOrderOfPurchasesThatDoNotMeetChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    std::vector<Request> requests;
    for (int start = 0; start < 40; start += requests.back().days) {
      requests.push_back({.start = start,
                          .days = LegalDays()[rng.Below(8)],
                          .count = 1 + static_cast<int>(rng.Below(4)),
                          .any_cell = rng.Chance(1, 2)});
    }
    std::set<std::tuple<WallTime, WallTime, std::string, int>> outcomes[2];
    for (auto& outcome : outcomes) {
      BlockWorld world({.hosts = 6, .cells = 2});
      world.SetHealthy(2, false);
      for (const Request& request : requests) {
        const auto block = world.TryToBuy(OfferingFor(world, request), {});
        if (!block.ok()) continue;
        for (const CellShare& share : (*block)->cells) {
          outcome.insert({(*block)->start(), (*block)->end, share.cell, share.hosts});
        }
      }
      for (std::size_t i = requests.size() - 1; i > 0; --i) {
        std::swap(requests[i], requests[rng.Below(i + 1)]);
      }
    }
    EXPECT_EQ(outcomes[0], outcomes[1]) << "seed " << seed;
  }
}

TEST(MetamorphicTest, WholeDaysLaterEverythingIsTheSame) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::vector<Outcome> outcomes[2];
    for (const int later : {0, 1 + static_cast<int>(seed * 37 % 3000)}) {
      Rng rng(seed);
      BlockWorld world({.hosts = 6, .cells = 2, .days_later = later});
      std::vector<std::shared_ptr<const Block>> blocks;
      for (const Request& request : SomeRequests(rng, 3)) {
        world.MoveBy(kMinute * static_cast<int>(rng.Below(60)));
        const auto block = world.TryToBuy(OfferingFor(world, request), {});
        if (block.ok()) blocks.push_back(*block);
        world.MoveBy(kHour * static_cast<int>(rng.Below(30)));
        if (!blocks.empty()) (void)world.TryToExtend(*blocks[rng.Below(blocks.size())], 1);
      }
      for (const auto& block : blocks) {
        outcomes[later == 0 ? 0 : 1].push_back(OutcomeOf(world, *block, later));
      }
    }
    EXPECT_EQ(outcomes[0], outcomes[1]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tahoma::controller
