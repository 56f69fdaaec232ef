// A program of a NeuronCore, or of the two of a logical core: buffers, and instructions on views of
// them.
//
//   Program program{.name = "copy"};
//   const BufferId a = program.Add({.name = "a", .memory = Memory::kHbm, .use = Use::kInput,
//                                   .type = ElementType::kBf16, .shape = {128, 512}});
//   const BufferId tile = program.Add({.name = "tile", .memory = Memory::kSbuf,
//                                      .type = ElementType::kBf16, .shape = {128, 512}});
//   program.instructions.push_back({.opcode = Opcode::kDmaCopy, .engine = Engine::kSync,
//                                   .operands = {program.Whole(tile), program.Whole(a)}});
//   TAHOMA_RETURN_IF_ERROR(CheckProgram(program));        // check.h
//   TAHOMA_ASSIGN_OR_RETURN(Assembled ready, Assemble(std::move(program)));   // assemble.h
//
// A program names no semaphores and few addresses: Assemble adds them. Its text form is text.h, its
// binary form binary.h (docs/formats/program.md).
//
// Scope: the values. What an instruction may have is in instruction.h, what it does and how long it
// takes in sim-node/emulator/core.
//
// Thread safety: values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/numeric/activation.h"
#include "lib/numeric/alu.h"
#include "lib/numeric/element.h"

namespace tahoma::isa {

using sim::Activation;
using sim::AluOp;
using sim::ElementType;
using sim::kAluOps;

// The size of a core's own memories (docs/reference/trainium2.md): SBUF has 128 partitions of 224
// KiB, PSUM 128 partitions of 8 banks of 2 KiB.
inline constexpr int kPartitions = 128;
inline constexpr std::int64_t kSbufBytes = std::int64_t{224} << 10U;  // of a partition
inline constexpr std::int64_t kPsumBankBytes = std::int64_t{2} << 10U;
inline constexpr std::int64_t kPsumBytes = 8 * kPsumBankBytes;
// The HBM of a chip, which every core of it reaches.
inline constexpr std::int64_t kHbmBytes = std::int64_t{96} << 30U;

// The physical cores of a logical core of LNC 2 (docs/reference/trainium2.md).
inline constexpr int kCoresMax = 2;

enum class Memory : std::uint8_t { kHbm, kSbuf, kPsum };
// The caller of a program fills inputs and takes outputs, which are in HBM; kInOut is both.
enum class Use : std::uint8_t { kInternal, kInput, kOutput, kInOut };

constexpr bool IsInput(Use use) { return use == Use::kInput || use == Use::kInOut; }
constexpr bool IsOutput(Use use) { return use == Use::kOutput || use == Use::kInOut; }
// "", "in", "out", "inout".
std::string_view Name(Use use);
// The engines of a core that take instructions, each in the order of the program. The instructions
// of DMA and collectives are in the stream of the engine that triggers them.
enum class Engine : std::uint8_t { kTensor, kVector, kScalar, kGpSimd, kSync };
inline constexpr int kEngines = 5;

enum class Opcode : std::uint8_t {
  kDmaCopy,
  kMatmul,
  kTensorCopy,
  kMemset,
  kTensorTensor,
  kCoreBarrier,
  kSendRecv,
  kTranspose,
  kStreamShuffle,
  kDmaTranspose,
  kIota,
  kAffineSelect,
  kLocalGather,
  kGather,
  kDmaCompute,
  kActivation,
  kActivationReduce,
  kReciprocal,
  kTensorReduce,
  kTensorPartitionReduce,
  kBnStats,
  kBnAggr,
  kMax8,
  kFindIndex8,
  kMatchReplace8,
  kTensorScalar,
  kScalarTensorTensor,
  kTensorScalarReduce,
  kTensorTensorScan,
  kTensorCopyPredicated,
  kTensorScalarCumulative,
  kRangeSelect,
  kDmaCopyIndirect,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
};
inline constexpr int kOpcodes = 37;

enum class BufferId : std::uint32_t {};

struct Buffer {
  std::string name = {};
  Memory memory = Memory::kHbm;
  Use use = Use::kInternal;
  ElementType type = ElementType::kFp32;
  // Elements, 1 to 5 dimensions, row-major. In SBUF and PSUM the first dimension is the partitions,
  // from partition 0; the others lie side by side in each partition.
  std::vector<std::int64_t> shape = {};
  // In HBM bytes from the program's first; else bytes in each partition.
  std::optional<std::int64_t> address = std::nullopt;
  int core = 0;  // of SBUF or PSUM; 0 in HBM
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// So many elements, each so many elements after the one before.
struct Step {
  std::int64_t stride = 1;
  std::int64_t count = 1;
  friend bool operator==(const Step&, const Step&) = default;
};

// Elements of a buffer, in the order in which an instruction takes them: partition by partition,
// in each the free steps, the outermost first.
//
// In SBUF and PSUM `partition` is the first of `rows.count` partitions, `rows.stride` is 1, and
// `offset` is the first element in each. In HBM `partition` is 0, `offset` counts from the buffer's
// first element, and each row begins `rows.stride` elements after the one before.
struct View {
  BufferId buffer{};
  int partition = 0;
  std::int64_t offset = 0;
  Step rows = {};
  std::vector<Step> free = {};  // 1 to 4

  std::int64_t FreeCount() const;  // elements of a row
  std::int64_t Count() const { return rows.count * FreeCount(); }
  // Elements of a row that lie side by side, from the first.
  std::int64_t AdjacentCount() const;
  friend bool operator==(const View&, const View&) = default;
};

struct Instruction {
  Opcode opcode = Opcode::kDmaCopy;
  Engine engine = Engine::kSync;
  // In the order of the instruction's row, written ones first; without those that are left out.
  std::vector<View> operands = {};
  std::uint8_t left_out = 0;  // bit i: operand i of the row is left out
  // Plain (instruction.h) gives the values of options that are left out.
  bool accumulate = false;
  bool is_transpose = false;
  bool stationary_onezero = false, moving_onezero = false;
  bool double_row = false;
  bool negate = false;
  bool reverse = false, reverse1 = false;
  AluOp op = AluOp::kAdd;
  std::optional<AluOp> op1 = std::nullopt;
  Activation function = Activation::kCopy;
  float value = 0, value1 = 0;
  std::vector<std::int64_t> numbers = {};
  bool scatter = false, skip = false;
  std::int32_t line = 0;  // of the text; 0: unknown
  int core = 0;

  // The operand of the row at that place; nullptr when the operand is left out.
  const View* Find(std::size_t row_operand) const;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct Program {
  std::string name = {};
  std::vector<Buffer> buffers = {};
  std::vector<Instruction> instructions = {};

  BufferId Add(Buffer buffer);
  int Cores() const;  // with instructions: 1 or 2
  const Buffer& Of(BufferId id) const { return buffers[static_cast<std::size_t>(id)]; }
  const Buffer& Of(const View& view) const { return Of(view.buffer); }
  // The buffer's elements in order: the rows are its first dimension, the others are one free step.
  // In HBM a buffer of one dimension is one row; in SBUF and PSUM it is one element a partition.
  View Whole(BufferId id) const;
  friend bool operator==(const Program&, const Program&) = default;
};

// "hbm", "sbuf", "psum".
std::string_view Name(Memory memory);
// "tensor", "vector", "scalar", "gpsimd", "sync".
std::string_view Name(Engine engine);

std::int64_t ElementsOf(const Buffer& buffer);
// The buffer's bytes: in HBM all, else in each partition.
std::int64_t BytesOf(const Buffer& buffer);

}  // namespace tahoma::isa
