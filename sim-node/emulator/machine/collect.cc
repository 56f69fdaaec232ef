#include "sim-node/emulator/machine/collect.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/numeric/alu.h"
#include "lib/numeric/convert.h"
#include "lib/numeric/element.h"

namespace tahoma::sim {
namespace {

// Bounds what is kept on the host, whatever the size of the tensors.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20U;

class Collector {
 public:
  Collector(const isa::Program& program, const isa::Instruction& collective,
            std::span<HbmPort* const> group)
      : type_(program.Of(collective.operands[0]).type),
        op_(collective.op),
        to_(AddressOf(program, collective.operands[0])),
        from_(AddressOf(program, collective.operands[1])),
        sent_(BytesOf(program, collective.operands[1])),
        group_(group) {}

  // The sum of all members' bytes from `at` on goes to place `into` of the members.
  absl::Status Reduce(std::uint64_t at, std::uint64_t bytes, std::span<HbmPort* const> into,
                      std::uint64_t place) const {
    return ForEachPiece(bytes, [&](std::uint64_t done, std::uint64_t length) -> absl::Status {
      std::vector<std::byte> piece(length);
      std::vector<float> sum(length / Size(type_));
      std::vector<float> next(sum.size());
      for (std::size_t member = 0; member < group_.size(); ++member) {
        TAHOMA_RETURN_IF_ERROR(group_[member]->Read(from_ + at + done, piece));
        Widen(type_, piece.data(), member == 0 ? sum : next);
        if (member > 0) Apply(op_, sum, next, /*reversed=*/false);
      }
      Narrow(type_, sum, piece.data());
      for (HbmPort* port : into) {
        TAHOMA_RETURN_IF_ERROR(port->Write(to_ + place + done, piece));
      }
      return absl::OkStatus();
    });
  }

  // One member's bytes from `at` on go to place `into` of the members.
  absl::Status Copy(std::size_t member, std::uint64_t at, std::uint64_t bytes,
                    std::span<HbmPort* const> into, std::uint64_t place) const {
    return ForEachPiece(bytes, [&](std::uint64_t done, std::uint64_t length) -> absl::Status {
      std::vector<std::byte> piece(length);
      TAHOMA_RETURN_IF_ERROR(group_[member]->Read(from_ + at + done, piece));
      for (HbmPort* port : into) {
        TAHOMA_RETURN_IF_ERROR(port->Write(to_ + place + done, piece));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Run(isa::Opcode opcode) const {
    const std::uint64_t block = sent_ / group_.size();  // of a member, where there are blocks
    if (opcode == isa::Opcode::kAllReduce) return Reduce(0, sent_, group_, 0);
    for (std::size_t member = 0; member < group_.size(); ++member) {
      const std::span<HbmPort* const> one = group_.subspan(member, 1);
      if (opcode == isa::Opcode::kAllGather) {
        TAHOMA_RETURN_IF_ERROR(Copy(member, 0, sent_, group_, member * sent_));
      } else if (opcode == isa::Opcode::kReduceScatter) {
        TAHOMA_RETURN_IF_ERROR(Reduce(member * block, block, one, 0));
      } else {
        TAHOMA_CHECK(opcode == isa::Opcode::kAllToAll);
        for (std::size_t other = 0; other < group_.size(); ++other) {
          TAHOMA_RETURN_IF_ERROR(Copy(other, member * block, block, one, other * block));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static std::uint64_t AddressOf(const isa::Program& program, const isa::View& view) {
    const isa::Buffer& buffer = program.Of(view);
    return static_cast<std::uint64_t>(*buffer.address) +
           static_cast<std::uint64_t>(view.offset) * Size(buffer.type);
  }
  static std::uint64_t BytesOf(const isa::Program& program, const isa::View& view) {
    return static_cast<std::uint64_t>(view.Count()) * Size(program.Of(view).type);
  }

  template <typename Each>
  static absl::Status ForEachPiece(std::uint64_t bytes, const Each& each) {
    for (std::uint64_t done = 0; done < bytes; done += kPieceBytes) {
      TAHOMA_RETURN_IF_ERROR(each(done, std::min(bytes - done, kPieceBytes)));
    }
    return absl::OkStatus();
  }

  const ElementType type_;
  const AluOp op_;
  const std::uint64_t to_;
  const std::uint64_t from_;
  const std::uint64_t sent_;  // bytes of a member
  const std::span<HbmPort* const> group_;
};

}  // namespace

absl::Status Collect(const isa::Program& program, const isa::Instruction& collective,
                     std::span<HbmPort* const> group) {
  return Collector(program, collective, group).Run(collective.opcode);
}

}  // namespace tahoma::sim
