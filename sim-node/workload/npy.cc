#include "sim-node/workload/npy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/numeric/convert.h"

namespace tahoma::sim {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the elements in the file
constexpr std::size_t kMaxDimensions = 32;

struct NpyType {
  std::string_view name;
  ElementType type;
};
// The types that numpy has.
constexpr std::array kTypes = {
    NpyType{"|u1", ElementType::kUint8},  NpyType{"|i1", ElementType::kInt8},
    NpyType{"<u2", ElementType::kUint16}, NpyType{"<i2", ElementType::kInt16},
    NpyType{"<u4", ElementType::kUint32}, NpyType{"<i4", ElementType::kInt32},
    NpyType{"<f2", ElementType::kFp16},   NpyType{"<f4", ElementType::kFp32}};

// Empty where numpy has no such type.
std::string_view NpyName(ElementType type) {
  const auto found = std::ranges::find(kTypes, type, &NpyType::type);
  return found == kTypes.end() ? "" : found->name;
}

// How numpy saves elements whose type it does not know.
std::string RawName(ElementType type) {
  return fmt::format("{}V{}", Size(type) == 1 ? "|" : "<", Size(type));
}
bool IsRaw(std::string_view name, ElementType type) {
  return name == RawName(type) || name == fmt::format("|V{}", Size(type));
}

// Returns what stands behind the key in the header, a dictionary of Python.
std::string_view ValueOf(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return "";
  std::string_view rest = header.substr(at + key.size());
  const std::size_t begin = rest.find_first_not_of(": ");
  return begin == std::string_view::npos ? "" : rest.substr(begin);
}

absl::StatusOr<std::vector<std::int64_t>> ReadShape(std::string_view text) {
  const std::size_t end = text.find(')');
  if (!text.starts_with("(") || end == std::string_view::npos) {
    return InvalidArgument("the header has no shape");
  }
  text = text.substr(1, end - 1);
  std::vector<std::int64_t> shape;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    if (text.empty()) break;
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{} || size < 0 || shape.size() == kMaxDimensions) {
      return InvalidArgument("the header's shape ({}) cannot be read", CutUtf8(text, 40));
    }
    shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
  }
  return shape;
}

// Returns the header and what follows.
absl::StatusOr<std::pair<std::string_view, std::string_view>> Split(std::string_view file) {
  constexpr std::size_t kVersionAt = kMagic.size();
  constexpr std::size_t kLengthAt = kVersionAt + 2;
  if (!file.starts_with(kMagic) || file.size() < kLengthAt + 4) {
    return InvalidArgument("the file does not begin as numpy's .npy files do");
  }
  const int version = file[kVersionAt];
  if (version < 1 || version > 3) {
    return InvalidArgument("the file has version {} of numpy's form; expected 1 to 3", version);
  }
  const std::size_t digits = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = digits; i > 0; --i) {
    length = length * 256 + static_cast<unsigned char>(file[kLengthAt + i - 1]);
  }
  file.remove_prefix(kLengthAt + digits);
  if (length > file.size()) return InvalidArgument("the file ends in its header");
  return std::pair(file.substr(0, length), file.substr(length));
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(std::string_view file) {
  TAHOMA_ASSIGN_OR_RETURN(const auto parts, Split(file));
  const std::string_view header = parts.first;
  NpyArray array{.elements = parts.second};
  const std::string_view type = ValueOf(header, "'descr'");
  const std::size_t end = type.find('\'', 1);
  if (!type.starts_with("'") || end == std::string_view::npos) {
    return InvalidArgument("the header names no type, or one of several fields");
  }
  array.type = type.substr(1, end - 1);
  if (!ValueOf(header, "'fortran_order'").starts_with("False")) {
    return InvalidArgument("the array is column-major; save numpy.ascontiguousarray of it");
  }
  TAHOMA_ASSIGN_OR_RETURN(array.shape, ReadShape(ValueOf(header, "'shape'")));
  return array;
}

absl::StatusOr<std::string> ElementsOf(const NpyArray& array, const isa::Buffer& tensor) {
  if (array.shape != tensor.shape) {
    return InvalidArgument("the array is [{}]; tensor {} is [{}]", fmt::join(array.shape, ", "),
                           tensor.name, fmt::join(tensor.shape, ", "));
  }
  const bool same = array.type == NpyName(tensor.type) ||
                    (NpyName(tensor.type).empty() && IsRaw(array.type, tensor.type));
  if (!same && array.type != NpyName(ElementType::kFp32)) {
    return InvalidArgument("the array is of numpy's type \"{}\"; tensor {} takes {} or float32",
                           CutUtf8(array.type, 40), tensor.name, Name(tensor.type));
  }
  const auto count = static_cast<std::size_t>(isa::ElementsOf(tensor));
  const std::size_t bytes = count * (same ? Size(tensor.type) : sizeof(float));
  if (array.elements.size() != bytes) {
    return InvalidArgument("the array has {} bytes of elements; its shape needs {}",
                           array.elements.size(), bytes);
  }
  if (same) return std::string(array.elements);
  std::vector<float> values(count);
  Widen(ElementType::kFp32, std::as_bytes(std::span(array.elements)).data(), values);
  std::string elements(count * Size(tensor.type), '\0');
  Narrow(tensor.type, values, std::as_writable_bytes(std::span(elements)).data());
  return elements;
}

std::string MakeNpy(const isa::Buffer& tensor, std::string_view elements) {
  std::string_view type = NpyName(tensor.type);
  std::string widened;
  if (type.empty()) {
    type = NpyName(ElementType::kFp32);
    std::vector<float> values(static_cast<std::size_t>(isa::ElementsOf(tensor)));
    Widen(tensor.type, std::as_bytes(std::span(elements)).data(), values);
    widened.resize(values.size() * sizeof(float));
    Narrow(ElementType::kFp32, values, std::as_writable_bytes(std::span(widened)).data());
    elements = widened;
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                   type, fmt::join(tensor.shape, ", "));
  constexpr std::size_t kBefore = kMagic.size() + 4;  // version and length
  header.resize((kBefore + header.size() + kAlignment) / kAlignment * kAlignment - kBefore, ' ');
  header.back() = '\n';
  std::string file(kMagic);
  file +=
      {'\1', '\0', static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
  return file.append(header).append(elements);
}

}  // namespace tahoma::sim
