#include "controller/reserve/offering.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "controller/reserve/ec2_id.h"
#include "controller/reserve/refusal.h"
#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kOfferingPrefix = "cb-";
constexpr std::string_view kExtensionPrefix = "cbe-";
// Version 1 had a checksum that anybody could make.
constexpr char kVersion = 2;
constexpr std::size_t kKeyNameBytes = 4;
constexpr std::size_t kFieldsBegin = 1 + kKeyNameBytes;
constexpr std::size_t kSealBytes = 16;
constexpr std::size_t kTextMost = 255;
constexpr std::size_t kDigitsMost = 1000;  // more than the longest zone and product need

std::string_view TextOf(const OfferingKey& key) { return {key.data(), key.size()}; }

// Tells one key from another without telling the key.
std::string NameOf(const OfferingKey& key) {
  return HmacSha256(TextOf(key), "the name of this key").substr(0, kKeyNameBytes);
}

std::string SealOf(std::string_view prefix, std::string_view bytes, const OfferingKey& key) {
  return HmacSha256(TextOf(key), std::string(prefix) + std::string(bytes)).substr(0, kSealBytes);
}

// The bytes of an id: the version, the key's name, the fields one after the other, and the seal.
// Numbers have their high byte first, texts come after their length.
class Writer {
 public:
  explicit Writer(const OfferingKey& key) : key_(key), bytes_(1, kVersion) {
    bytes_ += NameOf(key);
  }

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
    return std::string(prefix) + Hex(bytes_ + SealOf(prefix, bytes_, key_));
  }

 private:
  const OfferingKey& key_;
  std::string bytes_;
};

absl::Status NeverMade(std::string_view id) {
  return Refuse(kOfferingNotFound, "the offering {} was never made here; search again", id);
}

// Reads the fields of a Writer. A read beyond the end clears `whole_`.
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
  std::size_t at_ = kFieldsBegin;
  bool whole_ = true;
};

absl::StatusOr<Reader> Open(std::string_view id, std::string_view prefix, const OfferingKey& key) {
  if (!IsEc2Id(id, prefix, kDigitsMost)) return MalformedId(kOfferingMalformed, id, prefix);
  const std::optional<std::string> bytes = Unhex(id.substr(prefix.size()));
  const bool whole = bytes && bytes->size() > kFieldsBegin + kSealBytes;
  if (!whole || bytes->front() != kVersion) return NeverMade(id);
  if (bytes->substr(1, kKeyNameBytes) != NameOf(key)) {
    return Refuse(kOfferingExpired,
                  "the offering {} is of a controller with another store; search again", id);
  }
  const std::string body = bytes->substr(0, bytes->size() - kSealBytes);
  // Digests are compared: the time of the comparison tells nothing of the seal.
  if (Sha256(bytes->substr(body.size())) != Sha256(SealOf(prefix, body, key))) return NeverMade(id);
  return Reader(body);
}

std::uint64_t MinutesOf(WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count());
}

// In the year 2255 and no boundary: no block can end there. Later times do not fit into a WallTime.
constexpr std::uint64_t kMinutesMost = 150'000'000;

WallTime TimeOf(std::uint64_t minutes) {
  return WallTime(std::chrono::minutes(static_cast<std::int64_t>(std::min(minutes, kMinutesMost))));
}

}  // namespace

std::string OfferingId(const Offering& offering, const OfferingKey& key) {
  return Writer(key)
      .Text(offering.product->name)
      .Number(static_cast<std::uint64_t>(offering.count), 4)
      .Text(offering.zone)
      .Number(offering.any_cell ? 1 : 0, 1)
      .Number(MinutesOf(offering.start), 4)
      .Number(MinutesOf(offering.end), 4)
      .Number(static_cast<std::uint64_t>(offering.rate.millionths), 6)
      .Id(kOfferingPrefix);
}

absl::StatusOr<Offering> ReadOfferingId(std::string_view id, const OfferingKey& key) {
  TAHOMA_ASSIGN_OR_RETURN(Reader reader, Open(id, kOfferingPrefix, key));
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

std::string ExtensionOfferingId(const ExtensionOffering& offering, const OfferingKey& key) {
  return Writer(key)
      .Text(offering.reservation)
      .Number(MinutesOf(offering.start), 4)
      .Number(MinutesOf(offering.end), 4)
      .Number(static_cast<std::uint64_t>(offering.rate.millionths), 6)
      .Number(static_cast<std::uint64_t>(offering.count), 4)
      .Id(kExtensionPrefix);
}

absl::StatusOr<ExtensionOffering> ReadExtensionOfferingId(std::string_view id,
                                                          const OfferingKey& key) {
  TAHOMA_ASSIGN_OR_RETURN(Reader reader, Open(id, kExtensionPrefix, key));
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
