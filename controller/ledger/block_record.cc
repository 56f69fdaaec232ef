#include "controller/ledger/block_record.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "controller/ledger/entry_form.h"
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

WallTime DecodeTime(const json& body) {
  return WallTime(std::chrono::nanoseconds(body.get<std::int64_t>()));
}

std::optional<WallTime> DecodeTimeIfAny(const json& body) {
  return body.is_null() ? std::nullopt : std::optional(DecodeTime(body));
}

// Enumerators are stored by their numbers in block.h, which therefore stay.
template <typename Enum>
Enum DecodeEnum(const json& body, Enum last) {
  const int number = body.get<int>();
  if (number < 0 || number > static_cast<int>(last)) {
    throw std::out_of_range(
        fmt::format("enumerator {} is not among 0..{}", number, static_cast<int>(last)));
  }
  return static_cast<Enum>(number);
}

json Encode(const Payment& payment) {
  return {Encode(payment.settles), payment.succeeds, Encode(payment.deadline)};
}

Payment DecodePayment(const json& body) {
  return {.settles = DecodeTime(body.at(0)),
          .succeeds = body.at(1),
          .deadline = DecodeTime(body.at(2))};
}

json Encode(const Extension& extension) {
  return {extension.offering_id,       extension.token,
          Encode(extension.purchased), Encode(extension.start),
          Encode(extension.end),       extension.fee.millionths,
          Encode(extension.payment),   static_cast<int>(extension.state)};
}

Extension DecodeExtension(const json& body) {
  return {.offering_id = body.at(0),
          .token = body.at(1),
          .purchased = DecodeTime(body.at(2)),
          .start = DecodeTime(body.at(3)),
          .end = DecodeTime(body.at(4)),
          .fee = Money{body.at(5).get<std::int64_t>()},
          .payment = DecodePayment(body.at(6)),
          .state = DecodeEnum(body.at(7), ExtensionState::kPaymentSucceeded)};
}

json Encode(const Offering& offering) {
  return {offering.product->name, offering.count,       offering.zone,           offering.any_cell,
          Encode(offering.start), Encode(offering.end), offering.rate.millionths};
}

Offering DecodeOffering(const json& body) {
  Offering offering{.product = FindProduct(body.at(0).get<std::string>()),
                    .count = body.at(1),
                    .zone = body.at(2),
                    .any_cell = body.at(3),
                    .start = DecodeTime(body.at(4)),
                    .end = DecodeTime(body.at(5)),
                    .rate = Money{body.at(6).get<std::int64_t>()}};
  if (offering.product == nullptr) throw std::out_of_range("an unknown product");
  if (offering.count > kCountMost || offering.rate < Money{0} || offering.rate > kRateMost) {
    throw std::out_of_range("a count or a rate that nothing is sold at");
  }
  if (offering.count < 1 || !IsBoundary(offering.end) || offering.start >= offering.end) {
    throw std::out_of_range("a count or a time that no offering has");
  }
  return offering;
}

json Encode(const BlockTerms& terms) {
  return {static_cast<int>(terms.replace), static_cast<int>(terms.binding), terms.lend_idle,
          terms.magnetic, terms.access};
}

BlockTerms DecodeTerms(const json& body) {
  BlockTerms terms{.replace = DecodeEnum(body.at(0), ReplacePolicy::kAutomatic),
                   .binding = DecodeEnum(body.at(1), BindingMode::kAtPurchase),
                   .lend_idle = body.at(2),
                   .magnetic = body.at(3)};
  // Records of earlier versions have none.
  if (body.size() > 4) body.at(4).get_to(terms.access);
  std::sort(terms.access.begin(), terms.access.end());
  return terms;
}

json Encode(const BlockUsage& usage) {
  const ChipTally& sums = usage.chip_ms;
  return {Encode(usage.as_of), sums.used, sums.lent, sums.idle, sums.lost};
}

BlockUsage DecodeUsage(const json& body) {
  BlockUsage usage{.as_of = DecodeTime(body.at(0))};
  ChipTally& sums = usage.chip_ms;
  for (std::int64_t* sum : {&sums.used, &sums.lent, &sums.idle, &sums.lost}) {
    *sum = body.at(static_cast<std::size_t>(sum - &sums.used) + 1).get<std::int64_t>();
    if (*sum < 0 || *sum > kChipMillisecondsMost) {
      throw std::out_of_range("more use than a block has");
    }
  }
  return usage;
}

void DecodeReplacement(const json& body, Block& block) {
  body.at(0).get_to(block.replace_request);
  body.at(1).get_to(block.replacing);
}

json Encode(const BlockVersion& version) { return {version.term, version.number}; }

// Returns whether a block that was bought then may end at that time, with any extension.
bool IsEndOf(const Block& block, WallTime end) {
  return IsBoundary(end) && block.created < end && block.start() < end &&
         SlotsOf(block.created, end).size() <= static_cast<std::int64_t>(kSlotsAhead);
}

Block DecodeBody(const json& body) {
  Block block;
  body.at("reservation").get_to(block.reservation);
  body.at("ids").get_to(block.block_ids);
  block.key = {body.at("ns"), body.at("name")};
  body.at("uid").get_to(block.uid);
  body.at("token").get_to(block.token);
  body.at("offering").get_to(block.offering_id);
  body.at("platform").get_to(block.platform);
  for (const json& tag : body.at("tags")) block.tags.emplace_back(tag.at(0), tag.at(1));
  block.terms = DecodeTerms(body.at("terms"));
  block.bought = DecodeOffering(body.at("bought"));
  int hosts = 0;
  for (const json& share : body.at("cells")) {
    block.cells.push_back({.cell = share.at(0), .hosts = share.at(1)});
    hosts += block.cells.back().hosts;
    if (block.cells.back().hosts < 1) throw std::out_of_range("a cell without hosts");
  }
  if (hosts != block.bought.count) throw std::out_of_range("cells with other hosts than bought");
  block.created = DecodeTime(body.at("created"));
  block.end = DecodeTime(body.at("end"));
  if (!IsEndOf(block, block.end) || block.end < block.bought.end) {
    throw std::out_of_range("an end that no block has");
  }
  block.state = DecodeEnum(body.at("state"), BlockState::kFailed);
  block.payment = DecodePayment(body.at("payment"));
  for (const json& extension : body.at("extensions")) {
    block.extensions.push_back(DecodeExtension(extension));
    if (!IsEndOf(block, block.extensions.back().end)) {
      throw std::out_of_range("an extension to an end that no block has");
    }
  }
  body.at("hosts").get_to(block.hosts);
  block.bound = DecodeTimeIfAny(body.at("bound"));
  block.delivered = DecodeTimeIfAny(body.at("delivered"));
  body.at("warned").get_to(block.warned);
  body.at("reclaiming").get_to(block.reclaiming);
  body.at("trouble").get_to(block.trouble);
  // Records of earlier versions have none of these: nothing is known of what it was used for.
  block.usage.as_of = block.delivered.value_or(block.start());
  if (const auto usage = body.find("usage"); usage != body.end()) {
    block.usage = DecodeUsage(*usage);
  }
  if (const auto replace = body.find("replace"); replace != body.end()) {
    DecodeReplacement(*replace, block);
  }
  if (const auto version = body.find("version"); version != body.end()) {
    block.version = {.term = version->at(0), .number = version->at(1)};
  }
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
  Block block;
  TAHOMA_RETURN_IF_ERROR(DecodeEntry(bytes, [&](EntryType type, const json& body) -> absl::Status {
    if (type != EntryType::kBlockChanged) {
      return DataLoss("journal record of type {} is no Capacity Block", static_cast<int>(type));
    }
    block = DecodeBody(body);
    return absl::OkStatus();
  }));
  return block;
}

}  // namespace tahoma::controller
