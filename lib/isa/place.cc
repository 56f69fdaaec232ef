#include "lib/isa/place.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/isa/check.h"

namespace tahoma::isa {
namespace {

// From the first instruction that names a buffer to the last, both included.
struct Life {
  std::size_t first = SIZE_MAX;
  std::size_t last = 0;

  bool Named() const { return first != SIZE_MAX; }
  bool Meets(const Life& other) const {
    return Named() && other.Named() && first <= other.last && other.first <= last;
  }
};

std::vector<Life> LivesOf(const Program& program) {
  std::vector<Life> lives(program.buffers.size());
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    for (const View& view : program.instructions[at].operands) {
      Life& life = lives[static_cast<std::size_t>(view.buffer)];
      life.first = std::min(life.first, at);
      life.last = at;
    }
  }
  return lives;
}

constexpr std::int64_t UpTo(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Free bytes, and the instruction from which on they are free.
struct Gap {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t since = 0;
};

// Addresses that may be looked at for all buffers without one: a second's work. Gaps need no bound,
// a partition has at most some thousands.
constexpr std::size_t kComparedMax = std::size_t{1} << 26U;

enum class Choice : std::uint8_t { kFreeLongest, kLowest };

// The partitions of SBUF or PSUM, all alike, while the program goes on.
class Partition {
 public:
  Partition(const Program& program, const std::vector<Life>& lives, Memory memory, int core,
            Choice choice)
      : program_(program), lives_(lives), memory_(memory), choice_(choice) {
    gaps_ = {{.end = memory == Memory::kSbuf ? kSbufBytes : kPsumBytes}};
    for (std::size_t at = 0; at < program.buffers.size(); ++at) {
      const Buffer& buffer = program.buffers[at];
      if (buffer.memory == memory && buffer.core == core && buffer.address) fixed_.push_back(at);
    }
    std::ranges::sort(fixed_, {}, [&](std::size_t at) { return *program.buffers[at].address; });
  }

  // Buffers come in the order in which their lives begin.
  absl::StatusOr<std::int64_t> Place(std::size_t buffer) {
    const Life& life = lives_[buffer];
    while (!held_.empty() && lives_[held_.top().buffer].last < life.first) {
      Release(held_.top());
      held_.pop();
    }
    compared_ += fixed_.size();
    if (compared_ > kComparedMax) {
      return ResourceExhausted(
          "{}: until here {} addresses that the program gives were compared to find a place for "
          "other buffers, the most that is done; expected fewer addresses in {}, or one for each "
          "buffer",
          PlaceOf(program_, life.first), kComparedMax, Name(memory_));
    }
    const std::int64_t bytes = BytesToHold(program_.buffers[buffer]);
    const auto begin = Find(GapsFor(life), bytes);
    if (!begin) return NoRoom(buffer);
    Take(*begin, *begin + bytes);
    held_.push({.last = life.last, .buffer = buffer, .begin = *begin, .end = *begin + bytes});
    return *begin;
  }

 private:
  struct Held {
    std::size_t last = 0;
    std::size_t buffer = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool operator>(const Held& other) const {
      return std::pair(last, buffer) > std::pair(other.last, other.buffer);
    }
  };

  std::int64_t BytesToHold(const Buffer& buffer) const {
    const std::int64_t bytes = BytesOf(buffer);
    return memory_ == Memory::kPsum && bytes > kPsumBankBytes ? UpTo(bytes, kPsumBankBytes) : bytes;
  }

  // The first address from `begin` on for a buffer. PSUM's banks are not crossed.
  std::int64_t Aligned(std::int64_t begin, std::int64_t bytes) const {
    if (memory_ != Memory::kPsum) return UpTo(begin, kPlaceAlignment);
    if (bytes > kPsumBankBytes) return UpTo(begin, kPsumBankBytes);
    begin = UpTo(begin, 4);  // of the widest element
    const bool crosses = begin / kPsumBankBytes != (begin + bytes - 1) / kPsumBankBytes;
    return crosses ? UpTo(begin, kPsumBankBytes) : begin;
  }

  // The gaps without the places of buffers that have an address and live at the same time.
  std::vector<Gap> GapsFor(const Life& life) const {
    std::vector<Gap> left;
    auto next = fixed_.begin();
    for (Gap gap : gaps_) {
      for (; next != fixed_.end(); ++next) {
        const Buffer& buffer = program_.buffers[*next];
        const std::int64_t begin = *buffer.address;
        const std::int64_t end = begin + BytesOf(buffer);
        if (begin >= gap.end) break;
        if (end <= gap.begin || !life.Meets(lives_[*next])) continue;
        if (begin > gap.begin) left.push_back({gap.begin, begin, gap.since});
        gap.begin = std::max(gap.begin, end);
        if (gap.begin >= gap.end) break;  // the buffer may reach into the next gap
      }
      if (gap.begin < gap.end) left.push_back(gap);
    }
    return left;
  }

  std::optional<std::int64_t> Find(const std::vector<Gap>& gaps, std::int64_t bytes) const {
    std::optional<std::pair<std::size_t, std::int64_t>> best;
    for (std::size_t at = 0; at < gaps.size(); ++at) {
      const std::int64_t begin = Aligned(gaps[at].begin, bytes);
      if (begin >= gaps[at].end) continue;
      std::size_t since = gaps[at].since;
      std::size_t last = at;
      while (gaps[last].end < begin + bytes && last + 1 < gaps.size() &&
             gaps[last + 1].begin == gaps[last].end) {
        since = std::max(since, gaps[++last].since);
      }
      if (gaps[last].end < begin + bytes) continue;
      if (choice_ == Choice::kLowest) return begin;
      if (!best || std::pair(since, begin) < *best) best = {since, begin};
    }
    if (!best) return std::nullopt;
    return best->second;
  }

  void Take(std::int64_t begin, std::int64_t end) {
    std::vector<Gap> left;
    for (const Gap& gap : gaps_) {
      if (gap.begin < begin) left.push_back({gap.begin, std::min(gap.end, begin), gap.since});
      if (gap.end > end) left.push_back({std::max(gap.begin, end), gap.end, gap.since});
    }
    gaps_ = std::move(left);
  }

  void Release(const Held& held) {
    const Gap gap = {.begin = held.begin, .end = held.end, .since = held.last + 1};
    gaps_.insert(std::ranges::lower_bound(gaps_, gap.begin, {}, &Gap::begin), gap);
  }

  absl::Status NoRoom(std::size_t buffer) const {
    constexpr std::size_t kToldMax = 8;
    std::vector<std::string> there;
    const auto tell = [&](std::size_t at) {
      there.push_back(
          fmt::format("{} ({} bytes)", program_.buffers[at].name, BytesOf(program_.buffers[at])));
    };
    for (auto held = held_; !held.empty(); held.pop()) tell(held.top().buffer);
    for (const std::size_t at : fixed_) {
      if (lives_[at].Meets(lives_[buffer])) tell(at);
    }
    const std::size_t told = std::min(there.size(), kToldMax);
    std::string names = fmt::format(
        "{}", fmt::join(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(told), ", "));
    if (told < there.size()) names += fmt::format(" and {} more", there.size() - told);
    return ResourceExhausted("{}: {} has no room for {} bytes of a partition for {}; there live {}",
                             PlaceOf(program_, lives_[buffer].first), Name(memory_),
                             BytesOf(program_.buffers[buffer]), program_.buffers[buffer].name,
                             names.empty() ? "none" : names);
  }

  const Program& program_;
  const std::vector<Life>& lives_;
  Memory memory_;
  Choice choice_;
  std::size_t compared_ = 0;
  std::vector<Gap> gaps_;           // ascending
  std::vector<std::size_t> fixed_;  // buffers with an address, ascending by it
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
};

using Addresses = std::vector<std::optional<std::int64_t>>;

absl::Status PlaceOnChip(const Program& program, const std::vector<Life>& lives, Memory memory,
                         int core, Choice choice, Addresses& addresses) {
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < program.buffers.size(); ++at) {
    const Buffer& buffer = program.buffers[at];
    if (buffer.memory != memory || buffer.core != core || buffer.address) continue;
    addresses[at] = 0;  // unless an instruction names the buffer
    if (lives[at].Named()) order.push_back(at);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return lives[at].first; });
  Partition partition(program, lives, memory, core, choice);
  for (const std::size_t at : order) {
    TAHOMA_ASSIGN_OR_RETURN(addresses[at], partition.Place(at));
  }
  return absl::OkStatus();
}

absl::Status PlaceInHbm(const Program& program, const std::vector<Life>& lives,
                        Addresses& addresses) {
  std::int64_t end = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.memory == Memory::kHbm && buffer.address) {
      end = std::max(end, *buffer.address + BytesOf(buffer));
    }
  }
  for (std::size_t at = 0; at < program.buffers.size(); ++at) {
    const Buffer& buffer = program.buffers[at];
    if (buffer.memory != Memory::kHbm || buffer.address) continue;
    end = UpTo(end, kPlaceAlignment);
    const std::int64_t bytes = BytesOf(buffer);
    if (bytes > kHbmBytes - end) {
      return ResourceExhausted(
          "{}hbm has no room for {} bytes for {} after {} bytes for the buffers before; it has {}",
          lives[at].Named() ? PlaceOf(program, lives[at].first) + ": " : "", bytes, buffer.name,
          end, kHbmBytes);
    }
    addresses[at] = end;
    end += bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PlaceBuffers(Program& program) {
  const std::vector<Life> lives = LivesOf(program);
  Addresses addresses(program.buffers.size());
  TAHOMA_RETURN_IF_ERROR(PlaceInHbm(program, lives, addresses));
  for (int core = 0; core < kCoresMax; ++core) {
    for (const Memory memory : {Memory::kSbuf, Memory::kPsum}) {
      if (PlaceOnChip(program, lives, memory, core, Choice::kFreeLongest, addresses).ok()) continue;
      TAHOMA_RETURN_IF_ERROR(PlaceOnChip(program, lives, memory, core, Choice::kLowest, addresses));
    }
  }
  for (std::size_t at = 0; at < addresses.size(); ++at) {
    if (addresses[at]) program.buffers[at].address = addresses[at];
  }
  return absl::OkStatus();
}

}  // namespace tahoma::isa
