#include "controller/core/journal/block_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "controller/core/journal/cbor_reader.h"
#include "controller/core/journal/entry_form.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

// Beyond all that is sold, and small enough to be multiplied (money.h).
constexpr int kCountMost = 1'000'000;
constexpr Money kRateMost{1'000'000'000};
constexpr std::int64_t kChipMillisecondsMost = std::int64_t{1} << 50;

json Encode(WallTime time) { return time.time_since_epoch().count(); }

json Encode(const std::optional<WallTime>& time) { return time ? Encode(*time) : json(); }

WallTime ReadTime(CborReader& reader) {
  return WallTime(std::chrono::nanoseconds(reader.Integer()));
}

std::optional<WallTime> ReadTimeIfAny(CborReader& reader) {
  if (reader.TryConsumeNull()) return std::nullopt;
  return ReadTime(reader);
}

std::string ReadText(CborReader& reader) { return std::string(reader.Text()); }

std::vector<std::string> ReadTexts(CborReader& reader) {
  std::vector<std::string> texts;
  for (CborItems items(reader); items.more();) texts.emplace_back(items.Next().Text());
  return texts;
}

int ReadCount(CborReader& reader) {
  const std::int64_t count = reader.Integer();
  if (count < 1 || count > kCountMost) {
    throw std::out_of_range(fmt::format("a count of {}, not of 1 to {}", count, kCountMost));
  }
  return static_cast<int>(count);
}

// Enumerators are stored by their numbers in block.h, which therefore stay.
template <typename Enum>
Enum ReadEnum(CborReader& reader, Enum last) {
  const std::int64_t number = reader.Integer();
  if (number < 0 || number > static_cast<int>(last)) {
    throw std::out_of_range(
        fmt::format("enumerator {} is not among 0..{}", number, static_cast<int>(last)));
  }
  return static_cast<Enum>(number);
}

json Encode(const Payment& payment) {
  return {Encode(payment.settles), payment.succeeds, Encode(payment.deadline)};
}

Payment ReadPayment(CborReader& reader) {
  CborItems items(reader);
  Payment payment;
  payment.settles = ReadTime(items.Next());
  payment.succeeds = items.Next().Bool();
  payment.deadline = ReadTime(items.Next());
  items.SkipRest();
  return payment;
}

json Encode(const Extension& extension) {
  return {extension.offering_id,       extension.token,
          Encode(extension.purchased), Encode(extension.start),
          Encode(extension.end),       extension.fee.millionths,
          Encode(extension.payment),   static_cast<int>(extension.state)};
}

Extension ReadExtension(CborReader& reader) {
  CborItems items(reader);
  Extension extension;
  extension.offering_id = ReadText(items.Next());
  extension.token = ReadText(items.Next());
  extension.purchased = ReadTime(items.Next());
  extension.start = ReadTime(items.Next());
  extension.end = ReadTime(items.Next());
  extension.fee = Money{items.Next().Integer()};
  extension.payment = ReadPayment(items.Next());
  extension.state = ReadEnum(items.Next(), ExtensionState::kPaymentSucceeded);
  items.SkipRest();
  return extension;
}

json Encode(const Offering& offering) {
  return {offering.product->name, offering.count,       offering.zone,           offering.any_cell,
          Encode(offering.start), Encode(offering.end), offering.rate.millionths};
}

Offering ReadOffering(CborReader& reader) {
  CborItems items(reader);
  Offering offering;
  offering.product = FindProduct(items.Next().Text());
  if (offering.product == nullptr) throw std::out_of_range("an unknown product");
  offering.count = ReadCount(items.Next());
  offering.zone = ReadText(items.Next());
  offering.any_cell = items.Next().Bool();
  offering.start = ReadTime(items.Next());
  offering.end = ReadTime(items.Next());
  offering.rate = Money{items.Next().Integer()};
  items.SkipRest();
  if (offering.rate < Money{0} || offering.rate > kRateMost) {
    throw std::out_of_range("a rate that nothing is sold at");
  }
  if (!IsBoundary(offering.end) || offering.start >= offering.end) {
    throw std::out_of_range("a time that no offering has");
  }
  return offering;
}

json Encode(const BlockTerms& terms) {
  return {static_cast<int>(terms.replace), static_cast<int>(terms.binding), terms.lend_idle,
          terms.magnetic, terms.access};
}

BlockTerms ReadTerms(CborReader& reader) {
  CborItems items(reader);
  BlockTerms terms;
  terms.replace = ReadEnum(items.Next(), ReplacePolicy::kAutomatic);
  terms.binding = ReadEnum(items.Next(), BindingMode::kAtPurchase);
  terms.lend_idle = items.Next().Bool();
  terms.magnetic = items.Next().Bool();
  // Records of earlier versions have none.
  if (items.more()) terms.access = ReadTexts(items.Next());
  std::sort(terms.access.begin(), terms.access.end());
  items.SkipRest();
  return terms;
}

json Encode(const BlockUsage& usage) {
  const ChipTally& sums = usage.chip_ms;
  return {Encode(usage.as_of), sums.used, sums.lent, sums.idle, sums.lost};
}

BlockUsage ReadUsage(CborReader& reader) {
  CborItems items(reader);
  BlockUsage usage{.as_of = ReadTime(items.Next())};
  ChipTally& sums = usage.chip_ms;
  for (std::int64_t* sum : {&sums.used, &sums.lent, &sums.idle, &sums.lost}) {
    *sum = items.Next().Integer();
    if (*sum < 0 || *sum > kChipMillisecondsMost) {
      throw std::out_of_range("more use than a block has");
    }
  }
  items.SkipRest();
  return usage;
}

json Encode(const BlockVersion& version) { return {version.term, version.number}; }

// Returns whether a block that was bought then may end at that time, with any extension.
bool IsEndOf(const Block& block, WallTime end) {
  return IsBoundary(end) && block.created < end && block.start() < end &&
         SlotsOf(block.created, end).size() <= static_cast<std::int64_t>(kSlotsAhead);
}

void ReadTags(CborReader& reader, Block& block) {
  for (CborItems tags(reader); tags.more();) {
    CborItems tag(tags.Next());
    std::string key = ReadText(tag.Next());
    block.tags.emplace_back(std::move(key), ReadText(tag.Next()));
    tag.SkipRest();
  }
}

void ReadCells(CborReader& reader, Block& block) {
  for (CborItems cells(reader); cells.more();) {
    CborItems cell(cells.Next());
    CellShare share{.cell = ReadText(cell.Next())};
    share.hosts = ReadCount(cell.Next());
    block.cells.push_back(std::move(share));
    cell.SkipRest();
  }
}

void ReadExtensions(CborReader& reader, Block& block) {
  for (CborItems items(reader); items.more();) {
    block.extensions.push_back(ReadExtension(items.Next()));
  }
}

void ReadReplacement(CborReader& reader, Block& block) {
  CborItems items(reader);
  block.replace_request = ReadText(items.Next());
  block.replacing = items.Next().Bool();
  items.SkipRest();
}

void ReadVersion(CborReader& reader, Block& block) {
  CborItems items(reader);
  block.version.term = items.Next().Integer();
  block.version.number = items.Next().Integer();
  items.SkipRest();
}

// A member of a record, sorted by name as they are written.
struct Member {
  std::string_view name;
  bool needed = true;  // false: records of earlier versions have none
  void (*read)(CborReader& reader, Block& block);
};
constexpr auto kMembers = std::to_array<Member>({
    {"bought", true, [](CborReader& r, Block& b) { b.bought = ReadOffering(r); }},
    {"bound", true, [](CborReader& r, Block& b) { b.bound = ReadTimeIfAny(r); }},
    {"cells", true, ReadCells},
    {"created", true, [](CborReader& r, Block& b) { b.created = ReadTime(r); }},
    {"delivered", true, [](CborReader& r, Block& b) { b.delivered = ReadTimeIfAny(r); }},
    {"end", true, [](CborReader& r, Block& b) { b.end = ReadTime(r); }},
    {"extensions", true, ReadExtensions},
    {"hosts", true, [](CborReader& r, Block& b) { b.hosts = ReadTexts(r); }},
    {"ids", true, [](CborReader& r, Block& b) { b.block_ids = ReadTexts(r); }},
    {"name", true, [](CborReader& r, Block& b) { b.key.name = ReadText(r); }},
    {"ns", true, [](CborReader& r, Block& b) { b.key.ns = ReadText(r); }},
    {"offering", true, [](CborReader& r, Block& b) { b.offering_id = ReadText(r); }},
    {"payment", true, [](CborReader& r, Block& b) { b.payment = ReadPayment(r); }},
    {"platform", true, [](CborReader& r, Block& b) { b.platform = ReadText(r); }},
    {"reclaiming", true, [](CborReader& r, Block& b) { b.reclaiming = r.Bool(); }},
    {"replace", false, ReadReplacement},
    {"reservation", true, [](CborReader& r, Block& b) { b.reservation = ReadText(r); }},
    {"signatures", false, [](CborReader& r, Block& b) { b.signatures = ReadTexts(r); }},
    {"state", true, [](CborReader& r, Block& b) { b.state = ReadEnum(r, BlockState::kFailed); }},
    {"tags", true, ReadTags},
    {"terms", true, [](CborReader& r, Block& b) { b.terms = ReadTerms(r); }},
    {"token", true, [](CborReader& r, Block& b) { b.token = ReadText(r); }},
    {"trouble", true, [](CborReader& r, Block& b) { b.trouble = ReadText(r); }},
    {"uid", true, [](CborReader& r, Block& b) { b.uid = ReadText(r); }},
    {"usage", false, [](CborReader& r, Block& b) { b.usage = ReadUsage(r); }},
    {"version", false, ReadVersion},
    {"warned", true, [](CborReader& r, Block& b) { b.warned = r.Bool(); }},
});
using MembersRead = std::array<bool, kMembers.size()>;

// Returns the place of a member of that name; `expected`, the one after the last, mostly is it.
std::size_t PlaceOf(std::string_view name, std::size_t expected) {
  if (expected < kMembers.size() && kMembers[expected].name == name) return expected;
  const auto found = std::find_if(kMembers.begin(), kMembers.end(),
                                  [&](const Member& member) { return member.name == name; });
  return static_cast<std::size_t>(found - kMembers.begin());
}

MembersRead ReadMembers(CborReader& reader, Block& block) {
  MembersRead seen{};
  std::size_t expected = 0;
  for (std::uint64_t left = reader.Map(); left > 0; --left) {
    const std::string_view name = reader.Text();
    const std::size_t place = PlaceOf(name, expected);
    if (place == kMembers.size()) {
      reader.Skip();  // a later version's
      continue;
    }
    if (std::exchange(seen[place], true)) {
      throw std::out_of_range(fmt::format("{} is there twice", name));
    }
    kMembers[place].read(reader, block);
    expected = place + 1;
  }
  for (std::size_t i = 0; i < kMembers.size(); ++i) {
    if (kMembers[i].needed && !seen[i]) {
      throw std::out_of_range(fmt::format("it has no {}", kMembers[i].name));
    }
  }
  return seen;
}

Block ReadBody(std::string_view body) {
  Block block;
  CborReader reader(body);
  const MembersRead seen = ReadMembers(reader, block);
  reader.Finish();
  std::int64_t hosts = 0;
  for (const CellShare& share : block.cells) hosts += share.hosts;
  if (hosts != block.bought.count) throw std::out_of_range("cells with other hosts than bought");
  if (!IsEndOf(block, block.end) || block.end < block.bought.end) {
    throw std::out_of_range("an end that no block has");
  }
  for (const Extension& extension : block.extensions) {
    if (!IsEndOf(block, extension.end)) {
      throw std::out_of_range("an extension to an end that no block has");
    }
  }
  // Without it nothing is known of what it was used for.
  if (!seen[PlaceOf("usage", 0)]) block.usage.as_of = block.delivered.value_or(block.start());
  return block;
}

}  // namespace

std::string EncodeBlock(const Block& block) {
  json tags = json::array();
  for (const auto& [key, value] : block.tags) tags.push_back({key, value});
  json cells = json::array();
  for (const CellShare& share : block.cells) cells.push_back({share.cell, share.hosts});
  json extensions = json::array();
  for (const Extension& extension : block.extensions) extensions.push_back(Encode(extension));
  return EncodeEntry(EntryType::kBlockChanged,
                     {{"reservation", block.reservation},
                      {"ids", block.block_ids},
                      {"ns", block.key.ns},
                      {"name", block.key.name},
                      {"uid", block.uid},
                      {"token", block.token},
                      {"signatures", block.signatures},
                      {"offering", block.offering_id},
                      {"platform", block.platform},
                      {"tags", std::move(tags)},
                      {"terms", Encode(block.terms)},
                      {"bought", Encode(block.bought)},
                      {"cells", std::move(cells)},
                      {"created", Encode(block.created)},
                      {"end", Encode(block.end)},
                      {"state", static_cast<int>(block.state)},
                      {"payment", Encode(block.payment)},
                      {"extensions", std::move(extensions)},
                      {"hosts", block.hosts},
                      {"bound", Encode(block.bound)},
                      {"delivered", Encode(block.delivered)},
                      {"warned", block.warned},
                      {"reclaiming", block.reclaiming},
                      {"trouble", block.trouble},
                      {"usage", Encode(block.usage)},
                      {"replace", {block.replace_request, block.replacing}},
                      {"version", Encode(block.version)}});
}

std::string VersionText(const BlockVersion& version) {
  return fmt::format("{}.{}", version.term, version.number);
}

std::optional<BlockVersion> ParseVersion(std::string_view text) {
  BlockVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, term_error] = std::from_chars(text.data(), end, version.term);
  if (term_error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, number_error] = std::from_chars(dot + 1, end, version.number);
  if (number_error != std::errc() || rest != end) return std::nullopt;
  return version;
}

bool IsBlockEntry(std::string_view bytes) {
  return bytes.size() > 3 && bytes[3] == static_cast<char>(EntryType::kBlockChanged);
}

absl::StatusOr<Block> DecodeBlock(std::string_view bytes) {
  TAHOMA_ASSIGN_OR_RETURN(const EntryView entry, OpenEntry(bytes));
  if (entry.type != EntryType::kBlockChanged) {
    return DataLoss("journal record of type {} is no Capacity Block", static_cast<int>(entry.type));
  }
  try {
    return ReadBody(entry.body);
  } catch (const std::out_of_range& e) {
    return BadBody(entry.type, e.what());
  }
}

}  // namespace tahoma::controller
