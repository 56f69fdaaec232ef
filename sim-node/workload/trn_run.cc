#include "sim-node/workload/trn_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/ranks.h"
#include "lib/isa/text.h"
#include "sim-node/workload/arguments.h"
#include "sim-node/workload/npy.h"

namespace tahoma::sim {
namespace {

constexpr int kInOption = 256, kOutOption = 257, kChipOption = 258, kCoreOption = 259,
              kNoDataOption = 260, kTimelineOption = 261, kBinaryOption = 262,
              kRoundingOption = 263;
constexpr std::array kLongOptions = {
    option{"in", required_argument, nullptr, kInOption},
    option{"out", required_argument, nullptr, kOutOption},
    option{"chip", required_argument, nullptr, kChipOption},
    option{"core", required_argument, nullptr, kCoreOption},
    option{"no-data", no_argument, nullptr, kNoDataOption},
    option{"timeline", required_argument, nullptr, kTimelineOption},
    option{"binary", required_argument, nullptr, kBinaryOption},
    option{"stochastic-rounding", required_argument, nullptr, kRoundingOption},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};
constexpr int kMaxNumber = 127;
constexpr std::int64_t kShareAlignment = std::int64_t{64} << 10U;
constexpr mode_t kFileMode = 0644;
constexpr std::size_t kMaxProgramBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxArrayBytes = std::size_t{1} << 30U;  // a node keeps no more

absl::Status ReadFiles(std::string_view name, std::string_view text, TrnRunOptions::Files& into) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return InvalidArgument("{} is \"{}\"; expected TENSOR=FILE.npy", name, text);
  }
  into.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return absl::OkStatus();
}

// "0,2-3" is 0, 2, 3; each number once.
std::optional<std::vector<int>> NumbersOf(std::string_view text) {
  std::vector<int> numbers;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    int first = 0;
    if (!ReadNumber("", part.substr(0, dash), 0, kMaxNumber, first).ok()) return std::nullopt;
    int last = first;
    if (dash != std::string_view::npos &&
        !ReadNumber("", part.substr(dash + 1), first, kMaxNumber, last).ok()) {
      return std::nullopt;
    }
    for (int number = first; number <= last; ++number) {
      if (std::ranges::find(numbers, number) != numbers.end()) return std::nullopt;
      numbers.push_back(number);
    }
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

absl::Status ReadNumbers(std::string_view name, std::string_view text, std::vector<int>& into) {
  std::optional<std::vector<int>> numbers = NumbersOf(text);
  if (!numbers) {
    return InvalidArgument("{} is \"{}\"; expected 0 to {}, or some of them once: 0,2-3", name,
                           text, kMaxNumber);
  }
  into = *std::move(numbers);
  return absl::OkStatus();
}

absl::Status ReadSeed(std::string_view name, std::string_view text, std::optional<int>& into) {
  int seed = 0;
  TAHOMA_RETURN_IF_ERROR(ReadNumber(name, text, 0, std::numeric_limits<int>::max(), seed));
  into = seed;
  return absl::OkStatus();
}

absl::Status Apply(int choice, std::string_view text, TrnRunOptions& options) {
  switch (choice) {
    case kInOption:
      return ReadFiles("--in", text, options.in);
    case kOutOption:
      return ReadFiles("--out", text, options.out);
    case kChipOption:
      return ReadNumbers("--chip", text, options.chips);
    case kCoreOption:
      return ReadNumbers("--core", text, options.cores);
    case kNoDataOption:
      options.data = false;
      return absl::OkStatus();
    case kTimelineOption:
      options.timeline = text;
      return absl::OkStatus();
    case kBinaryOption:
      options.binary = text;
      return absl::OkStatus();
    case kRoundingOption:
      return ReadSeed("--stochastic-rounding", text, options.rounding_seed);
    default:
      options.help = true;
      return absl::OkStatus();
  }
}

absl::StatusOr<isa::Program> ReadProgram(const std::string& path) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxProgramBytes));
  const std::string name = std::filesystem::path(path).stem();
  auto program =
      file.starts_with(isa::kBinaryMagic) ? isa::Decode(file) : isa::ParseText(file, name);
  if (!program.ok()) return Annotate(program.status(), path);
  if (const absl::Status checked = isa::CheckProgram(*program); !checked.ok()) {
    return Annotate(checked, path);
  }
  return program;
}

absl::StatusOr<const isa::Buffer*> FindTensor(const isa::Program& program, const std::string& name,
                                              isa::Use use) {
  std::string known;
  for (const isa::Buffer& buffer : program.buffers) {
    if (buffer.use != use && buffer.use != isa::Use::kInOut) continue;
    if (buffer.name == name) return &buffer;
    known += (known.empty() ? "" : ", ") + buffer.name;
  }
  const std::string_view what = use == isa::Use::kInput ? "input" : "output";
  if (known.empty()) return InvalidArgument("the program has no {}", what);
  return InvalidArgument("the program has no {} \"{}\"; it has {}", what, name, known);
}

constexpr std::string_view kRankMark = "{rank}";

bool HasRank(std::string_view file) { return file.find(kRankMark) != std::string_view::npos; }

std::string FileOf(std::string file, std::size_t rank) {
  for (std::size_t at = 0; (at = file.find(kRankMark, at)) != std::string::npos;) {
    file.replace(at, kRankMark.size(), std::to_string(rank));
  }
  return file;
}

// Where a core's share of the claim's memory of its chip begins.
std::int64_t ShareBegin(const ChipMemoryUse& memory, std::int64_t cores, int core) {
  return core * (memory.capacity_bytes / cores) / kShareAlignment * kShareAlignment;
}

// The cores of a chip on which a program with so many bytes of tensors runs.
absl::Status PlaceOnChip(const TrnRunOptions& options, const CoreReading& claim, int chip,
                         std::int64_t bytes, std::vector<RankPlace>& places) {
  const auto chips = static_cast<int>(claim.chips.size());
  if (chip >= chips) {
    return OutOfRange("--chip {}; the claim has chips 0 to {}", chip, chips - 1);
  }
  const ChipMemoryUse& memory = claim.chips[static_cast<std::size_t>(chip)];
  const auto cores = std::ranges::count(claim.cores, memory.chip, &LogicalCore::chip);
  for (const int core : options.cores) {
    if (core >= cores) {
      return OutOfRange("--core {}; of chip {} the claim has cores 0 to {}", core, chip, cores - 1);
    }
    const std::int64_t begin = ShareBegin(memory, cores, core);
    const std::int64_t share = ShareBegin(memory, cores, core + 1) - begin;
    if (options.cores.size() > 1 && bytes > share) {
      return ResourceExhausted(
          "the program's tensors have {} bytes; each of the {} cores of chip {} has {} of its "
          "memory",
          bytes, cores, chip, share);
    }
    places.push_back({.chip = chip, .core = core, .address = static_cast<std::uint64_t>(begin)});
  }
  return absl::OkStatus();
}

// Leaves out all DMA engines but the busiest: a copy of whole tiles keeps all busy alike.
std::vector<CoreReport::Resource> WithOneDmaEngine(
    const std::vector<CoreReport::Resource>& resources) {
  constexpr std::string_view kEngine = "DMA engine ";
  std::vector<CoreReport::Resource> shown;
  for (const CoreReport::Resource& one : resources) {
    const bool another =
        one.name.starts_with(kEngine) && !shown.empty() && shown.back().name.starts_with(kEngine);
    if (!another) {
      shown.push_back(one);
    } else if (one.busy_ps > shown.back().busy_ps) {
      shown.back() = one;
    }
  }
  return shown;
}

class Runner {
 public:
  Runner(const TrnRunOptions& options, CoreNode& node, std::ostream& out)
      : options_(options), node_(node), out_(out) {}

  absl::Status Run() {
    TAHOMA_ASSIGN_OR_RETURN(isa::Program program, ReadProgram(options_.program));
    TAHOMA_ASSIGN_OR_RETURN(const isa::Assembled ready, isa::Assemble(std::move(program)));
    if (!options_.binary.empty()) {
      TAHOMA_RETURN_IF_ERROR(
          WriteAtomically(options_.binary, isa::Encode(ready.program), kFileMode));
    }
    TAHOMA_RETURN_IF_ERROR(CheckOptions(ready.program));
    TAHOMA_RETURN_IF_ERROR(PlaceRanks(ready.hbm_bytes));
    TAHOMA_RETURN_IF_ERROR(StoreInputs(ready.program));
    TAHOMA_ASSIGN_OR_RETURN(const CoreReport report,
                            node_.Run(options_, places_, isa::Encode(ready.program)));
    if (report.ranks.size() == 1) {
      PrintOne(ready.program, report);
    } else {
      PrintRanks(ready.program, report);
    }
    if (!options_.timeline.empty()) {
      TAHOMA_RETURN_IF_ERROR(WriteAtomically(options_.timeline, report.timeline, kFileMode));
    }
    return options_.data ? LoadOutputs(ready.program) : absl::OkStatus();
  }

 private:
  // All that is wrong with the command line for this program.
  absl::Status CheckOptions(const isa::Program& program) const {
    const auto ranks = static_cast<int>(options_.chips.size() * options_.cores.size());
    TAHOMA_RETURN_IF_ERROR(Annotate(isa::CheckRanks(program, ranks), options_.program));
    for (const auto& [name, file] : options_.in) {
      TAHOMA_RETURN_IF_ERROR(FindTensor(program, name, isa::Use::kInput).status());
    }
    for (const auto& [name, file] : options_.out) {
      TAHOMA_RETURN_IF_ERROR(FindTensor(program, name, isa::Use::kOutput).status());
      if (ranks == 1 || HasRank(file)) continue;
      return InvalidArgument("--out {}={}: {} ranks would write one file; expected {} in its name",
                             name, file, ranks, kRankMark);
    }
    if (!options_.data) return absl::OkStatus();
    for (const isa::Buffer& buffer : program.buffers) {
      const auto given = [&](const auto& in) { return in.first == buffer.name; };
      if (isa::IsInput(buffer.use) && std::ranges::none_of(options_.in, given)) {
        return InvalidArgument("input {} is missing: --in {}=FILE.npy, or --no-data", buffer.name,
                               buffer.name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status PlaceRanks(std::int64_t bytes) {
    TAHOMA_ASSIGN_OR_RETURN(const CoreReading claim, node_.Counters());
    for (const int chip : options_.chips) {
      TAHOMA_RETURN_IF_ERROR(PlaceOnChip(options_, claim, chip, bytes, places_));
    }
    return absl::OkStatus();
  }

  absl::Status StoreInputs(const isa::Program& program) {
    for (const auto& [name, file] : options_.in) {
      TAHOMA_ASSIGN_OR_RETURN(const isa::Buffer* tensor,
                              FindTensor(program, name, isa::Use::kInput));
      std::string elements;
      for (std::size_t rank = 0; rank < places_.size(); ++rank) {
        if (rank == 0 || HasRank(file)) {
          TAHOMA_ASSIGN_OR_RETURN(elements, ReadElements(FileOf(file, rank), *tensor));
        }
        TAHOMA_RETURN_IF_ERROR(Store(places_[rank], *tensor, elements));
      }
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<std::string> ReadElements(const std::string& path,
                                                  const isa::Buffer& tensor) {
    TAHOMA_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxArrayBytes));
    const auto array = ParseNpy(file);
    if (!array.ok()) return Annotate(array.status(), path);
    const auto elements = ElementsOf(*array, tensor);
    if (!elements.ok()) return Annotate(elements.status(), path);
    return elements;
  }

  absl::Status Store(const RankPlace& rank, const isa::Buffer& tensor,
                     const std::string& elements) {
    const std::uint64_t address = rank.address + static_cast<std::uint64_t>(*tensor.address);
    for (std::uint64_t at = 0; at < elements.size(); at += kMaxHostTransfer) {
      TAHOMA_RETURN_IF_ERROR(
          node_.Store(rank.chip, address + at, elements.substr(at, kMaxHostTransfer)));
    }
    return absl::OkStatus();
  }

  absl::Status LoadOutputs(const isa::Program& program) {
    for (const auto& [name, file] : options_.out) {
      TAHOMA_ASSIGN_OR_RETURN(const isa::Buffer* tensor,
                              FindTensor(program, name, isa::Use::kOutput));
      for (std::size_t rank = 0; rank < places_.size(); ++rank) {
        TAHOMA_ASSIGN_OR_RETURN(const std::string elements, Load(places_[rank], *tensor));
        TAHOMA_RETURN_IF_ERROR(
            WriteAtomically(FileOf(file, rank), MakeNpy(*tensor, elements), kFileMode));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Load(const RankPlace& rank, const isa::Buffer& tensor) {
    const std::uint64_t address = rank.address + static_cast<std::uint64_t>(*tensor.address);
    const auto bytes = static_cast<std::uint64_t>(isa::BytesOf(tensor));
    std::string elements;
    while (elements.size() < bytes) {
      TAHOMA_ASSIGN_OR_RETURN(
          const std::string part,
          node_.Load(rank.chip, address + elements.size(),
                     std::min<std::uint64_t>(bytes - elements.size(), kMaxHostTransfer)));
      if (part.empty()) return DataLoss("the sim-node sent no bytes of tensor {}", tensor.name);
      elements += part;
    }
    return elements;
  }

  static double Microseconds(std::int64_t ps) {
    constexpr double kPicosecondsPerMicrosecond = 1e6;
    return static_cast<double>(ps) / kPicosecondsPerMicrosecond;
  }

  // In percent.
  static double Share(std::int64_t ps, std::int64_t of_ps) {
    return of_ps == 0 ? 0.0 : 100 * static_cast<double>(ps) / static_cast<double>(of_ps);
  }

  void PrintTimes(const CoreReport& report, const CoreReport::Rank& busiest) const {
    out_ << fmt::format("time  {:.3f} us\n", Microseconds(report.time_ps));
    out_ << fmt::format("bound {:.3f} us ({:.1f} % of the time): {}\n",
                        Microseconds(busiest.bound_ps), Share(busiest.bound_ps, report.time_ps),
                        busiest.bound);
  }

  void PrintOne(const isa::Program& program, const CoreReport& report) const {
    const CoreReport::Rank& rank = report.ranks.front();
    out_ << fmt::format("{}: {} instructions on core {} of chip {}, profile {}\n", program.name,
                        report.instructions, rank.core, rank.chip, report.profile);
    PrintTimes(report, rank);
    out_ << fmt::format("{:<16}{:>14}{:>10}{:>15}\n", "resource", "busy(us)", "busy(%)",
                        "instructions");
    for (const CoreReport::Resource& one : WithOneDmaEngine(rank.resources)) {
      out_ << fmt::format("{:<16}{:>14.3f}{:>10.1f}{:>15}\n", one.name, Microseconds(one.busy_ps),
                          Share(one.busy_ps, report.time_ps), one.instructions);
    }
    PrintLeftOut(rank.left_out);
  }

  void PrintRanks(const isa::Program& program, const CoreReport& report) const {
    out_ << fmt::format("{}: {} instructions on each of {} ranks, profile {}\n", program.name,
                        report.instructions, report.ranks.size(), report.profile);
    out_ << fmt::format("{:>4}{:>6}{:>6}{:>14}{:>10}  {}\n", "rank", "chip", "core", "time(us)",
                        "busy(%)", "busiest");
    std::int64_t left_out = 0;
    for (std::size_t at = 0; at < report.ranks.size(); ++at) {
      const CoreReport::Rank& rank = report.ranks[at];
      out_ << fmt::format("{:>4}{:>6}{:>6}{:>14.3f}{:>10.1f}  {}\n", at, rank.chip, rank.core,
                          Microseconds(rank.time_ps), Share(rank.bound_ps, rank.time_ps),
                          rank.bound);
      left_out += rank.left_out;
    }
    PrintTimes(report, *std::ranges::max_element(report.ranks, {}, &CoreReport::Rank::bound_ps));
    PrintLeftOut(left_out);
  }

  void PrintLeftOut(std::int64_t intervals) const {
    if (intervals == 0 || options_.timeline.empty()) return;
    out_ << fmt::format("the timeline lacks its last {} intervals\n", intervals);
  }

  const TrnRunOptions& options_;
  CoreNode& node_;
  std::ostream& out_;
  std::vector<RankPlace> places_;  // by rank
};

}  // namespace

absl::StatusOr<TrnRunOptions> ParseRunArguments(const std::vector<std::string>& arguments) {
  TrnRunOptions options;
  TAHOMA_ASSIGN_OR_RETURN(
      std::vector<std::string> programs,
      ReadOptions("trn-run", arguments, ":h", kLongOptions.data(),
                  [&](int choice, std::string_view text) { return Apply(choice, text, options); }));
  if (options.help) return options;
  if (programs.size() != 1) {
    return InvalidArgument("{} programs are named; expected one: trn-run PROGRAM [OPTION…]",
                           programs.size());
  }
  options.program = std::move(programs.front());
  const std::size_t ranks = options.chips.size() * options.cores.size();
  if (ranks > isa::kRanksMax) {
    return InvalidArgument("{} chips of {} cores are {} ranks; at most {}", options.chips.size(),
                           options.cores.size(), ranks, isa::kRanksMax);
  }
  return options;
}

absl::Status ReadRounding(std::string_view enabled, std::string_view seed, TrnRunOptions& options) {
  if (options.rounding_seed || enabled.empty() || enabled == "0") return absl::OkStatus();
  if (enabled != "1") {
    return InvalidArgument("NEURON_RT_STOCHASTIC_ROUNDING_EN is \"{}\"; expected 0 or 1", enabled);
  }
  return ReadSeed("NEURON_RT_STOCHASTIC_ROUNDING_SEED", seed.empty() ? "0" : seed,
                  options.rounding_seed);
}

std::string TrnRunHelp() {
  return R"(Runs a program on one or more NeuronCores of the pod's claim, its ranks.

  trn-run PROGRAM [--in TENSOR=FILE.npy]… [--out TENSOR=FILE.npy]…

  --in TENSOR=FILE.npy   numbers for an input; float32 is rounded to the tensor's type
  --out TENSOR=FILE.npy  where to write an output; bf16 and fp8 become float32
  --chip N[,N-N]…        the claim's chips, from 0 (default 0)
  --core N[,N-N]…        the claim's cores on each of them, from 0 (default 0)
  --no-data              move no data and compute nothing: only the time
  --timeline FILE        write who worked when, for ui.perfetto.dev
  --binary FILE          write the program's binary form
  --stochastic-rounding SEED
                         round results stochastically, else to nearest even; or as AWS's runtime:
                         NEURON_RT_STOCHASTIC_ROUNDING_EN=1, NEURON_RT_STOCHASTIC_ROUNDING_SEED
  -h, --help             this text

Rank 0 is the first of these cores on the first of these chips. {rank} in a FILE is the number of
each rank; an input without it is for all ranks. PROGRAM is text or binary
(docs/formats/program.md). Exit status: 0, 1 when the run failed, 2 for
a wrong command line.
)";
}

int RunTrnRun(const TrnRunOptions& options, CoreNode& node, std::ostream& out, std::ostream& err) {
  const absl::Status done = Runner(options, node, out).Run();
  if (done.ok() && out.flush()) return 0;
  err << "trn-run: " << (done.ok() ? "the output cannot be written" : Message(done)) << "\n";
  return 1;
}

}  // namespace tahoma::sim
