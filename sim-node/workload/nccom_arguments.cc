// The command line of nccom-test, and the sizes of a sweep.

#include <algorithm>
#include <array>
#include <limits>

#include "lib/base/status.h"
#include "lib/config/size.h"
#include "sim-node/workload/arguments.h"
#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {
namespace {

constexpr int kMaxRepeats = 1'000'000;
constexpr int kMaxNodes = 2048;           // pods, each with a chip in an UltraCluster
constexpr int kMaxWorkers = 8 * 131'072;  // logical cores of 2,048 UltraServers

// Codes of options without a letter.
enum LongOnly : int {
  kRedopOption = 256,
  kReportOption,
  kShowAlgorithmOption,
  kShowSizesOption,
  kShowBoundOption,
  kSeedOption,
  kGroupsOption,
  kPairsOption,
  kCountsOption,
  kDataParallelOption,
  kFirstIdleOption,  // the options of kIdle, in the order of kIdle
  kFirstRefusedOption = kFirstIdleOption + 64,
};
constexpr std::array kLongOptions = {
    option{"nworkers", required_argument, nullptr, 'r'},
    option{"nnodes", required_argument, nullptr, 'N'},
    option{"minbytes", required_argument, nullptr, 'b'},
    option{"maxbytes", required_argument, nullptr, 'e'},
    option{"stepbytes", required_argument, nullptr, 'i'},
    option{"stepfactor", required_argument, nullptr, 'f'},
    option{"iters", required_argument, nullptr, 'n'},
    option{"warmup_iters", required_argument, nullptr, 'w'},
    option{"neff_iters", required_argument, nullptr, 'I'},
    option{"neff_warmup_iters", required_argument, nullptr, 'W'},
    option{"datatype", required_argument, nullptr, 'd'},
    option{"check", optional_argument, nullptr, 'c'},
    option{"redop", required_argument, nullptr, kRedopOption},
    option{"seed", required_argument, nullptr, kSeedOption},
    option{"stats", required_argument, nullptr, 't'},
    option{"show-algorithm", no_argument, nullptr, kShowAlgorithmOption},
    option{"show-input-output-size", no_argument, nullptr, kShowSizesOption},
    option{"show-bound", no_argument, nullptr, kShowBoundOption},
    option{"report-to-json-file", required_argument, nullptr, kReportOption},
    option{"custom-replica-groups", required_argument, nullptr, kGroupsOption},
    option{"custom-src-target-pairs", required_argument, nullptr, kPairsOption},
    option{"variable-size-op-metadata", required_argument, nullptr, kCountsOption},
    option{"data-parallel-dimension", required_argument, nullptr, kDataParallelOption},
    option{"help", no_argument, nullptr, 'h'},
};

// Options of AWS's tool without effect here; docs/tasks/collectives.md says why.
constexpr std::array kIdle = {
    option{"non-interactive", no_argument, nullptr, 0},
    option{"debug", no_argument, nullptr, 0},
    option{"unique-buff", no_argument, nullptr, 0},
    option{"shared-output-buff", no_argument, nullptr, 0},
    option{"vcpu-pin-mode", no_argument, nullptr, 0},
    option{"data-collector-port", required_argument, nullptr, 0},
    option{"data-collector-host", required_argument, nullptr, 0},
};

struct Refused {
  const char* name;
  char letter;  // or 0
  std::string_view why;
};
constexpr std::string_view kOfTheGang =
    "the nodes are those of the gang, whose pods each run nccom-test";
constexpr std::string_view kOfSbuf = "buffers lie in HBM; SBUF is not emulated";
constexpr std::array kRefused = {
    Refused{"hosts", 's', kOfTheGang},
    Refused{"hosts-file", 0, kOfTheGang},
    Refused{"mpi-log-dir", 0, kOfTheGang},
    Refused{"slurm-mode", 'S', kOfTheGang},
    Refused{"slurm-vcpus-per-node", 'u', kOfTheGang},
    Refused{"slurm-setup-script", 0, kOfTheGang},
    Refused{"slurm-job-id", 0, kOfTheGang},
    Refused{"slurm-use-head-node-neuron-bench", 0, kOfTheGang},
    Refused{"sb2sb", 0, kOfSbuf},
    Refused{"input-shape", 0, kOfSbuf},
    Refused{"output-shape", 0, kOfSbuf},
    Refused{"cc-dim", 0, kOfSbuf},
    Refused{"coalesced-cc-size-ratio", 0, "an operation has one buffer"},
    Refused{"streams-json", 0, "operations run one after the other"},
};

// Returns the options for getopt_long, with an empty option at the end.
std::vector<option> AllLongOptions() {
  std::vector<option> all(kLongOptions.begin(), kLongOptions.end());
  for (std::size_t i = 0; i < kIdle.size(); ++i) {
    all.push_back(kIdle[i]);
    all.back().val = kFirstIdleOption + static_cast<int>(i);
  }
  // "optional" also fits an option without an argument.
  for (std::size_t i = 0; i < kRefused.size(); ++i) {
    all.push_back(
        {kRefused[i].name, optional_argument, nullptr, kFirstRefusedOption + static_cast<int>(i)});
  }
  all.push_back({nullptr, 0, nullptr, 0});
  return all;
}

absl::Status CheckRefused(int choice) {
  for (std::size_t i = 0; i < kRefused.size(); ++i) {
    const Refused& one = kRefused[i];
    if (choice != kFirstRefusedOption + static_cast<int>(i) &&
        (one.letter == 0 || choice != one.letter)) {
      continue;
    }
    return InvalidArgument("--{} is not taken: {}", one.name, one.why);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> ReadSize(std::string_view name, std::string_view text) {
  const auto bytes = config::ParseSize(text);
  return bytes.ok() ? bytes : Annotate(bytes.status(), name);
}

// Accepts "avg", and "p0" to "p100".
bool IsStat(std::string_view text) {
  if (text == "avg") return true;
  int percentile = 0;
  return text.starts_with('p') && ReadNumber("", text.substr(1), 0, 100, percentile).ok();
}

// Appends the statistics of a list such as "avg,p50" to `stats`.
absl::StatusOr<std::vector<std::string>> ParseStats(std::string_view text,
                                                    std::vector<std::string> stats) {
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    stats.emplace_back(text.substr(0, comma));
    if (!IsStat(stats.back())) {
      return InvalidArgument("--stats is \"{}\"; expected avg or percentiles, p0 to p100",
                             stats.back());
    }
    if (comma == text.size()) return stats;
    text.remove_prefix(comma + 1);
  }
}

bool Follows(const std::vector<std::string>& words, std::size_t back, std::string_view letter,
             std::string_view name) {
  return words.size() >= back &&
         (words[words.size() - back] == letter || words[words.size() - back] == name);
}

// AWS's tool takes several words after --stats; these become a single word, joined by commas. AWS's
// tool also takes a word after --check, where getopt wants an equals sign.
std::vector<std::string> WithWordsJoined(const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (const std::string& word : arguments) {
    if (Follows(joined, 2, "-t", "--stats") && IsStat(word)) {
      joined.back() += "," + word;
    } else if (Follows(joined, 1, "-c", "--check") && (word == "random" || word == "all_ones")) {
      joined.back() = "--check=" + word;
    } else {
      joined.push_back(word);
    }
  }
  return joined;
}

absl::Status ApplyCheck(std::string_view text, NccomOptions& options) {
  if (!text.empty() && text != "random" && text != "all_ones") {
    return InvalidArgument("--check is \"{}\"; expected random or all_ones", text);
  }
  options.check = true;
  options.ones = text == "all_ones";
  return absl::OkStatus();
}

absl::Status Apply(int choice, std::string_view text, NccomOptions& options) {
  const auto set = [](auto& field, auto parsed) -> absl::Status {
    if (parsed.ok()) field = *parsed;
    return parsed.status();
  };
  switch (choice) {
    case 'r':
      return ReadNumber("--nworkers", text, 1, kMaxWorkers, options.workers);
    case 'N':
      return ReadNumber("--nnodes", text, 1, kMaxNodes, options.nodes);
    case 'b':
      return set(options.min_bytes, ReadSize("--minbytes", text));
    case 'e':
      return set(options.max_bytes, ReadSize("--maxbytes", text));
    case 'i':
      return set(options.step_bytes, ReadSize("--stepbytes", text));
    case 'f':
      return set(options.step_factor, ReadSize("--stepfactor", text));
    case 'n':
      return ReadNumber("--iters", text, 1, kMaxRepeats, options.iterations);
    case 'w':
      return ReadNumber("--warmup_iters", text, 0, kMaxRepeats, options.warmup);
    case 'd':
      options.type = text;
      return absl::OkStatus();
    case 'I':
      return ReadNumber("--neff_iters", text, 1, kMaxRepeats, options.runs);
    case 'W':
      return ReadNumber("--neff_warmup_iters", text, 0, kMaxRepeats, options.warmup_runs);
    case 'c':
      return ApplyCheck(text, options);
    case kGroupsOption:
      options.groups_file = text;
      return absl::OkStatus();
    case kPairsOption:
      options.pairs_file = text;
      return absl::OkStatus();
    case kCountsOption:
      options.counts_file = text;
      return absl::OkStatus();
    case kDataParallelOption:
      return ReadNumber("--data-parallel-dimension", text, 1, kMaxWorkers, options.data_parallel);
    case kRedopOption:
      options.redop = text;
      return absl::OkStatus();
    case 't':
      return set(options.stats, ParseStats(text, std::move(options.stats)));
    case kSeedOption:
      return ReadNumber("--seed", text, 0, std::numeric_limits<int>::max(), options.seed);
    case kShowAlgorithmOption:
      options.show_algorithm = true;
      return absl::OkStatus();
    case kShowSizesOption:
      options.show_sizes = true;
      return absl::OkStatus();
    case kShowBoundOption:
      options.show_bound = true;
      return absl::OkStatus();
    case kReportOption:
      options.json_report = text;
      return absl::OkStatus();
    case 'h':
      options.help = true;
      return absl::OkStatus();
    default:
      return CheckRefused(choice);
  }
}

// Refuses options that exclude each other, and options without another option that they need.
absl::Status CheckTogether(const NccomOptions& options) {
  const std::string& operation = options.operation;
  if (operation == "all_gatherv" || operation == "allgv") {
    return InvalidArgument("{} is not emulated; expected all_gather or alltoallv", operation);
  }
  const bool counts = operation == "alltoallv" || operation == "all_to_all_v";
  if (!options.counts_file.empty() && !counts) {
    return InvalidArgument("--variable-size-op-metadata is for alltoallv, not for {}", operation);
  }
  if (!options.pairs_file.empty() && operation != "permute") {
    return InvalidArgument("--custom-src-target-pairs is for permute, not for {}", operation);
  }
  const int divisions = static_cast<int>(!options.groups_file.empty()) +
                        static_cast<int>(!options.pairs_file.empty()) +
                        static_cast<int>(options.data_parallel != 0);
  if (divisions > 1) {
    return InvalidArgument(
        "expected one of --custom-replica-groups, --custom-src-target-pairs and "
        "--data-parallel-dimension, got {}",
        divisions);
  }
  if (options.warmup_runs != 0 && options.runs == 0) {
    return InvalidArgument("--neff_warmup_iters needs --neff_iters");
  }
  if (std::int64_t{options.iterations} * options.MeasuredRuns() > kMaxRepeats ||
      options.WarmupOperations() > kMaxRepeats) {
    return InvalidArgument("more than {} operations in all", kMaxRepeats);
  }
  return absl::OkStatus();
}

}  // namespace

std::int64_t NccomOptions::WarmupOperations() const {
  return std::int64_t{warmup} * MeasuredRuns() + (std::int64_t{warmup} + iterations) * warmup_runs;
}

absl::StatusOr<NccomOptions> ParseNccomArguments(const std::vector<std::string>& arguments) {
  NccomOptions options;
  options.stats.clear();
  const std::vector<option> long_options = AllLongOptions();
  TAHOMA_ASSIGN_OR_RETURN(
      std::vector<std::string> operations,
      ReadOptions("nccom-test", WithWordsJoined(arguments), ":r:N:b:e:i:f:n:w:I:W:d:t:c::hsSu",
                  long_options.data(),
                  [&](int choice, std::string_view text) { return Apply(choice, text, options); }));
  if (options.stats.empty()) options.stats = NccomOptions().stats;
  if (options.help) return options;
  if (operations.size() != 1) {
    return InvalidArgument("expected one operation (allr, allg, redsct, ...), got {}; see --help",
                           operations.size());
  }
  options.operation = std::move(operations.front());
  TAHOMA_RETURN_IF_ERROR(CheckTogether(options));
  return options;
}

std::string NccomHelp() {
  return R"(nccom-test OPERATION [options]

OPERATION: all_reduce (allr), all_gather (allg), reduce_scatter (redsct), all_to_all (alltoall),
           alltoallv (blocks of different sizes), sendrecv (each rank to the next, the last to the
           first), permute (from chip to chip round a ring, or by pairs), broadcast (from
           rank 0)

  -r, --nworkers N        workers (logical cores) in all; default: all of the claim
  -N, --nnodes N          pods; must be the size of the gang
  -b, --minbytes SIZE     first size, default 32M
  -e, --maxbytes SIZE     last size, default 32M
  -i, --stepbytes SIZE    added from size to size; default: a tenth of the range
  -f, --stepfactor N      multiplies from size to size
  -n, --iters N           operations measured, default 20
  -w, --warmup_iters N    operations before, default 5
  -I, --neff_iters N      times that all these are done
  -W, --neff_warmup_iters N
                          times more before, not measured
  -d, --datatype TYPE     uint8 int8 fp8_e3m4 fp8_e4m3 fp8_e5m2 uint16 int16 fp16 bf16 uint32 int32
                          fp32 fp32r, default uint8
  -c, --check [random|all_ones]
                          move real data and compare every element; default: random
      --seed N            of the checked data; default: the size
      --redop OP          sum, max or min, default sum
      --custom-replica-groups FILE
                          groups of ranks that work side by side:
                          {"replica_groups": [[[0, 1], [2, 3]]]}
      --data-parallel-dimension N
                          the same with N ranks in each group, at equal distances
      --custom-src-target-pairs FILE
                          of permute: {"src_target_pairs": [[[0, 1], [1, 0]]]}
      --variable-size-op-metadata FILE
                          of alltoallv, in elements: {"metadata": [{"send_counts": [512, 1024],
                          "send_displs": [0, 512]}]}; one entry for all ranks, or one for each
  -t, --stats STATS       of the times: avg and percentiles, for example avg p50 p99. Virtual time
                          has no noise, so all of them are the same
      --show-algorithm    a column for it
      --show-bound        a column for what links, NICs and uplinks need at least
      --show-input-output-size
                          columns for the bytes that a rank puts in and gets out
      --report-to-json-file FILE

Accepted, without effect: --non-interactive, --debug, --unique-buff, --shared-output-buff,
--vcpu-pin-mode, --data-collector-port, --data-collector-host. GB/s columns count 1073741824 bytes,
as AWS's tool does. Environment: TAHOMA_NODE_SOCKET, TAHOMA_CLAIM_TOKEN, TAHOMA_RANK,
TAHOMA_WORLD_SIZE, TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID.
)";
}

absl::StatusOr<std::vector<std::uint64_t>> NccomSizes(const NccomOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    return InvalidArgument("--minbytes {} is more than --maxbytes {}", options.min_bytes,
                           options.max_bytes);
  }
  if (options.step_factor == 1) return InvalidArgument("--stepfactor is 1; expected 2 or more");
  const std::uint64_t step =
      options.step_bytes != 0
          ? options.step_bytes
          : std::max<std::uint64_t>((options.max_bytes - options.min_bytes) / 10, 1);
  std::vector<std::uint64_t> sizes;
  const std::size_t element = ElementBytes(options.type);
  for (std::uint64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes = options.step_factor != 0 ? bytes * options.step_factor : bytes + step) {
    if (sizes.size() == kMaxSizes) {
      return InvalidArgument("more than {} sizes; take larger steps", kMaxSizes);
    }
    const std::uint64_t whole = std::max<std::uint64_t>(bytes / element, 1) * element;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  }
  return sizes;
}

std::size_t ElementBytes(std::string_view type) {
  if (type.ends_with("8") || type.starts_with("fp8")) return 1;
  return type.ends_with("16") ? 2 : 4;
}

}  // namespace tahoma::sim
