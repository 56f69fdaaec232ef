#include "lib/isa/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

constexpr std::string_view kAp = ".ap";
constexpr std::string_view kCoreWord = "core";

// The words that begin the line of a buffer, by memory.
constexpr std::array<std::string_view, 3> kBufferWords = {"tensor", "sbuf", "psum"};

// A word as an error repeats it.
std::string_view Short(std::string_view word) { return word.substr(0, kNameBytesMax); }

bool IsWordByte(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-'; }

// Reads one line from left to right.
class LineReader {
 public:
  LineReader(std::string_view line, int number)
      : line_(line.substr(0, line.find('#'))), number_(number) {}

  int number() const { return number_; }

  bool AtEnd() {
    SkipBlanks();
    return at_ == line_.size();
  }

  // Letters, digits, _ . - up to the next other byte; perhaps none.
  std::string_view Word() {
    SkipBlanks();
    begin_ = at_;
    while (at_ < line_.size() && IsWordByte(line_[at_])) ++at_;
    return line_.substr(begin_, at_ - begin_);
  }

  // The word without going on.
  std::string_view NextWord() {
    LineReader ahead = *this;
    return ahead.Word();
  }

  // 0 at the end.
  char NextByte() { return AtEnd() ? '\0' : line_[at_]; }

  bool Take(std::string_view mark) {
    SkipBlanks();
    if (!line_.substr(at_).starts_with(mark)) return false;
    begin_ = at_;
    at_ += mark.size();
    return true;
  }

  absl::Status Expect(std::string_view mark) {
    if (Take(mark)) return absl::OkStatus();
    return WrongNext(fmt::format("expected {}", mark));
  }

  std::optional<std::int64_t> TakeNumber() {
    SkipBlanks();
    std::int64_t value = 0;
    const char* end = line_.data() + line_.size();
    const auto [after, error] = std::from_chars(line_.data() + at_, end, value);
    if (error != std::errc()) return std::nullopt;
    begin_ = at_;
    at_ = static_cast<std::size_t>(after - line_.data());
    return value;
  }

  absl::StatusOr<float> Real() {
    SkipBlanks();
    begin_ = at_;
    float value = 0;
    const char* end = line_.data() + line_.size();
    const auto [after, error] = std::from_chars(line_.data() + at_, end, value);
    if (error != std::errc()) return WrongNext("expected a number of fp32");
    at_ = static_cast<std::size_t>(after - line_.data());
    return value;
  }

  absl::StatusOr<std::int64_t> Number() {
    if (const auto value = TakeNumber()) return *value;
    return WrongNext("expected a whole number of 64 bits");
  }

  // "line 7, column 12: why", of what was read last.
  absl::Status Wrong(std::string_view why,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    return absl::Status(code, fmt::format("line {}, column {}: {}", number_, begin_ + 1, why));
  }

  // The same, of what comes next.
  absl::Status WrongNext(std::string_view why) {
    SkipBlanks();
    begin_ = at_;
    return Wrong(why);
  }

 private:
  void SkipBlanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) {
      ++at_;
    }
  }

  std::string_view line_;
  int number_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of what was read last
};

class ProgramReader {
 public:
  explicit ProgramReader(std::string_view name) { program_.name = name; }

  absl::Status Line(std::string_view text, int number) {
    LineReader line(text, number);
    if (line.AtEnd()) return absl::OkStatus();
    const std::string_view word = line.NextWord();
    if (word == kCoreWord) return CoreLine(line);
    const auto memory = std::ranges::find(kBufferWords, word);
    const bool buffer = memory != kBufferWords.end();
    TAHOMA_RETURN_IF_ERROR(
        buffer ? BufferLine(line, static_cast<Memory>(std::distance(kBufferWords.begin(), memory)))
               : InstructionLine(line));
    if (line.AtEnd()) return absl::OkStatus();
    return line.WrongNext("expected the end of the line");
  }

  Program Done() { return std::move(program_); }

 private:
  // core 1
  absl::Status CoreLine(LineReader& line) {
    line.Word();
    TAHOMA_ASSIGN_OR_RETURN(const std::int64_t core, line.Number());
    if (core < 0 || core >= kCoresMax) {
      return line.Wrong(fmt::format("expected a core from 0 to {}", kCoresMax - 1));
    }
    core_ = static_cast<int>(core);
    return line.AtEnd() ? absl::OkStatus() : line.WrongNext("expected the end of the line");
  }

  absl::Status BufferLine(LineReader& line, Memory memory) {
    line.Word();
    Buffer buffer = {.name = std::string(line.Word()), .memory = memory};
    if (memory != Memory::kHbm) buffer.core = core_;
    if (by_name_.contains(buffer.name)) return line.Wrong("this name is taken");
    const absl::StatusOr<ElementType> type = sim::ParseElementType(Short(line.Word()));
    if (!type.ok()) return line.Wrong(Message(type.status()));
    buffer.type = *type;
    TAHOMA_RETURN_IF_ERROR(line.Expect("["));
    do {
      TAHOMA_ASSIGN_OR_RETURN(const std::int64_t extent, line.Number());
      if (buffer.shape.size() == kDimensionsMax) {
        return line.Wrong(fmt::format("expected at most {} dimensions", kDimensionsMax));
      }
      buffer.shape.push_back(extent);
    } while (line.Take(","));
    TAHOMA_RETURN_IF_ERROR(line.Expect("]"));
    for (const Use use : {Use::kInput, Use::kOutput, Use::kInOut}) {
      if (line.NextWord() != Name(use)) continue;
      line.Word();
      buffer.use = use;
      break;
    }
    if (line.Take("@")) {
      TAHOMA_ASSIGN_OR_RETURN(buffer.address, line.Number());
    }
    if (const absl::Status status = CheckBuffer(buffer); !status.ok()) {
      return line.Wrong(Message(status));
    }
    if (program_.buffers.size() == kBuffersMax) {
      return line.Wrong(fmt::format("expected at most {} buffers", kBuffersMax));
    }
    std::string name = buffer.name;
    by_name_.emplace(std::move(name), program_.Add(std::move(buffer)));
    return absl::OkStatus();
  }

  absl::Status InstructionLine(LineReader& line) {
    const absl::StatusOr<Opcode> opcode = ParseOpcode(Short(line.Word()));
    if (!opcode.ok()) return line.Wrong(Message(opcode.status()), opcode.status().code());
    const InstructionRow& row = RowOf(*opcode);
    Instruction instruction = Plain(row);
    instruction.line = line.number();
    instruction.core = core_;
    std::vector<std::optional<View>> operands(row.operands.size());
    bool arrow = false;
    for (std::size_t at = 0; at < row.operands.size(); ++at) {
      if (row.operands[at].optional) continue;
      if (!arrow && !row.operands[at].written) {
        TAHOMA_RETURN_IF_ERROR(line.Expect("<-"));
        arrow = true;
      }
      TAHOMA_ASSIGN_OR_RETURN(operands[at], ReadView(line, row.operands[at].name));
    }
    while (!line.AtEnd()) TAHOMA_RETURN_IF_ERROR(Option(line, row, instruction, operands));
    for (std::size_t at = 0; at < operands.size(); ++at) {
      if (operands[at]) {
        instruction.operands.push_back(*std::move(operands[at]));
      } else {
        instruction.left_out |= static_cast<std::uint8_t>(1U << at);
      }
    }
    if (program_.instructions.size() == kInstructionsMax) {
      return line.Wrong(fmt::format("expected at most {} instructions", kInstructionsMax));
    }
    program_.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  absl::Status Option(LineReader& line, const InstructionRow& row, Instruction& instruction,
                      std::vector<std::optional<View>>& operands) {
    if (line.Take("engine=")) {
      TAHOMA_ASSIGN_OR_RETURN(instruction.engine, ReadName<Engine>(line, kEngines));
      return absl::OkStatus();
    }
    for (std::size_t at = 0; at < operands.size(); ++at) {
      const std::string_view name = row.operands[at].name;
      LineReader ahead = line;
      if (!row.operands[at].optional || !ahead.Take(name) || !ahead.Take("=")) continue;
      if (!IsLetter(ahead.NextByte())) continue;  // a number
      line = ahead;
      TAHOMA_ASSIGN_OR_RETURN(operands[at], ReadView(line, name));
      return absl::OkStatus();
    }
    for (const OptionRow& option : row.options) {
      LineReader ahead = line;
      const bool flag = BoundOf(option.field) == 2;
      if (!ahead.Take(option.name) || (!flag && !ahead.Take("="))) continue;
      line = ahead;
      return ReadOption(line, option, instruction);
    }
    return line.WrongNext(fmt::format("expected {}", OptionsText(row)));
  }

  // "accumulate, engine=NAME or the end of the line".
  static std::string OptionsText(const InstructionRow& row) {
    std::string text;
    for (const OptionRow& option : row.options) {
      text += fmt::format("{}{}, ", option.name, BoundOf(option.field) == 2 ? "" : "=");
    }
    for (const OperandRow& operand : row.operands) {
      if (operand.optional) text += fmt::format("{}=VIEW, ", operand.name);
    }
    return text + "engine=NAME or the end of the line";
  }

  static absl::Status ReadOption(LineReader& line, const OptionRow& option,
                                 Instruction& instruction) {
    switch (option.field) {
      case OptionField::kOp: {
        TAHOMA_ASSIGN_OR_RETURN(instruction.op, ReadName<AluOp>(line, kAluOps));
        return absl::OkStatus();
      }
      case OptionField::kOp1: {
        TAHOMA_ASSIGN_OR_RETURN(instruction.op1, ReadName<AluOp>(line, kAluOps));
        return absl::OkStatus();
      }
      case OptionField::kFunction: {
        TAHOMA_ASSIGN_OR_RETURN(instruction.function,
                                ReadName<Activation>(line, sim::kActivations));
        return absl::OkStatus();
      }
      case OptionField::kValue: {
        TAHOMA_ASSIGN_OR_RETURN(instruction.value, line.Real());
        return absl::OkStatus();
      }
      case OptionField::kValue1: {
        TAHOMA_ASSIGN_OR_RETURN(instruction.value1, line.Real());
        return absl::OkStatus();
      }
      case OptionField::kNumbers:
        return ReadNumbers(line, option, instruction);
      default:
        SetBits(instruction, option.field, 1);
        return absl::OkStatus();
    }
  }

  // 1,2,3
  static absl::Status ReadNumbers(LineReader& line, const OptionRow& option,
                                  Instruction& instruction) {
    instruction.numbers.clear();
    do {
      TAHOMA_ASSIGN_OR_RETURN(const std::int64_t number, line.Number());
      if (instruction.numbers.size() == option.most_numbers) {
        return line.Wrong(fmt::format("expected at most {} numbers", option.most_numbers));
      }
      instruction.numbers.push_back(number);
    } while (line.Take(","));
    return absl::OkStatus();
  }

  template <typename Enum>
  static absl::StatusOr<Enum> ReadName(LineReader& line, int count) {
    const std::string_view name = line.Word();
    std::string known;
    for (int at = 0; at < count; ++at) {
      const std::string_view one = Name(static_cast<Enum>(at));
      if (one == name) return static_cast<Enum>(at);
      known += fmt::format("{}{}", at == 0 ? "" : ", ", one);
    }
    return line.Wrong(fmt::format("expected one of {}", known));
  }

  // NAME, NAME[0:128, 7] or NAME.ap(…).
  absl::StatusOr<View> ReadView(LineReader& line, std::string_view operand) {
    std::string_view name = line.Word();
    const bool called = name.ends_with(kAp) && line.Take("(");
    if (called) name.remove_suffix(kAp.size());
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      return line.Wrong(fmt::format("expected a buffer as {}, of a line above", operand));
    }
    const BufferId id = found->second;
    if (called) return ReadPattern(line, id);
    if (line.Take("[")) return ReadRanges(line, id);
    return program_.Whole(id);
  }

  absl::StatusOr<View> ReadRanges(LineReader& line, BufferId id) {
    const Buffer& buffer = program_.Of(id);
    std::vector<Range> ranges;
    do {
      if (ranges.size() == buffer.shape.size()) {
        return line.Wrong(fmt::format("{} has {} dimensions", buffer.name, buffer.shape.size()));
      }
      const std::int64_t extent = buffer.shape[ranges.size()];
      TAHOMA_ASSIGN_OR_RETURN(const Range range, ReadRange(line, extent));
      ranges.push_back(range);
    } while (line.Take(","));
    TAHOMA_RETURN_IF_ERROR(line.Expect("]"));
    return Slice(buffer, id, ranges);
  }

  // A number, or BEGIN:END, where the begin may be left out for 0 and the end for the whole.
  static absl::StatusOr<Range> ReadRange(LineReader& line, std::int64_t extent) {
    Range range = {.end = extent};
    const auto first = line.TakeNumber();
    if (!line.Take(":")) {
      if (!first) return line.WrongNext("expected an index or BEGIN:END");
      if (*first < 0 || *first >= extent) {
        return line.Wrong(fmt::format("index {}; expected 0 to {}", *first, extent - 1));
      }
      return Range{.begin = *first, .end = *first + 1, .index = true};
    }
    range.begin = first.value_or(0);
    range.end = line.TakeNumber().value_or(extent);
    if (range.begin < 0 || range.begin >= range.end || range.end > extent) {
      return line.Wrong(fmt::format("{}:{}; expected begin below end, within 0:{}", range.begin,
                                    range.end, extent));
    }
    return range;
  }

  static absl::StatusOr<Step> ReadStep(LineReader& line) {
    TAHOMA_ASSIGN_OR_RETURN(const std::int64_t count, line.Number());
    TAHOMA_RETURN_IF_ERROR(line.Expect("x"));
    TAHOMA_ASSIGN_OR_RETURN(const std::int64_t stride, line.Number());
    return Step{.stride = stride, .count = count};
  }

  // partition=0, offset=4, rows=128x1, free=8x64 64x1)
  static absl::StatusOr<View> ReadPattern(LineReader& line, BufferId id) {
    View view = {.buffer = id};
    if (line.Take("partition=")) {
      TAHOMA_ASSIGN_OR_RETURN(const std::int64_t partition, line.Number());
      if (partition < 0 || partition >= kPartitions) {
        return line.Wrong(fmt::format("expected a partition from 0 to {}", kPartitions - 1));
      }
      view.partition = static_cast<int>(partition);
      TAHOMA_RETURN_IF_ERROR(line.Expect(","));
    }
    if (line.Take("offset=")) {
      TAHOMA_ASSIGN_OR_RETURN(view.offset, line.Number());
      TAHOMA_RETURN_IF_ERROR(line.Expect(","));
    }
    TAHOMA_RETURN_IF_ERROR(line.Expect("rows="));
    TAHOMA_ASSIGN_OR_RETURN(view.rows, ReadStep(line));
    TAHOMA_RETURN_IF_ERROR(line.Expect(","));
    TAHOMA_RETURN_IF_ERROR(line.Expect("free="));
    do {
      if (view.free.size() == kFreeStepsMax) {
        return line.WrongNext(fmt::format("expected at most {} free steps", kFreeStepsMax));
      }
      TAHOMA_ASSIGN_OR_RETURN(const Step step, ReadStep(line));
      view.free.push_back(step);
    } while (!line.Take(")"));
    return view;
  }

  Program program_;
  int core_ = 0;  // of the lines that come
  std::map<std::string, BufferId, std::less<>> by_name_;
};

// The ranges of which Slice makes the view, if the view is a plain part of the buffer whose first
// `indexed` dimensions are indices. The caller compares: a wrong guess is not printed.
std::optional<std::vector<Range>> GuessRanges(const Buffer& buffer, const View& view,
                                              std::size_t indexed) {
  const bool on_chip = buffer.memory != Memory::kHbm;
  std::vector<Range> ranges(buffer.shape.size());
  std::vector<std::int64_t> pitches(buffer.shape.size(), 1);
  for (std::size_t at = pitches.size() - 1; at-- > 0;) {
    pitches[at] = pitches[at + 1] * buffer.shape[at + 1];
  }
  std::int64_t rest = view.offset;
  for (std::size_t at = 0; at < ranges.size(); ++at) {
    const bool partitions = on_chip && at == 0;
    ranges[at].begin = partitions ? view.partition : rest / pitches[at];
    if (!partitions) rest %= pitches[at];
    ranges[at].end = ranges[at].begin + 1;
    ranges[at].index = at < indexed;
  }
  std::vector<Step> steps = {view.rows};
  steps.insert(steps.end(), view.free.begin(), view.free.end());
  if (on_chip) {
    ranges[0].end = ranges[0].begin + view.rows.count;
    steps.erase(steps.begin());
  }
  for (const Step& step : steps) {
    std::int64_t count = step.count;
    for (std::size_t at = ranges.size(); at-- > indexed + (on_chip ? 1 : 0) && count > 1;) {
      if (pitches[at] < step.stride || buffer.shape[at] == 1) continue;
      const std::int64_t taken = std::min(count, buffer.shape[at]);
      if (count % taken != 0) return std::nullopt;
      ranges[at].end = ranges[at].begin + taken;
      count /= taken;
    }
  }
  for (std::size_t at = 0; at < ranges.size(); ++at) {
    if (ranges[at].begin < 0 || ranges[at].end > buffer.shape[at]) return std::nullopt;
  }
  return ranges;
}

std::string Ranges(std::span<const Range> ranges) {
  std::string text;
  for (const Range& range : ranges) {
    const std::string_view between = text.empty() ? "" : ", ";
    text += range.index ? fmt::format("{}{}", between, range.begin)
                        : fmt::format("{}{}:{}", between, range.begin, range.end);
  }
  return text;
}

std::string ViewText(const Program& program, const View& view) {
  const Buffer& buffer = program.Of(view);
  if (view == program.Whole(view.buffer)) return buffer.name;
  const std::size_t most = buffer.memory == Memory::kHbm ? buffer.shape.size() : 1;
  for (std::size_t indexed = 0; indexed < most; ++indexed) {
    const auto ranges = GuessRanges(buffer, view, indexed);
    if (ranges && Slice(buffer, view.buffer, *ranges) == view) {
      return fmt::format("{}[{}]", buffer.name, Ranges(*ranges));
    }
  }
  std::string free;
  for (const Step& step : view.free) {
    free += fmt::format("{}{}x{}", free.empty() ? "" : " ", step.count, step.stride);
  }
  return fmt::format("{}{}(partition={}, offset={}, rows={}x{}, free={})", buffer.name, kAp,
                     view.partition, view.offset, view.rows.count, view.rows.stride, free);
}

void FormatBuffer(const Buffer& buffer, std::string& text) {
  std::string shape;
  for (const std::int64_t extent : buffer.shape) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
  }
  fmt::format_to(std::back_inserter(text), "{} {} {} [{}]{}{}",
                 kBufferWords.at(static_cast<std::size_t>(buffer.memory)), buffer.name,
                 Name(buffer.type), shape, buffer.use == Use::kInternal ? "" : " ",
                 Name(buffer.use));
  if (buffer.address) fmt::format_to(std::back_inserter(text), " @ {}", *buffer.address);
  text += '\n';
}

void FormatOption(const Instruction& instruction, const OptionRow& option, std::string& text) {
  const auto to = std::back_inserter(text);
  switch (option.field) {
    case OptionField::kOp:
      fmt::format_to(to, " {}={}", option.name, Name(instruction.op));
      return;
    case OptionField::kOp1:
      if (instruction.op1) fmt::format_to(to, " {}={}", option.name, Name(*instruction.op1));
      return;
    case OptionField::kFunction:
      fmt::format_to(to, " {}={}", option.name, Name(instruction.function));
      return;
    case OptionField::kValue:
    case OptionField::kValue1: {
      const bool first = option.field == OptionField::kValue;
      const float value = first ? instruction.value : instruction.value1;
      if (std::bit_cast<std::uint32_t>(value) != std::bit_cast<std::uint32_t>(option.value)) {
        fmt::format_to(to, " {}={}", option.name, value);
      }
      return;
    }
    case OptionField::kNumbers:
      if (!instruction.numbers.empty()) {
        fmt::format_to(to, " {}={}", option.name, fmt::join(instruction.numbers, ","));
      }
      return;
    default:
      if (BitsOf(instruction, option.field) != 0) fmt::format_to(to, " {}", option.name);
  }
}

void FormatInstruction(const Program& program, const Instruction& instruction, std::string& text) {
  const InstructionRow& row = RowOf(instruction.opcode);
  text += row.name;
  bool arrow = false;
  std::string named;  // operands that may be left out
  ForEachOperand(instruction, [&](const OperandRow& operand, const View& view) {
    const std::string its = ViewText(program, view);
    if (operand.optional) {
      fmt::format_to(std::back_inserter(named), " {}={}", operand.name, its);
      return;
    }
    if (!arrow && !operand.written) {
      text += " <-";
      arrow = true;
    }
    fmt::format_to(std::back_inserter(text), " {}", its);
  });
  text += named;
  for (const OptionRow& option : row.options) FormatOption(instruction, option, text);
  if (instruction.engine != row.engines.front()) {
    text += " engine=";
    text += Name(instruction.engine);
  }
  text += '\n';
}

}  // namespace

absl::StatusOr<Program> ParseText(std::string_view text, std::string_view name) {
  if (text.size() > kTextBytesMax) {
    return InvalidArgument("a text of {} bytes; at most {}", text.size(), kTextBytesMax);
  }
  ProgramReader reader(name);
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    TAHOMA_RETURN_IF_ERROR(reader.Line(line, number));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return reader.Done();
}

std::string FormatText(const Program& program) {
  std::string text;
  int core = 0;
  const auto go_to = [&](int next) {
    if (next != core) fmt::format_to(std::back_inserter(text), "{} {}\n", kCoreWord, next);
    core = next;
  };
  for (const Buffer& buffer : program.buffers) {
    if (buffer.memory != Memory::kHbm) go_to(buffer.core);
    FormatBuffer(buffer, text);
  }
  for (const Instruction& instruction : program.instructions) {
    go_to(instruction.core);
    FormatInstruction(program, instruction, text);
  }
  return text;
}

}  // namespace tahoma::isa
