// Random messages decode to equal messages; a message with a damaged field is refused with the
// field's name.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/messages.h"

namespace tahoma::wire {
namespace {

using json = Json;

std::string Name(int max) {
  const int size = *rc::gen::inRange(1, max + 1);
  return *rc::gen::container<std::string>(static_cast<std::size_t>(size),
                                          rc::gen::element('a', 'z', '0', '-', '.'));
}

std::vector<int> Ascending(int max) {
  const int chosen = *rc::gen::inRange(0, 1 << (max + 1));
  std::vector<int> numbers;
  for (int i = 0; i <= max; ++i) {
    if ((chosen >> i & 1) != 0) numbers.push_back(i);
  }
  return numbers;
}

Inventory AnyInventory() {
  Inventory made;
  made.generation = static_cast<std::uint64_t>(*rc::gen::inRange<std::int64_t>(0, INT64_MAX));
  made.node_name = Name(253);
  made.instance_type = Name(63);
  if (*rc::gen::arbitrary<bool>()) {
    made.ultra_server = {
        .id = Name(63), .node_id = *rc::gen::inRange(0, 4), .mode = *rc::gen::element(1, 2, 4)};
  }
  if (*rc::gen::arbitrary<bool>()) made.network_layers = {Name(63), Name(63), Name(63)};
  if (*rc::gen::arbitrary<bool>()) made.capacity_block_id = Name(63);
  made.driver_version = "2.26.10.0";
  made.workload_socket = "unix:/" + Name(200);
  for (const int index : Ascending(kMaxChips - 1)) {
    made.chips.push_back({.index = index,
                          .healthy = *rc::gen::arbitrary<bool>(),
                          .reason = Name(63),
                          .links_down = *rc::gen::element(std::vector<std::string>{},
                                                          std::vector<std::string>{"x+", "z-"}),
                          .lnc = *rc::gen::inRange(0, 3),
                          .bdf = "0000:cc:00.0"});
  }
  return made;
}

ClaimGrant AnyGrant() {
  ClaimGrant made;
  made.claim_uid = *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::element('a', 'Z', '0', '9', '-')));
  made.claim_uid.resize(std::min<std::size_t>(made.claim_uid.size(), 64));
  made.name_space = Name(63);
  made.name = Name(253);
  made.lnc = *rc::gen::inRange(1, 3);
  made.ultra_server_mode = *rc::gen::element(0, 1, 2, 4);
  for (const int chip : Ascending(kMaxChips - 1)) {
    std::vector<int> cores = Ascending(kCoresPerChip / made.lnc - 1);
    if (cores.empty())
      made.chips.push_back(chip);
    else
      made.cores.push_back({.chip = chip, .cores = std::move(cores)});
  }
  return made;
}

RC_GTEST_PROP(MessagesPropertyTest, InventoriesComeBackAsTheyWere, ()) {
  const Inventory made = AnyInventory();
  const auto back = DecodeInventory(EncodeInventory(made));
  RC_LOG() << back.status().message();
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == made);
}

RC_GTEST_PROP(MessagesPropertyTest, GrantsComeBackAsTheyWere, ()) {
  const ClaimGrant made = AnyGrant();
  const auto back = DecodeClaimGrant(EncodeClaimGrant(made));
  RC_LOG() << back.status().message();
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == made);
  // A claim conflicts with itself and with claims on the same cores.
  bool holds_any = false;
  for (const std::uint8_t mask : HeldCores(made)) holds_any = holds_any || mask != 0;
  RC_ASSERT(CheckDisjoint(made, made).ok() == !holds_any);
}

struct AnyMessage {
  std::string name;
  json whole;
  std::function<absl::Status(const std::string&)> decode;
};

ClaimGrant FixedGrant() {
  return {.claim_uid = "u-1",
          .name_space = "default",
          .name = "claim",
          .lnc = 2,
          .chips = {0, 1},
          .cores = {{.chip = 2, .cores = {0, 3}}},
          .ultra_server_mode = 2};
}

std::vector<AnyMessage> Messages() {
  const Inventory inventory = {
      .generation = 7,
      .node_name = "node-a",
      .instance_type = "trn2u.48xlarge",
      .ultra_server = UltraServer{.id = "us-1", .node_id = 2, .mode = 4},
      .network_layers = {"nn-1", "nn-2", "nn-3"},
      .capacity_block_id = "cb-1",
      .driver_version = "2.26.10.0",
      .workload_socket = "unix:/run/node.sock",
      .chips = {{.index = 3, .links_down = {"x+"}, .bdf = "0000:cc:00.0"}}};
  const ClaimGrant grant = FixedGrant();
  const std::string token(kTokenBytes, 'a');
  return {
      {"inventory", ParseJson(EncodeInventory(inventory)),
       [](const std::string& text) { return DecodeInventory(text).status(); }},
      {"grant", ParseJson(EncodeClaimGrant(grant)),
       [](const std::string& text) { return DecodeClaimGrant(text).status(); }},
      {"apply", ParseJson(EncodeApplyParams({.grant = grant, .token = token})),
       [](const std::string& text) { return DecodeApplyParams(text).status(); }},
      {"list", ParseJson(EncodeClaimList({grant})),
       [](const std::string& text) { return DecodeClaimList(text).status(); }},
      {"token", ParseJson(EncodeToken(token)),
       [](const std::string& text) { return DecodeToken(text).status(); }},
      {"claim uid", ParseJson(EncodeClaimUid("u-1")),
       [](const std::string& text) { return DecodeClaimUid(text).status(); }},
      {"watch", ParseJson(EncodeWatchParams({.generation = 1, .timeout = {}})),
       [](const std::string& text) { return DecodeWatchParams(text).status(); }},
  };
}

// Returns the last name on the path to a value: linksDown of "/chips/0/linksDown/0".
std::string FieldOf(const json::json_pointer& at) {
  json::json_pointer path = at;
  while (path.back().find_first_not_of("0123456789") == std::string::npos) path.pop_back();
  return path.back();
}

TEST(MessagesPropertyTest, AFieldOfAnotherTypeIsRefusedByItsName) {
  const std::vector<json> others = {json(true),
                                    json(-1),
                                    json(1.5),
                                    json(std::string(300, 'x')),
                                    json::array({json::object()}),
                                    json::object({{"a", 1}})};
  for (const AnyMessage& message : Messages()) {
    ASSERT_TRUE(message.decode(message.whole.dump()).ok()) << message.name;
    const json flat = message.whole.flatten();
    for (const auto& [path, value] : flat.items()) {
      const json::json_pointer at(path);
      for (const json& other : others) {
        if (std::string_view(other.type_name()) == value.type_name() && !other.is_string() &&
            !other.is_number()) {
          continue;
        }
        json damaged = message.whole;
        damaged[at] = other;
        const absl::Status status = message.decode(damaged.dump());
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
            << message.name << " " << path << " " << other;
        EXPECT_NE(status.message().find(FieldOf(at)), std::string::npos)
            << path << ": " << status.message();
        EXPECT_LT(status.message().size(), 200U) << "an error is no copy of what was sent";
      }
    }
  }
}

TEST(MessagesPropertyTest, AMissingFieldIsLetPassOrNamedAndNullIsMissing) {
  for (const AnyMessage& message : Messages()) {
    for (const auto& [key, value] : message.whole.items()) {
      json without = message.whole;
      without.erase(key);
      json null = message.whole;
      null[key] = nullptr;
      const absl::Status status = message.decode(without.dump());
      EXPECT_EQ(message.decode(null.dump()), status) << message.name << " " << key;
      EXPECT_TRUE(status.ok() || status.message().find(key + " is missing") != std::string::npos)
          << status.message();
    }
  }
}

TEST(MessagesPropertyTest, WholeNumbersEndAtTheirBounds) {
  const std::vector<std::pair<std::string, std::vector<int>>> wrong = {
      {"/ultraServer/mode", {0, 3, 5}},
      {"/ultraServer/nodeId", {-1, 4}},
      {"/chips/0/lnc", {-1, 3}},
      {"/chips/0/index", {-1, 16}},
      {"/generation", {-1}},
  };
  const AnyMessage inventory = Messages().front();
  for (const auto& [path, values] : wrong) {
    for (const int value : values) {
      json damaged = inventory.whole;
      damaged[json::json_pointer(path)] = value;
      EXPECT_FALSE(inventory.decode(damaged.dump()).ok()) << path << " " << value;
    }
  }
}

TEST(MessagesPropertyTest, EveryTextCutShortIsNoJson) {
  for (const AnyMessage& message : Messages()) {
    const std::string whole = message.whole.dump();
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(message.decode(whole.substr(0, size)).code(), absl::StatusCode::kInvalidArgument);
    }
    EXPECT_FALSE(message.decode(whole + whole).ok()) << message.name;
    EXPECT_FALSE(message.decode("\xff" + whole).ok()) << message.name;
  }
}

}  // namespace
}  // namespace tahoma::wire
