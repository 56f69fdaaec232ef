#include "lib/isa/binary.h"

#include <bit>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"

namespace tahoma::isa {
namespace {

constexpr std::uint64_t kMemories = 3;
constexpr std::uint64_t kUses = 4;
constexpr std::uint64_t kElementTypes = static_cast<std::uint64_t>(ElementType::kFp32r) + 1;

// An unsigned number takes 7 bits a byte, the lowest first; every byte but the last has its highest
// bit set. A signed one is 2n, or -2n-1 below zero.
class BodyWriter {
 public:
  void Unsigned(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) Byte(value | 0x80U);
    Byte(value);
  }
  void Signed(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    Unsigned((bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void Count(std::size_t value, std::size_t most) {
    TAHOMA_CHECK(value <= most);
    Unsigned(value);
  }
  template <typename Enum>
  void Enumerator(Enum value) {
    Unsigned(static_cast<std::uint64_t>(value));
  }
  void Text(std::string_view text, std::size_t most) {
    Count(text.size(), most);
    bytes_ += text;
  }
  std::string Done() { return std::move(bytes_); }

 private:
  void Byte(std::uint64_t value) { bytes_ += static_cast<char>(static_cast<unsigned char>(value)); }

  std::string bytes_;
};

void Write(BodyWriter& body, const Step& step) {
  body.Signed(step.stride);
  body.Signed(step.count);
}

void Write(BodyWriter& body, const Buffer& buffer) {
  body.Text(buffer.name, kNameBytesMax);
  body.Enumerator(buffer.memory);
  body.Enumerator(buffer.use);
  body.Enumerator(buffer.type);
  body.Count(buffer.shape.size(), kDimensionsMax);
  for (const std::int64_t extent : buffer.shape) body.Signed(extent);
  body.Unsigned(static_cast<std::uint64_t>(buffer.core));
  body.Unsigned(buffer.address ? 1 : 0);
  if (buffer.address) body.Signed(*buffer.address);
}

void Write(BodyWriter& body, const View& view) {
  body.Enumerator(view.buffer);
  body.Signed(view.partition);
  body.Signed(view.offset);
  Write(body, view.rows);
  body.Count(view.free.size(), kFreeStepsMax);
  for (const Step& step : view.free) Write(body, step);
}

// Bit by bit the options that are not as Plain has them.
std::uint64_t OptionsOf(const Instruction& instruction) {
  const Instruction plain = Plain(RowOf(instruction.opcode));
  std::uint64_t options = 0;
  for (int at = 0; at < kOptionFields; ++at) {
    const auto field = static_cast<OptionField>(at);
    const bool given = field == OptionField::kNumbers
                           ? !instruction.numbers.empty()
                           : BitsOf(instruction, field) != BitsOf(plain, field);
    if (given) options |= std::uint64_t{1} << static_cast<unsigned>(at);
  }
  return options;
}

void Write(BodyWriter& body, const Instruction& instruction) {
  body.Enumerator(instruction.opcode);
  body.Enumerator(instruction.engine);
  body.Unsigned(static_cast<std::uint64_t>(instruction.core));
  const std::uint64_t options = OptionsOf(instruction);
  body.Unsigned(options);
  for (int at = 0; at < kOptionFields; ++at) {
    const auto field = static_cast<OptionField>(at);
    if ((options >> static_cast<unsigned>(at) & 1U) == 0) continue;
    if (field == OptionField::kNumbers) {
      body.Count(instruction.numbers.size(), kNumbersMax);
      for (const std::int64_t number : instruction.numbers) body.Signed(number);
    } else {
      body.Unsigned(BitsOf(instruction, field));
    }
  }
  body.Signed(instruction.line);
  body.Unsigned(instruction.left_out);
  body.Count(instruction.operands.size(), kOperandsMax);
  for (const View& view : instruction.operands) Write(body, view);
}

// Keeps the first error; after it every number is 0.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : body_(body) {}

  const absl::Status& status() const { return status_; }
  bool AtEnd() const { return at_ == body_.size(); }

  std::uint64_t Unsigned() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (AtEnd()) return Fail("it ends within a number");
      const auto byte = static_cast<unsigned char>(body_[at_++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte >= 0x80U) continue;
      // The tenth byte has room for one bit, and no number begins with zeros.
      if ((shift == 63 && byte > 1) || (byte == 0 && shift > 0)) break;
      return value;
    }
    return Fail("a number that is not in its shortest form or has more than 64 bits");
  }
  std::int64_t Signed() {
    const std::uint64_t bits = Unsigned();
    return static_cast<std::int64_t>((bits >> 1U) ^ (0 - (bits & 1U)));
  }
  template <typename Int>
  Int Small(std::string_view what) {
    const std::int64_t value = Signed();
    if (std::in_range<Int>(value)) return static_cast<Int>(value);
    return static_cast<Int>(Fail(fmt::format("{} {} does not fit", what, value)));
  }
  std::uint64_t Below(std::uint64_t bound, std::string_view what) {
    const std::uint64_t value = Unsigned();
    if (value < bound || !status_.ok()) return value;
    return Fail(fmt::format("{} {}; expected less than {}", what, value, bound));
  }
  template <typename Enum>
  Enum Enumerator(std::uint64_t bound, std::string_view what) {
    return static_cast<Enum>(Below(bound, what));
  }
  std::string Text(std::size_t most, std::string_view what) {
    const auto size = static_cast<std::size_t>(Below(most + 1, what));
    if (size > body_.size() - at_) Fail("it ends within a text");
    if (!status_.ok()) return {};
    at_ += size;
    return std::string(body_.substr(at_ - size, size));
  }
  std::uint64_t Fail(std::string_view why) {
    if (status_.ok()) status_ = InvalidArgument("byte {} of the program's body: {}", at_, why);
    at_ = body_.size();
    return 0;
  }

 private:
  std::string_view body_;
  std::size_t at_ = 0;
  absl::Status status_;
};

Step ReadStep(BodyReader& body) {
  const std::int64_t stride = body.Signed();
  return {.stride = stride, .count = body.Signed()};
}

Buffer ReadBuffer(BodyReader& body) {
  Buffer buffer = {.name = body.Text(kNameBytesMax, "bytes of a name")};
  buffer.memory = body.Enumerator<Memory>(kMemories, "memory");
  buffer.use = body.Enumerator<Use>(kUses, "use");
  buffer.type = body.Enumerator<ElementType>(kElementTypes, "type");
  for (auto left = body.Below(kDimensionsMax + 1, "dimensions"); left > 0; --left) {
    buffer.shape.push_back(body.Signed());
  }
  buffer.core = static_cast<int>(body.Below(kCoresMax, "core"));
  if (body.Below(2, "address") == 1) buffer.address = body.Signed();
  return buffer;
}

View ReadView(BodyReader& body, std::size_t buffers) {
  View view = {.buffer = body.Enumerator<BufferId>(buffers, "buffer")};
  view.partition = body.Small<int>("partition");
  view.offset = body.Signed();
  view.rows = ReadStep(body);
  for (auto left = body.Below(kFreeStepsMax + 1, "free steps"); left > 0; --left) {
    view.free.push_back(ReadStep(body));
  }
  return view;
}

void ReadOption(BodyReader& body, OptionField field, Instruction& instruction) {
  if (field != OptionField::kNumbers) {
    const std::uint64_t bits = body.Below(BoundOf(field), Name(field));
    if (body.status().ok()) SetBits(instruction, field, bits);
    return;
  }
  for (auto left = body.Below(kNumbersMax + 1, "numbers"); left > 0; --left) {
    instruction.numbers.push_back(body.Signed());
  }
}

Instruction ReadInstruction(BodyReader& body, std::size_t buffers) {
  Instruction instruction = Plain(RowOf(body.Enumerator<Opcode>(kOpcodes, "opcode")));
  instruction.engine = body.Enumerator<Engine>(kEngines, "engine");
  instruction.core = static_cast<int>(body.Below(kCoresMax, "core"));
  const std::uint64_t options = body.Below(std::uint64_t{1} << kOptionFields, "options");
  for (int at = 0; at < kOptionFields; ++at) {
    if ((options >> static_cast<unsigned>(at) & 1U) != 0) {
      ReadOption(body, static_cast<OptionField>(at), instruction);
    }
  }
  if (body.status().ok() && options != OptionsOf(instruction)) {
    body.Fail("an option that says what it says when it is left out");
  }
  instruction.line = body.Small<std::int32_t>("line");
  instruction.left_out = static_cast<std::uint8_t>(body.Below(256, "operands left out"));
  for (auto left = body.Below(kOperandsMax + 1, "operands"); left > 0; --left) {
    instruction.operands.push_back(ReadView(body, buffers));
  }
  return instruction;
}

std::string Header(std::string_view body) {
  std::string header(kBinaryMagic);
  header += static_cast<char>(kBinaryVersion & 0xffU);
  header += static_cast<char>(kBinaryVersion >> 8U);
  for (const std::uint8_t byte : Sha256(body)) header += static_cast<char>(byte);
  return header;
}

}  // namespace

std::string Encode(const Program& program) {
  BodyWriter body;
  body.Text(program.name, kProgramNameBytesMax);
  body.Count(program.buffers.size(), kBuffersMax);
  for (const Buffer& buffer : program.buffers) Write(body, buffer);
  body.Count(program.instructions.size(), kInstructionsMax);
  for (const Instruction& instruction : program.instructions) Write(body, instruction);
  const std::string bytes = body.Done();
  return Header(bytes) + bytes;
}

absl::StatusOr<Program> Decode(std::string_view bytes) {
  if (bytes.size() < kBinaryHeaderBytes || !bytes.starts_with(kBinaryMagic)) {
    return InvalidArgument("{} bytes that are no program: expected {} and a header of {} bytes",
                           bytes.size(), kBinaryMagic, kBinaryHeaderBytes);
  }
  const auto version = static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[4]) |
                                                  static_cast<unsigned char>(bytes[5]) << 8U);
  if (version != kBinaryVersion) {
    return Unimplemented("a program of version {}; this reader knows version {}", version,
                         kBinaryVersion);
  }
  const std::string_view content = bytes.substr(kBinaryHeaderBytes);
  if (bytes.substr(0, kBinaryHeaderBytes) != Header(content)) {
    return DataLoss("a damaged program: the SHA-256 of its {} bytes is not the header's",
                    content.size());
  }
  BodyReader body(content);
  Program program = {.name = body.Text(kProgramNameBytesMax, "bytes of a name")};
  for (auto left = body.Below(kBuffersMax + 1, "buffers"); left > 0 && body.status().ok(); --left) {
    program.buffers.push_back(ReadBuffer(body));
  }
  for (auto left = body.Below(kInstructionsMax + 1, "instructions"); left > 0 && body.status().ok();
       --left) {
    program.instructions.push_back(ReadInstruction(body, program.buffers.size()));
  }
  if (body.status().ok() && !body.AtEnd()) body.Fail("expected the end");
  if (!body.status().ok()) return body.status();
  return program;
}

}  // namespace tahoma::isa
