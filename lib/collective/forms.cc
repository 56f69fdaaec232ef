#include "lib/collective/forms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "lib/base/check.h"
#include "lib/collective/routes.h"

namespace tahoma::collective {
namespace {

using torus::Axis;

constexpr auto kSlow = static_cast<std::uint64_t>(hw::kTrainium2.links.inter_instance);
constexpr auto kFast = static_cast<std::uint64_t>(hw::kTrainium2.links.intra_instance);
static_assert(kFast == 2 * kSlow);

// A subcube by the number of its dimensions.
struct Cube {
  std::uint64_t fast;
  std::uint64_t slow;

  bool mixed() const { return fast > 0 && slow > 0; }
  std::uint64_t dimensions() const { return fast + slow; }
  std::uint64_t chips() const { return std::uint64_t{1} << dimensions(); }
  // The summed rate of all links into one chip.
  std::uint64_t ingress() const { return fast * kFast + slow * kSlow; }
  std::uint64_t slowest() const { return slow > 0 ? kSlow : kFast; }
  std::uint64_t fastest() const { return fast > 0 ? kFast : kSlow; }
};

// Returns the number of dimensions of a side of 1, 2 or 4 chips.
std::uint64_t DimensionsOf(int side) { return side == 4 ? 2 : side == 2 ? 1 : 0; }

Cube CubeOf(const torus::Shape& size) {
  return {.fast = DimensionsOf(size.extent(Axis::kX)) + DimensionsOf(size.extent(Axis::kY)),
          .slow = DimensionsOf(size.extent(Axis::kZ))};
}

Form Of(std::uint64_t steps, std::uint64_t hops, std::uint64_t numerator,
        std::uint64_t denominator) {
  return {.steps = static_cast<std::int64_t>(steps),
          .hops = static_cast<std::int64_t>(hops),
          .numerator = numerator,
          .denominator = denominator};
}

// A chip's CC-cores give the commands for its destinations, one after the other.
std::int64_t CommandWaits(std::uint64_t destinations) {
  return static_cast<std::int64_t>((destinations - 1) /
                                   static_cast<std::uint64_t>(hw::kTrainium2.cc_cores));
}

// Everybody sends to everybody at once: half of all messages, of 1/n each, cross each dimension, so
// a link of the slowest carries half a buffer.
Form Mesh(const Cube& cube) {
  Form form = Of(1, cube.dimensions(), 1, 2 * cube.slowest());
  form.waits = CommandWaits(cube.chips() - 1);
  return form;
}

// One phase of halving or doubling through all dimensions, in channels with rotated orders
// (docs/reference/collectives.md#halving-and-doubling). Step i = 0, 1, ... moves 2^-(i+1) of the
// buffer over all links in proportion to their rates, which sums up to (n - 1) / n, as long as all
// dimensions are of one kind. Otherwise a Latin square over the fast dimensions and a slow one
// fills the links in all steps but the last, which has slow ones only and takes f of n more.
Form Halving(const Cube& cube) {
  Form form = Of(cube.dimensions(), cube.dimensions(),
                 cube.chips() - 1 + (cube.mixed() ? cube.fast : 0), cube.chips() * cube.ingress());
  form.phases = 1;
  return form;
}

// The same in two to four steps more, beside a slow dimension: channels that used it early wait for
// others. By linear programming this comes so close to the bound, in ten-thousandths (as the
// emulator's staggered channels do).
std::optional<Form> StaggeredHalving(const Cube& cube) {
  if (!cube.mixed()) return std::nullopt;
  constexpr std::uint64_t kOne = 10'000;
  struct Stagger {
    std::uint64_t steps;
    std::uint64_t over_bound;
  };
  constexpr std::array<std::array<Stagger, 4>, 2> kStaggers = {
      {{{{4, 11'440}, {6, 10'500}, {7, 10'150}, {8, 10'010}}},
       {{{5, 10'560}, {7, 10'160}, {8, 10'040}, {9, 10'002}}}}};
  const Stagger& stagger = kStaggers.at(cube.slow - 1).at(cube.fast - 1);
  Form form = Of(stagger.steps, stagger.steps, (cube.chips() - 1) * stagger.over_bound,
                 cube.chips() * cube.ingress() * kOne);
  form.phases = 1;
  return form;
}

// The second phase undoes what the first did, at the same cost.
Form Twice(Form form) {
  form.steps *= 2;
  form.hops *= 2;
  form.numerator *= 2;
  form.waits *= 2;
  form.phases *= 2;
  return form;
}

// The root sends to each chip its buffer: the fullest of its links decides.
Form DirectBroadcast(const torus::Shape& size) {
  const DomainLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).Rotations(size)) {
    if (box.size != size) continue;
    MessageLoad load(links, box.mask);
    TAHOMA_CHECK(load.Add(std::countr_zero(box.mask), box.mask));
    Form form = Of(1, load.longest(), load.fullest().messages, load.fullest().rate);
    form.waits = CommandWaits(CubeOf(size).chips() - 1);
    return form;
  }
  TAHOMA_CHECK(false);  // a box with sides 1, 2 and 4 lies in an UltraServer
  return {};
}

// A half of the box beyond one slow dimension may have fewer links than a chip.
std::uint64_t BroadcastRate(const Cube& cube) {
  const std::uint64_t half = cube.chips() / 2 * kSlow;
  return cube.slow == 1 ? std::min(cube.ingress(), half) : cube.ingress();
}

std::vector<TreeCourse> TreesOf(const Cube& cube) {
  std::vector<TreeCourse> trees = TreeCourses(cube.chips(), cube.fastest());
  for (TreeCourse& course : trees) {
    course.mixed = cube.mixed() && course.bundle == 1;
    course.least_steps = course.mixed ? cube.fast + 2 * cube.slow : cube.dimensions();
  }
  return trees;
}

// Branchings: each of the rate of the slowest link, and one link higher than the box
// is wide, for each leaves the root by one link.
std::vector<Form> BranchingsOf(const Cube& cube) {
  const std::uint64_t rate = BroadcastRate(cube);
  const std::uint64_t sends = (cube.chips() - 1) * ((rate - 1) / cube.slowest() + 1);
  std::vector<Form> forms;
  for (const ChunkCourse& course : ChunkCourses(sends)) {
    const std::uint64_t steps = course.chunks + cube.dimensions();
    forms.push_back(Of(steps, steps, steps, course.chunks * rate));
    forms.back().even_stripes = course.stripes;
  }
  return forms;
}

std::vector<Form> MakeForms(const torus::Shape& size, Operation operation) {
  const Cube cube = CubeOf(size);
  if (cube.chips() == 1) return {};
  std::vector<Form> phase = {Mesh(cube), Halving(cube)};
  if (const auto staggered = StaggeredHalving(cube)) phase.push_back(*staggered);
  const Cut lone{.blocks = cube.chips() - 1, .rate = cube.ingress()};
  const std::vector<TreeCourse> trees = TreesOf(cube);
  for (const TreeCourse& course : trees) phase.push_back(course.Gather(lone));
  switch (operation) {
    case Operation::kAllReduce:
      std::transform(phase.begin(), phase.end(), phase.begin(), Twice);
      return phase;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      return phase;
    case Operation::kAllToAll:
      return {Mesh(cube)};
    case Operation::kPermute:  // a ring of neighbours
      return {Of(1, 1, 1, cube.slowest())};
    case Operation::kSendReceive:
      return {};
    case Operation::kBroadcast:
      break;
  }
  // Beside fast links, the emulator's trees of one root leave an eighth of the rate unused where
  // the slow ones are rings.
  const bool slow_ring = cube.mixed() && cube.slow == 2;
  const std::uint64_t rate = slow_ring ? BroadcastRate(cube) * 7 / 8 : BroadcastRate(cube);
  std::vector<Form> forms = {DirectBroadcast(size), Twice(Halving(cube))};
  forms.back().phases = 0;  // not striped
  for (const TreeCourse& course : trees) {
    forms.push_back(course.Broadcast({.blocks = cube.chips(), .rate = rate}, cube.dimensions()));
  }
  const std::vector<Form> branchings = BranchingsOf(cube);
  forms.insert(forms.end(), branchings.begin(), branchings.end());
  return forms;
}

std::size_t SideIndex(int side) { return DimensionsOf(side); }

std::size_t CubeIndex(const torus::Shape& size) {
  return SideIndex(size.extent(Axis::kX)) * 9 + SideIndex(size.extent(Axis::kY)) * 3 +
         SideIndex(size.extent(Axis::kZ));
}

using FormsOfSize = std::array<std::vector<Form>, kOperations>;

std::array<FormsOfSize, 27> MakeTable() {
  std::array<FormsOfSize, 27> table;
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    if (box.origin != torus::Coord{}) continue;
    for (std::size_t i = 0; i < kOperations; ++i) {
      table.at(CubeIndex(box.size)).at(i) = MakeForms(box.size, static_cast<Operation>(i));
    }
  }
  return table;
}

}  // namespace

namespace {

// Two buffer stripes alternate: each needs its own last step to have ended and the links to be
// free.
double StripedTime(const Form& form, double on_links, const LinkCosts& costs) {
  const auto step_cost = static_cast<double>(costs.step.count());
  const auto hop = static_cast<double>(costs.hop.count());
  const std::int64_t steps = form.steps / form.phases;
  double free_at = 0;
  std::array<double, 2> ends{};
  for (std::int64_t phase = 0; phase < form.phases; ++phase) {
    for (std::int64_t step = 0; step < steps; ++step) {
      // The second phase goes back through the steps of the first.
      const std::int64_t at = phase == 0 ? step : steps - 1 - step;
      const double share = std::ldexp(1.0, static_cast<int>(-std::min(at + 1, steps - 1)));
      for (double& end : ends) {
        free_at = std::max(end + step_cost, free_at) +
                  on_links / static_cast<double>(form.phases) * share / 2;
        end = free_at + hop;
      }
    }
  }
  return ends[1];
}

}  // namespace

std::vector<ChunkCourse> ChunkCourses(std::uint64_t sends) {
  constexpr std::uint64_t kSendsMost = 400'000;
  std::vector<ChunkCourse> courses = {{}};
  for (std::uint64_t stripes = 1; stripes <= kTreeStripesMost; stripes *= 2) {
    for (std::uint64_t chunks = 2; chunks * stripes * sends <= kSendsMost; chunks *= 2) {
      courses.push_back({.chunks = chunks, .stripes = stripes});
      const std::uint64_t more = chunks / 2 * 3;
      if (more * stripes * sends <= kSendsMost) courses.push_back({more, stripes});
    }
  }
  std::ranges::stable_sort(
      courses, {}, [](const ChunkCourse& course) { return course.chunks * course.stripes; });
  return courses;
}

Picoseconds EvenTime(std::uint64_t steps, Picoseconds on_links, const LinkCosts& costs,
                     std::uint64_t stripes) {
  stripes = std::min(stripes, costs.stripes);
  const auto count = static_cast<Picoseconds::rep>(steps);
  const auto others = static_cast<Picoseconds::rep>(stripes) - 1;
  const Picoseconds start = costs.step + costs.hop;
  const Picoseconds part = on_links / static_cast<Picoseconds::rep>(stripes * steps);
  // Either the links are never idle, or a stripe starts up while only the others' steps are in
  // flight.
  const Picoseconds striped = std::max(start + on_links, (start + part) * count + part * others);
  return std::min(start * count + on_links, striped);
}

Picoseconds PipelineTime(Picoseconds on_links, std::uint64_t fill, std::uint64_t sends,
                         const LinkCosts& costs) {
  Picoseconds best = Picoseconds::max();
  for (const ChunkCourse& course : ChunkCourses(sends)) {
    const auto steps = static_cast<Picoseconds::rep>(course.chunks + fill);
    const Picoseconds all = on_links / static_cast<Picoseconds::rep>(course.chunks) * steps;
    best = std::min(best, EvenTime(course.chunks + fill, all, costs, course.stripes));
  }
  return best;
}

std::uint64_t FlowPieces(std::uint64_t chips) {
  TAHOMA_CHECK(chips > 1);
  constexpr std::uint64_t kSendsOfStripe = 32'000;
  constexpr std::uint64_t kMost = 512;
  return std::min(kMost, kSendsOfStripe / (2 * (chips - 1)));
}

Picoseconds FlowTime(const FlowLoad& load, const FlowCourse& course, const LinkCosts& costs) {
  TAHOMA_CHECK(course.grain > 0);
  const auto stripes = static_cast<double>(course.stripes);
  const double step = static_cast<double>(load.on_fastest.count()) *
                      static_cast<double>(course.grain) / static_cast<double>(load.pieces);
  const double busy =
      load.fullest * static_cast<double>(load.pieces) / static_cast<double>(course.grain);
  const double steps = busy + static_cast<double>(load.idle_steps) * load.SlownessAt(course.grain);
  const auto start = static_cast<double>((costs.step + costs.hop).count());
  // Either the links are never idle, or each stripe waits for the start of its own next step.
  const double time =
      std::max(start + step * steps, (start + step / stripes) * steps + step - step / stripes);
  return Picoseconds(static_cast<Picoseconds::rep>(time));
}

FlowCourse BestFlow(const FlowLoad& load, std::uint64_t stripes, const LinkCosts& costs) {
  const auto start = static_cast<double>((costs.step + costs.hop).count());
  const auto count = static_cast<double>(stripes);
  const auto piece =
      static_cast<double>(load.on_fastest.count()) / static_cast<double>(load.pieces);
  // With long steps the time rises with their length, because of those in which links are idle.
  // With short ones starts add up: then it falls, up to where the idle steps cost as much.
  double best_step =
      stripes == 1 ? std::numeric_limits<double>::max() : start * count / (count - 1);
  if (load.idle_steps > 0) {
    const double on_links = load.fullest * static_cast<double>(load.on_fastest.count());
    best_step = std::min(
        best_step, std::sqrt(on_links * start * count / static_cast<double>(load.idle_steps)));
  }
  const double grain =
      std::clamp(best_step / std::max(piece, 1.0), 1.0, static_cast<double>(load.pieces));
  FlowCourse best;
  const auto consider = [&](std::uint64_t one) {
    FlowCourse course{.grain = one, .stripes = stripes};
    course.time = FlowTime(load, course, costs);
    if (course.time < best.time) best = course;
  };
  consider(static_cast<std::uint64_t>(std::floor(grain)));
  consider(static_cast<std::uint64_t>(std::ceil(grain)));
  for (std::uint64_t one = 1; one <= load.slowness.size(); ++one) {
    if (one <= load.pieces) consider(one);
  }
  return best;
}

Picoseconds Form::Time(std::uint64_t bytes, const LinkCosts& costs) const {
  const Wide moved = static_cast<Wide>(bytes) * numerator * 1000;
  const Picoseconds on_links = TimeAtMost(moved, denominator, costs.efficiency_permille);
  const Picoseconds whole =
      costs.step * steps + costs.hop * hops + costs.command * waits + on_links;
  if (even_stripes != 0) {
    return EvenTime(static_cast<std::uint64_t>(steps), on_links, costs, even_stripes);
  }
  if (phases == 0 || steps == 1) return whole;
  const double striped = StripedTime(*this, static_cast<double>(on_links.count()), costs);
  return std::min(whole, Picoseconds(static_cast<Picoseconds::rep>(std::ceil(striped))));
}

Picoseconds LeastTime(std::span<const Form> forms, std::uint64_t bytes, const LinkCosts& costs) {
  TAHOMA_CHECK(!forms.empty());
  Picoseconds least = Picoseconds::max();
  for (const Form& form : forms) least = std::min(least, form.Time(bytes, costs));
  return least;
}

Form TreeCourse::Gather(const Cut& worst) const {
  return Evenly(std::max(StepsFor(worst.blocks * parts, worst.rate), least_steps));
}

Form TreeCourse::Broadcast(const Cut& worst, std::uint64_t farthest) const {
  return Evenly(StepsFor(worst.blocks * parts, worst.rate) + farthest - 1);
}

Form TreeCourse::Evenly(std::uint64_t steps) const {
  Form form = Of(steps, steps, steps * bundle, chips * parts * fastest);
  form.even_stripes = kTreeStripesMost;
  return form;
}

std::uint64_t TreeCourse::StepsFor(std::uint64_t pieces, std::uint64_t rate) const {
  TAHOMA_CHECK(rate > 0);
  const std::uint64_t work = pieces * fastest;  // at most 2^14 x 2^40
  rate *= bundle;
  return mixed ? (work + 2 * rate - 1) / (2 * rate) * 2 : (work + rate - 1) / rate;
}

std::vector<TreeCourse> TreeCourses(std::uint64_t chips, std::uint64_t fastest) {
  std::vector<TreeCourse> courses;
  for (const std::uint64_t parts : kTreeParts) {
    if (parts > 1 && chips * parts > kTreePiecesMax) break;
    courses.push_back({.chips = chips, .parts = parts, .fastest = fastest});
    if (parts > 1) continue;
    for (const std::uint64_t bundle : kTreeBundles) {
      courses.push_back({.chips = chips, .parts = 1, .fastest = fastest, .bundle = bundle});
    }
  }
  return courses;
}

Picoseconds TreesTime(std::span<const Cut> phases, std::uint64_t chips, std::uint64_t fastest,
                      std::uint64_t bytes, LinkCosts costs) {
  costs.efficiency_permille = 1000;  // the rates are what is left of the raw ones
  Picoseconds best = Picoseconds::max();
  for (const TreeCourse& course : TreeCourses(chips, fastest)) {
    Picoseconds sum(0);
    for (const Cut& cut : phases) sum += course.Gather(cut).Time(bytes, costs);
    best = std::min(best, sum);
  }
  return best;
}

Picoseconds BroadcastTime(const Cut& worst, std::uint64_t farthest, std::uint64_t chips,
                          std::uint64_t fastest, std::uint64_t bytes, LinkCosts costs) {
  costs.efficiency_permille = 1000;
  Picoseconds best = Picoseconds::max();
  for (const TreeCourse& course : TreeCourses(chips, fastest)) {
    best = std::min(best, course.Broadcast(worst, farthest).Time(bytes, costs));
  }
  return best;
}

const std::vector<Form>& FormsOf(const torus::Shape& size, Operation operation) {
  static const auto table = MakeTable();
  return table.at(CubeIndex(size)).at(static_cast<std::size_t>(operation));
}

}  // namespace tahoma::collective
