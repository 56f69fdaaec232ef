// Closed forms of the time that a collective takes on a healthy subcube of Trainium2.
//
//   const std::vector<Form>& forms = FormsOf(torus::Shape::Of<4, 4, 2>(), Operation::kAllReduce);
//   // the least of form.Time(bytes, costs) over all of them
//
// A form is one algorithm: a number of software steps, a number of consecutive hops, and a time in
// proportion to the bytes. It depends only on the links of the subcube: f dimensions of X and Y
// links and s of Z links, where a side of 4 is two dimensions (docs/reference/torus.md#the-graph,
// docs/reference/collectives.md#lower-bounds).
//
// Scope: one rank on each chip, links at the full rates of Trainium2.
//
// Thread safety: the table is built on first use and immutable.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/collective/cuts.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"

namespace tahoma::collective {

struct Form {
  std::int64_t steps = 0;
  std::int64_t hops = 0;
  // Bytes times this are seconds at the links' raw rates.
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  std::int64_t waits = 0;  // for CC-cores, in a row
  // If not 0, the number of phases of halving and doubling, each step half as long as the one
  // before, which two stripes of the buffer may take alternately: one is in flight while the
  // other's next step starts up.
  std::int64_t phases = 0;
  // If not 0, all steps are of one length, and one stripe takes them, or so many alternately.
  std::uint64_t even_stripes = 0;

  Picoseconds Time(std::uint64_t bytes, const LinkCosts& costs) const;
};

// Trees cut each chip's block into as many parts as these, as long as all chips together have no
// more pieces than kTreePiecesMax: planning takes as many times longer, and 256 pieces fill the
// links of 64 chips to 96 %.
inline constexpr std::uint64_t kTreeParts[] = {1, 2, 4, 8, 16, 32};
inline constexpr std::uint64_t kTreePiecesMax = 256;
// Where each chip's block is one piece, the fastest link may carry so many in a step: fewer steps
// for buffers so small that starts count more than bytes.
inline constexpr std::uint64_t kTreeBundles[] = {2, 4};

// The most stripes that are worth their sends where data spreads along trees.
inline constexpr std::uint64_t kTreeStripesMost = LinkCosts{}.stripes;
// The same where pieces flow up and back along packed trees. Steps in which links have nothing to
// carry yet last as long as the others, with many stripes hardly longer than a start.
inline constexpr std::uint64_t kFlowStripesMost = 12;

// How a buffer flows through trees: in so many chunks of each stripe.
struct ChunkCourse {
  std::uint64_t chunks = 1;
  std::uint64_t stripes = 1;
};

// The courses that are worth trying when each chunk needs so many sends: those of fewer sends
// first, and none of so many that planning would take more than some tens of milliseconds.
std::vector<ChunkCourse> ChunkCourses(std::uint64_t sends);

// Returns the time of so many steps of one length, which together keep the links busy for
// `on_links`: of one stripe, or of so many that take them alternately, whichever is faster. More
// than costs.stripes are not taken.
Picoseconds EvenTime(std::uint64_t steps, Picoseconds on_links, const LinkCosts& costs,
                     std::uint64_t stripes);

// Returns the time of a buffer that flows through trees in chunks, by the best course. It
// keeps the fullest link busy for `on_links`; the first chunk is everywhere `fill` steps after it
// is where the last one starts, and each chunk needs so many sends.
Picoseconds PipelineTime(Picoseconds on_links, std::uint64_t fill, std::uint64_t sends,
                         const LinkCosts& costs);

// Returns the number of pieces of an all-reduce that flow along packed trees of their own, up and
// back at the same time, on so many chips, two or more: as many as a plan may have that takes some
// milliseconds.
std::uint64_t FlowPieces(std::uint64_t chips);

// What decides how long they take.
struct FlowLoad {
  std::uint64_t pieces = 1;
  Picoseconds on_fastest{};      // the whole buffer on the fastest link
  double fullest = 1;            // of that time, what the fullest link needs for its pieces
  std::uint64_t idle_steps = 0;  // so many more than the fullest link needs
  // By grain, from 1: how many times as many idle steps there are, for links that are slower still
  // take several for a piece. Once beyond the last one.
  std::vector<double> slowness = {};

  double SlownessAt(std::uint64_t grain) const {
    return grain <= slowness.size() ? slowness[grain - 1] : 1.0;
  }
};
// The pieces that the fastest link carries in a step, and the stripes that take steps alternately.
struct FlowCourse {
  std::uint64_t grain = 1;
  std::uint64_t stripes = 1;
  Picoseconds time = Picoseconds::max();
};
// Returns the time of a course with this load.
Picoseconds FlowTime(const FlowLoad& load, const FlowCourse& course, const LinkCosts& costs);
// Returns the fastest course of so many stripes.
FlowCourse BestFlow(const FlowLoad& load, std::uint64_t stripes, const LinkCosts& costs);

// Pieces of the buffer that spread along trees, each of n * parts, a step being a piece over the
// fastest link, or a bundle of them. The links of the worst cut are busy in every step, so it
// decides how many there are.
struct TreeCourse {
  std::uint64_t chips;
  std::uint64_t parts;
  std::uint64_t fastest;  // bytes per second of one link
  std::uint64_t bundle = 1;
  // Beside links that take a step for a piece, some always take two: the steps are even in number.
  bool mixed = false;
  std::uint64_t least_steps = 1;  // that a piece takes to the farthest chip

  // One phase: all-gather, or reduce-scatter by its own cut.
  Form Gather(const Cut& worst) const;
  // `farthest`: links from the root to the chip that is farthest away.
  Form Broadcast(const Cut& worst, std::uint64_t farthest) const;

 private:
  std::uint64_t StepsFor(std::uint64_t pieces, std::uint64_t rate) const;
  Form Evenly(std::uint64_t steps) const;
};

// The courses that are worth trying on so many chips, with one piece of each chip first.
std::vector<TreeCourse> TreeCourses(std::uint64_t chips, std::uint64_t fastest);

// Returns the least time of phases, one for each cut, in which pieces of `bytes` spread along
// trees, in the best number of parts. `fastest` is the rate of one link between the chips; what
// protocol takes of it is taken already.
Picoseconds TreesTime(std::span<const Cut> phases, std::uint64_t chips, std::uint64_t fastest,
                      std::uint64_t bytes, LinkCosts costs);

// The same of a broadcast; the chips' pieces begin at the root.
Picoseconds BroadcastTime(const Cut& worst, std::uint64_t farthest, std::uint64_t chips,
                          std::uint64_t fastest, std::uint64_t bytes, LinkCosts costs);

// Returns the forms of all operations but send-receive, which depends on where the box lies. `size`
// has sides of 1, 2 and 4. Empty for one chip.
const std::vector<Form>& FormsOf(const torus::Shape& size, Operation operation);

// The least of their times; `forms` must not be empty.
Picoseconds LeastTime(std::span<const Form> forms, std::uint64_t bytes, const LinkCosts& costs);

}  // namespace tahoma::collective
