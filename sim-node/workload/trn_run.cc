#include "sim-node/workload/trn_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "sim-node/workload/arguments.h"
#include "sim-node/workload/npy.h"

namespace tahoma::sim {
namespace {

constexpr int kInOption = 256, kOutOption = 257, kChipOption = 258, kCoreOption = 259,
              kNoDataOption = 260, kTimelineOption = 261, kBinaryOption = 262;
constexpr std::array kLongOptions = {
    option{"in", required_argument, nullptr, kInOption},
    option{"out", required_argument, nullptr, kOutOption},
    option{"chip", required_argument, nullptr, kChipOption},
    option{"core", required_argument, nullptr, kCoreOption},
    option{"no-data", no_argument, nullptr, kNoDataOption},
    option{"timeline", required_argument, nullptr, kTimelineOption},
    option{"binary", required_argument, nullptr, kBinaryOption},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};
constexpr int kMaxNumber = 127;
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

absl::Status Apply(int choice, std::string_view text, TrnRunOptions& options) {
  switch (choice) {
    case kInOption:
      return ReadFiles("--in", text, options.in);
    case kOutOption:
      return ReadFiles("--out", text, options.out);
    case kChipOption:
      return ReadNumber("--chip", text, 0, kMaxNumber, options.chip);
    case kCoreOption:
      return ReadNumber("--core", text, 0, kMaxNumber, options.core);
    case kNoDataOption:
      options.data = false;
      return absl::OkStatus();
    case kTimelineOption:
      options.timeline = text;
      return absl::OkStatus();
    case kBinaryOption:
      options.binary = text;
      return absl::OkStatus();
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
    for (const auto& [name, file] : options_.out) {
      TAHOMA_RETURN_IF_ERROR(FindTensor(ready.program, name, isa::Use::kOutput).status());
    }
    TAHOMA_RETURN_IF_ERROR(StoreInputs(ready.program));
    TAHOMA_ASSIGN_OR_RETURN(const CoreReport report,
                            node_.Run(options_, isa::Encode(ready.program)));
    Print(ready.program, report);
    if (!options_.timeline.empty()) {
      TAHOMA_RETURN_IF_ERROR(WriteAtomically(options_.timeline, report.timeline, kFileMode));
    }
    return options_.data ? LoadOutputs(ready.program) : absl::OkStatus();
  }

 private:
  absl::Status StoreInputs(const isa::Program& program) {
    std::vector<std::string> given;
    for (const auto& [name, path] : options_.in) {
      TAHOMA_ASSIGN_OR_RETURN(const isa::Buffer* tensor,
                              FindTensor(program, name, isa::Use::kInput));
      TAHOMA_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxArrayBytes));
      const auto array = ParseNpy(file);
      if (!array.ok()) return Annotate(array.status(), path);
      const auto elements = ElementsOf(*array, *tensor);
      if (!elements.ok()) return Annotate(elements.status(), path);
      TAHOMA_RETURN_IF_ERROR(Store(*tensor, *elements));
      given.push_back(name);
    }
    if (!options_.data) return absl::OkStatus();
    for (const isa::Buffer& buffer : program.buffers) {
      if (isa::IsInput(buffer.use) && std::ranges::find(given, buffer.name) == given.end()) {
        return InvalidArgument("input {} is missing: --in {}=FILE.npy, or --no-data", buffer.name,
                               buffer.name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Store(const isa::Buffer& tensor, const std::string& elements) {
    const auto address = static_cast<std::uint64_t>(*tensor.address);
    for (std::uint64_t at = 0; at < elements.size(); at += kMaxHostTransfer) {
      TAHOMA_RETURN_IF_ERROR(
          node_.Store(options_.chip, address + at, elements.substr(at, kMaxHostTransfer)));
    }
    return absl::OkStatus();
  }

  absl::Status LoadOutputs(const isa::Program& program) {
    for (const auto& [name, path] : options_.out) {
      TAHOMA_ASSIGN_OR_RETURN(const isa::Buffer* tensor,
                              FindTensor(program, name, isa::Use::kOutput));
      const auto bytes = static_cast<std::uint64_t>(isa::BytesOf(*tensor));
      std::string elements;
      while (elements.size() < bytes) {
        TAHOMA_ASSIGN_OR_RETURN(
            const std::string part,
            node_.Load(options_.chip,
                       static_cast<std::uint64_t>(*tensor->address) + elements.size(),
                       std::min<std::uint64_t>(bytes - elements.size(), kMaxHostTransfer)));
        if (part.empty()) return DataLoss("the sim-node sent no bytes of tensor {}", name);
        elements += part;
      }
      TAHOMA_RETURN_IF_ERROR(WriteAtomically(path, MakeNpy(*tensor, elements), kFileMode));
    }
    return absl::OkStatus();
  }

  void Print(const isa::Program& program, const CoreReport& report) const {
    constexpr double kPicosecondsPerMicrosecond = 1e6;
    const auto microseconds = [](std::int64_t ps) {
      return static_cast<double>(ps) / kPicosecondsPerMicrosecond;
    };
    const auto share = [&](std::int64_t ps) {
      return report.time_ps == 0
                 ? 0.0
                 : 100 * static_cast<double>(ps) / static_cast<double>(report.time_ps);
    };
    out_ << fmt::format("{}: {} instructions on core {} of chip {}, profile {}\n", program.name,
                        report.instructions, report.core, report.chip, report.profile);
    out_ << fmt::format("time  {:.3f} us\n", microseconds(report.time_ps));
    out_ << fmt::format("bound {:.3f} us ({:.1f} % of the time): {}\n",
                        microseconds(report.bound_ps), share(report.bound_ps), report.bound);
    out_ << fmt::format("{:<16}{:>14}{:>10}{:>15}\n", "resource", "busy(us)", "busy(%)",
                        "instructions");
    for (const CoreReport::Resource& one : WithOneDmaEngine(report.resources)) {
      out_ << fmt::format("{:<16}{:>14.3f}{:>10.1f}{:>15}\n", one.name, microseconds(one.busy_ps),
                          share(one.busy_ps), one.instructions);
    }
    if (report.left_out > 0 && !options_.timeline.empty()) {
      out_ << fmt::format("the timeline lacks its last {} intervals\n", report.left_out);
    }
  }

  const TrnRunOptions& options_;
  CoreNode& node_;
  std::ostream& out_;
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
  return options;
}

std::string TrnRunHelp() {
  return R"(Runs a program on a NeuronCore of the pod's claim.

  trn-run PROGRAM [--in TENSOR=FILE.npy]… [--out TENSOR=FILE.npy]…

  --in TENSOR=FILE.npy   numbers for an input; float32 is rounded to the tensor's type
  --out TENSOR=FILE.npy  where to write an output; bf16 and fp8 become float32
  --chip N               the claim's chip, from 0 (default 0)
  --core N               the claim's core on the chip, from 0 (default 0)
  --no-data              move no data and compute nothing: only the time
  --timeline FILE        write who worked when, for ui.perfetto.dev
  --binary FILE          write the program's binary form
  -h, --help             this text

PROGRAM is text or binary (docs/formats/program.md). Exit status: 0, 1 when the run failed, 2 for
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
