#include "sim-node/workload/trn_mem.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/config/size.h"
#include "sim-node/workload/arguments.h"

namespace tahoma::sim {
namespace {

constexpr int kAllOption = 256, kFromOption = 257, kNoCheckOption = 258;
constexpr std::array kLongOptions = {
    option{"minbytes", required_argument, nullptr, 'b'},
    option{"maxbytes", required_argument, nullptr, 'e'},
    option{"stepfactor", required_argument, nullptr, 'f'},
    option{"from", required_argument, nullptr, kFromOption},
    option{"all", no_argument, nullptr, kAllOption},
    option{"no-check", no_argument, nullptr, kNoCheckOption},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};

constexpr int kMaxChips = 131'072;  // of the largest gang
constexpr int kMaxPool = 64;        // chips of an UltraServer

// The places of the data in every chip's memory: each has room for the largest access.
constexpr std::uint64_t kPattern = 0, kArrived = kMaxMemBytes, kReadBack = 2 * kMaxMemBytes;

absl::Status ReadSize(std::string_view name, std::string_view text, std::uint64_t& into) {
  const auto bytes = config::ParseSize(text);
  if (!bytes.ok()) return Annotate(bytes.status(), name);
  if (*bytes > kMaxMemBytes) {
    return InvalidArgument("{} is {} bytes; expected at most {}", name, *bytes, kMaxMemBytes);
  }
  into = *bytes;
  return absl::OkStatus();
}

absl::Status Apply(int choice, std::string_view text, MemOptions& options) {
  switch (choice) {
    case 'b':
      return ReadSize("--minbytes", text, options.min_bytes);
    case 'e':
      return ReadSize("--maxbytes", text, options.max_bytes);
    case 'f':
      return ReadNumber("--stepfactor", text, 2, 1024, options.step_factor);
    case kFromOption:
      return ReadNumber("--from", text, 0, kMaxChips - 1, options.from);
    case kAllOption:
      options.all = true;
      return absl::OkStatus();
    case kNoCheckOption:
      options.check = false;
      return absl::OkStatus();
    default:
      options.help = true;
      return absl::OkStatus();
  }
}

std::string Pattern(int chip, int remote, std::uint64_t bytes) {
  Rng rng((static_cast<std::uint64_t>(chip) << 32U) + (static_cast<std::uint64_t>(remote) << 24U) +
          bytes);
  std::string pattern(bytes, '\0');
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t word = rng.Next();
    for (std::size_t i = at; i < std::min<std::size_t>(at + 8, bytes); ++i, word >>= 8U) {
      pattern[i] = static_cast<char>(word & 0xffU);
    }
  }
  return pattern;
}

// A chip that asks, with the chip that it reaches.
struct Pair {
  int chip = 0;
  int remote = 0;
};

class Rounds {
 public:
  Rounds(const MemOptions& options, const CommPlace& place, const CommJoined& joined, MemNode& node,
         std::ostream& out)
      : options_(options), place_(place), joined_(joined), node_(node), out_(out) {}

  // Returns the number of bytes that came back wrong.
  absl::StatusOr<std::uint64_t> Run() {
    std::uint64_t wrong = 0;
    bool titled = false;
    for (std::uint64_t bytes = options_.min_bytes; bytes <= options_.max_bytes;
         bytes *= options_.step_factor) {
      // All pods make as many rounds, also where an UltraServer has fewer chips of the gang.
      const auto rounds = static_cast<std::size_t>(std::min(joined_.chips, kMaxPool));
      for (std::size_t round = options_.all ? 1 : 0; round < rounds; ++round) {
        const std::vector<Pair> pairs = PairsOf(round);
        if (!pairs.empty() && !titled) Title();
        titled = titled || !pairs.empty();
        TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t more, RunOne(pairs, bytes));
        wrong += more;
      }
    }
    return wrong;
  }

 private:
  bool IsOwn(int chip) const {
    return chip >= joined_.first_chip && chip < joined_.first_chip + joined_.own_chips;
  }

  // Returns the pairs of this pod's chips in this round; none when all chips of their UltraServer
  // have been reached.
  std::vector<Pair> PairsOf(std::size_t round) const {
    const std::vector<int>& pool = joined_.pool;
    std::vector<Pair> pairs;
    for (std::size_t place = 0; place < pool.size() && round < pool.size(); ++place) {
      if (!IsOwn(pool[place])) continue;
      if (options_.all) {
        pairs.push_back({.chip = pool[place], .remote = pool[(place + round) % pool.size()]});
      } else if (pool[place] == options_.from) {
        pairs.push_back({.chip = pool[place], .remote = pool[round]});
      }
    }
    return pairs;
  }

  void Title() {
    out_ << fmt::format("{:>6}{:>6}{:>6}{:>12}{:>14}{:>14}{:>14}{:>14}{:>8}\n", "chip", "other",
                        "hops", "size(B)", "write(us)", "write(GB/s)", "read(us)", "read(GB/s)",
                        "wrong");
  }

  absl::StatusOr<std::vector<MemTaken>> AccessAll(const std::vector<Pair>& pairs, bool write,
                                                  std::uint64_t bytes) {
    std::vector<MemAccess> accesses;
    for (const Pair& pair : pairs) {
      accesses.push_back({.write = write,
                          .chip = pair.chip,
                          .address = write ? kPattern : kReadBack,
                          .remote_chip = pair.remote,
                          .remote_address = kArrived,
                          .bytes = bytes});
    }
    TAHOMA_ASSIGN_OR_RETURN(std::vector<MemTaken> taken,
                            node_.Access(place_, accesses, options_.check));
    if (taken.size() != pairs.size()) {
      return Internal("{} accesses were made; expected {}", taken.size(), pairs.size());
    }
    return taken;
  }

  absl::StatusOr<std::uint64_t> RunOne(const std::vector<Pair>& pairs, std::uint64_t bytes) {
    for (const Pair& pair : pairs) {
      if (!options_.check) break;
      TAHOMA_RETURN_IF_ERROR(node_.Store(pair.chip - joined_.first_chip, kPattern,
                                         Pattern(pair.chip, pair.remote, bytes)));
    }
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<MemTaken> written, AccessAll(pairs, true, bytes));
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<MemTaken> read, AccessAll(pairs, false, bytes));
    std::uint64_t all_wrong = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t wrong, CountWrong(pairs[i], bytes));
      all_wrong += wrong;
      const auto rate = [&](const MemTaken& taken) {
        return static_cast<double>(bytes) * 1e3 /
               static_cast<double>(std::max<std::int64_t>(taken.time_ps, 1));
      };
      out_ << fmt::format("{:>6}{:>6}{:>6}{:>12}{:>14.3f}{:>14.2f}{:>14.3f}{:>14.2f}{:>8}\n",
                          pairs[i].chip, pairs[i].remote, written[i].hops, bytes,
                          static_cast<double>(written[i].time_ps) / 1e6, rate(written[i]),
                          static_cast<double>(read[i].time_ps) / 1e6, rate(read[i]),
                          options_.check ? fmt::to_string(wrong) : "N/A");
    }
    return all_wrong;
  }

  absl::StatusOr<std::uint64_t> CountWrong(const Pair& pair, std::uint64_t bytes) {
    if (!options_.check) return 0;
    TAHOMA_ASSIGN_OR_RETURN(const std::string found,
                            node_.Load(pair.chip - joined_.first_chip, kReadBack, bytes));
    const std::string expected = Pattern(pair.chip, pair.remote, bytes);
    if (found.size() != expected.size()) return bytes;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) wrong += found[i] != expected[i] ? 1U : 0U;
    return wrong;
  }

  const MemOptions& options_;
  const CommPlace& place_;
  const CommJoined joined_;
  MemNode& node_;
  std::ostream& out_;
};

absl::StatusOr<std::uint64_t> JoinAndRun(const MemOptions& options, const CommPlace& place,
                                         MemNode& node, std::ostream& out) {
  TAHOMA_ASSIGN_OR_RETURN(const CommJoined joined, node.Join(place));
  absl::StatusOr<std::uint64_t> wrong =
      options.from < joined.chips ? Rounds(options, place, joined, node, out).Run()
                                  : InvalidArgument("--from is {}; the gang has chips 0 to {}",
                                                    options.from, joined.chips - 1);
  node.Leave(place);
  return wrong;
}

}  // namespace

absl::StatusOr<MemOptions> ParseMemArguments(const std::vector<std::string>& arguments) {
  MemOptions options;
  bool max_given = false;
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                          ReadOptions("trn-mem", arguments, ":b:e:f:h", kLongOptions.data(),
                                      [&](int choice, std::string_view text) {
                                        max_given = max_given || choice == 'e';
                                        return Apply(choice, text, options);
                                      }));
  if (options.help) return options;
  if (!others.empty()) {
    return InvalidArgument("\"{}\" is no option; see --help", others.front());
  }
  if (!max_given) options.max_bytes = options.min_bytes;
  if (options.min_bytes > options.max_bytes) {
    return InvalidArgument("--minbytes {} is more than --maxbytes {}", options.min_bytes,
                           options.max_bytes);
  }
  if (options.check && options.max_bytes > kMaxCheckedBytes) {
    return InvalidArgument("--maxbytes is {}; with a check expected at most {} (see --no-check)",
                           options.max_bytes, kMaxCheckedBytes);
  }
  return options;
}

std::string MemHelp() {
  return R"(trn-mem [options]

Writes the memory of other chips of the gang by DMA, reads it back, compares every byte, and prints
what each took. Chips are counted through the gang: pod 0's first, each pod's in their order.

  -b, --minbytes SIZE    first size, default 1M
  -e, --maxbytes SIZE    last size, default the first
  -f, --stepfactor N     multiplies from size to size, default 4
      --from CHIP        the chip that reaches every other of its UltraServer in turn, alone;
                         default 0
      --all              every chip reaches the one N places further in its UltraServer, all at
                         once, for every N
      --no-check         only time passes: larger sizes are possible
  -h, --help

GB/s columns count 1000000000 bytes. Environment: as nccom-test's.
)";
}

int RunTrnMem(const MemOptions& options, const CommPlace& place, MemNode& node, std::ostream& out,
              std::ostream& err) {
  const auto wrong = JoinAndRun(options, place, node, out);
  if (!wrong.ok()) {
    err << fmt::format("trn-mem: rank {}: {}\n", place.rank, Message(wrong.status()));
    return 1;
  }
  if (*wrong != 0) err << fmt::format("trn-mem: rank {}: {} bytes are wrong\n", place.rank, *wrong);
  return *wrong != 0 ? 1 : 0;
}

}  // namespace tahoma::sim
