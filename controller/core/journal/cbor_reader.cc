#include "controller/core/journal/cbor_reader.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace tahoma::controller {
namespace {

constexpr unsigned kFalse = 20, kTrue = 21, kNull = 22;
constexpr unsigned kLongest = 27;  // larger ones are reserved, or of indefinite length

}  // namespace

bool ConsumeHead(std::string_view& bytes, CborHead& head) {
  if (bytes.empty()) return false;
  const unsigned first = static_cast<unsigned char>(bytes[0]);
  head = {.major = first >> 5U, .info = first & 31U, .argument = first & 31U};
  const std::size_t extra =
      head.info >= 24 && head.info <= kLongest ? std::size_t{1} << (head.info - 24) : 0;
  if (bytes.size() < 1 + extra) return false;
  if (extra > 0) head.argument = 0;
  for (std::size_t i = 1; i <= extra; ++i) {
    head.argument = head.argument << 8U | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_prefix(1 + extra);
  return true;
}

CborHead CborReader::Head() {
  CborHead head;
  if (!ConsumeHead(rest_, head)) throw std::out_of_range("it ends in the midst of an item");
  if (head.info > kLongest) throw std::out_of_range("an item of no definite length");
  return head;
}

CborHead CborReader::HeadOf(unsigned major, const char* what) {
  const CborHead head = Head();
  if (head.major != major) {
    throw std::out_of_range(fmt::format("major type {} where {} belongs", head.major, what));
  }
  return head;
}

std::string_view CborReader::Bytes(std::uint64_t count) {
  if (count > rest_.size()) throw std::out_of_range("it ends in the midst of a text");
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

std::int64_t CborReader::Integer() {
  const CborHead head = Head();
  if (head.major > CborMajor::kNegative) {
    throw std::out_of_range(fmt::format("major type {} where a number belongs", head.major));
  }
  if (head.argument > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw std::out_of_range("a number of more than 63 bits");
  }
  const auto number = static_cast<std::int64_t>(head.argument);
  return head.major == CborMajor::kPositive ? number : -1 - number;
}

bool CborReader::Bool() {
  const CborHead head = HeadOf(CborMajor::kSimple, "true or false");
  if (head.info != kFalse && head.info != kTrue) {
    throw std::out_of_range(fmt::format("simple value {} where true or false belongs", head.info));
  }
  return head.info == kTrue;
}

std::string_view CborReader::Text() { return Bytes(HeadOf(CborMajor::kText, "a text").argument); }

// A count beyond what is left is found before room is made for so many.
std::uint64_t CborReader::Array() {
  const CborHead head = HeadOf(CborMajor::kArray, "an array");
  if (head.argument > rest_.size()) throw std::out_of_range("an array longer than the record");
  return head.argument;
}

std::uint64_t CborReader::Map() {
  const CborHead head = HeadOf(CborMajor::kMap, "a map");
  if (head.argument > rest_.size() / 2) throw std::out_of_range("a map larger than the record");
  return head.argument;
}

bool CborReader::TryConsumeNull() {
  constexpr char kNullByte = static_cast<char>(CborMajor::kSimple << 5U | kNull);
  if (rest_.empty() || rest_.front() != kNullByte) return false;
  rest_.remove_prefix(1);
  return true;
}

void CborReader::Skip() {
  // Every item that is open needs at least one byte more, so the count ends.
  for (std::uint64_t items = 1; items > 0; --items) {
    const CborHead head = Head();
    if (head.major == CborMajor::kBytes || head.major == CborMajor::kText) Bytes(head.argument);
    const std::uint64_t below = head.major == CborMajor::kArray ? head.argument
                                : head.major == CborMajor::kMap ? 2 * head.argument
                                : head.major == CborMajor::kTag ? 1
                                                                : 0;
    if (head.major >= CborMajor::kArray && head.major <= CborMajor::kMap &&
        head.argument > rest_.size()) {
      throw std::out_of_range("an array or a map larger than the record");
    }
    items += below;
  }
}

void CborReader::Finish() const {
  if (!rest_.empty()) throw std::out_of_range(fmt::format("{} bytes after it", rest_.size()));
}

CborReader& CborItems::Next() {
  if (left_ == 0) throw std::out_of_range("an array with too few items");
  --left_;
  return reader_;
}

}  // namespace tahoma::controller
