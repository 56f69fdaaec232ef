#include "controller/reserve/offering.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "controller/reserve/refusal.h"
#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kOfferingPrefix = "cb-";
constexpr std::string_view kExtensionPrefix = "cbe-";
constexpr char kVersion = 1;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kTextMost = 255;
constexpr std::size_t kIdMost = 1024;

// The fields of an id one after the other: numbers with their high byte first, texts after their
// length.
class Writer {
 public:
  Writer& Number(std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Writer& Text(std::string_view text) {
    TAHOMA_CHECK(text.size() <= kTextMost);
    Number(text.size(), 1);
    bytes_ += text;
    return *this;
  }
  std::string Id(std::string_view prefix) const {
    return std::string(prefix) + Hex(bytes_ + Checksum(bytes_));
  }
  static std::string Checksum(std::string_view bytes) {
    const Sha256Digest digest = Sha256(bytes);
    return {digest.begin(), digest.begin() + kChecksumBytes};
  }

 private:
  std::string bytes_ = std::string(1, kVersion);
};

// Reads what Writer wrote. After an attempt to read beyond the end, `whole` says so.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t Number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8U | static_cast<std::uint8_t>(Next());
    return value;
  }
  std::string Text() {
    std::string text;
    for (std::uint64_t left = Number(1); left > 0 && whole_; --left) text += Next();
    return text;
  }
  bool ends_here() const { return whole_ && at_ == bytes_.size(); }

 private:
  char Next() {
    if (at_ == bytes_.size()) whole_ = false;
    return whole_ ? bytes_[at_++] : '\0';
  }

  std::string bytes_;
  std::size_t at_ = 1;  // behind the version
  bool whole_ = true;
};

absl::StatusOr<Reader> Open(std::string_view id, std::string_view prefix) {
  const auto malformed = [&] {
    return Refuse(kOfferingMalformed,
                  "\"{}\" is no offering id; expected {} and hexadecimal digits, as a search "
                  "answers",
                  id.substr(0, 64), prefix);
  };
  if (id.size() > kIdMost || id.substr(0, prefix.size()) != prefix) return malformed();
  const std::optional<std::string> bytes = Unhex(id.substr(prefix.size()));
  if (!bytes) return malformed();
  const std::size_t body = bytes->size() < kChecksumBytes + 1 ? 0 : bytes->size() - kChecksumBytes;
  if (body == 0 || bytes->front() != kVersion ||
      bytes->substr(body) != Writer::Checksum(bytes->substr(0, body))) {
    return Refuse(kOfferingNotFound, "offering {} was never made here; search again", id);
  }
  return Reader(bytes->substr(0, body));
}

std::uint64_t MinutesOf(WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count());
}

// In the year 2255 and no boundary, so that no block can end there: later ones do not fit into a
// WallTime.
constexpr std::uint64_t kMinutesMost = 150'000'000;

WallTime TimeOf(std::uint64_t minutes) {
  return WallTime(std::chrono::minutes(static_cast<std::int64_t>(std::min(minutes, kMinutesMost))));
}

}  // namespace

std::string OfferingId(const Offering& offering) {
  return Writer()
      .Text(offering.product->name)
      .Number(static_cast<std::uint64_t>(offering.count), 4)
      .Text(offering.zone)
      .Number(offering.any_cell ? 1 : 0, 1)
      .Number(MinutesOf(offering.start), 4)
      .Number(MinutesOf(offering.end), 4)
      .Number(static_cast<std::uint64_t>(offering.rate.millionths), 6)
      .Id(kOfferingPrefix);
}

absl::StatusOr<Offering> ReadOfferingId(std::string_view id) {
  TAHOMA_ASSIGN_OR_RETURN(Reader reader, Open(id, kOfferingPrefix));
  Offering offering;
  offering.product = FindProduct(reader.Text());
  offering.count = static_cast<int>(reader.Number(4));
  offering.zone = reader.Text();
  offering.any_cell = reader.Number(1) != 0;
  offering.start = TimeOf(reader.Number(4));
  offering.end = TimeOf(reader.Number(4));
  offering.rate = Money{static_cast<std::int64_t>(reader.Number(6))};
  if (!reader.ends_here() || offering.product == nullptr || offering.count < 1 ||
      offering.end <= offering.start || !IsBoundary(offering.end)) {
    return Refuse(kOfferingNotFound, "offering {} is not for sale here; search again", id);
  }
  return offering;
}

std::string ExtensionOfferingId(const ExtensionOffering& offering) {
  return Writer()
      .Text(offering.reservation)
      .Number(MinutesOf(offering.start), 4)
      .Number(MinutesOf(offering.end), 4)
      .Number(static_cast<std::uint64_t>(offering.rate.millionths), 6)
      .Number(static_cast<std::uint64_t>(offering.count), 4)
      .Id(kExtensionPrefix);
}

absl::StatusOr<ExtensionOffering> ReadExtensionOfferingId(std::string_view id) {
  TAHOMA_ASSIGN_OR_RETURN(Reader reader, Open(id, kExtensionPrefix));
  ExtensionOffering offering;
  offering.reservation = reader.Text();
  offering.start = TimeOf(reader.Number(4));
  offering.end = TimeOf(reader.Number(4));
  offering.rate = Money{static_cast<std::int64_t>(reader.Number(6))};
  offering.count = static_cast<int>(reader.Number(4));
  if (!reader.ends_here() || offering.count < 1 || offering.end <= offering.start) {
    return Refuse(kOfferingNotFound, "extension offering {} is not for sale here; search again",
                  id);
  }
  return offering;
}

}  // namespace tahoma::controller
