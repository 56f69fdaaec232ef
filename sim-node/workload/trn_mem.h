// trn-mem: writes other chips' memory by DMA, reads back, checks, and prints the times.
//
//   auto options = ParseMemArguments({"-b", "64K", "-e", "16M", "-f", "16", "--from", "3"});
//   const int status = RunTrnMem(*options, place, node, std::cout, std::cerr);
//
// Every pod of the gang runs trn-mem with the same options. A chip reaches every chip of the gang
// in its UltraServer in turn. With --all, every chip at once reaches the chip at the same distance
// in order.
//
// Bytes really move: the host puts a pattern into the chip's memory; the chip writes the pattern to
// the other chip and reads it back to another place; the host compares. Times are the emulator's.
//
// Thread safety: none.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {

// The most bytes of a checked access: a call of the host carries no more.
inline constexpr std::uint64_t kMaxCheckedBytes = std::uint64_t{32} << 20U;
// The most bytes of an access.
inline constexpr std::uint64_t kMaxMemBytes = std::uint64_t{1} << 30U;

struct MemOptions {
  std::uint64_t min_bytes = 1 << 20;
  std::uint64_t max_bytes = 1 << 20;
  std::uint64_t step_factor = 4;
  int from = 0;      // the asking chip, numbered within the communicator
  bool all = false;  // every chip asks
  bool check = true;
  bool help = false;
};

// Reads arguments without the program's name. kInvalidArgument names the wrong option and the
// error.
absl::StatusOr<MemOptions> ParseMemArguments(const std::vector<std::string>& arguments);
std::string MemHelp();

struct MemAccess {
  bool write = false;
  int chip = 0;  // as the communicator counts
  std::uint64_t address = 0;
  int remote_chip = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t bytes = 0;
};
struct MemTaken {
  std::int64_t time_ps = 0;
  int hops = 0;
};

// The sim-node of this pod.
class MemNode {
 public:
  virtual ~MemNode() = default;
  virtual absl::StatusOr<CommJoined> Join(const CommPlace& place) = 0;
  // Store and Load are the host's access to the pod's own chip `chip`, counted from 0.
  virtual absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) = 0;
  virtual absl::StatusOr<std::string> Load(int chip, std::uint64_t address,
                                           std::uint64_t bytes) = 0;
  // Returns the time and hops of each access, in order. All pods must call Access.
  virtual absl::StatusOr<std::vector<MemTaken>> Access(const CommPlace& place,
                                                       const std::vector<MemAccess>& accesses,
                                                       bool move) = 0;
  virtual void Leave(const CommPlace& place) = 0;
};

// Joins, runs every size and leaves; prints the rows of this pod's chips. Returns the exit status:
// 0, or 1 after an error (printed) or a wrong byte.
int RunTrnMem(const MemOptions& options, const CommPlace& place, MemNode& node, std::ostream& out,
              std::ostream& err);

}  // namespace tahoma::sim
