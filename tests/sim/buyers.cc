#include "tests/sim/buyers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "controller/core/journal/block_record.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "tests/sim/objects.h"

namespace tahoma::simulation {

using controller::Block;
using controller::Snapshot;
using json = Json;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr char kCollection[] = "/apis/tahoma.dev/v1alpha1/namespaces/default/capacityblocks";
// Longer than a request may be late: after this time it was carried out or never will be.
constexpr seconds kPatience{45};

}  // namespace

// Returns an offering of a present search, or now and then of the last search.
std::string Buyers::FindOffering(const Snapshot& snapshot) {
  constexpr std::array kProducts = {"u-trn2x64", "u-trn2x64", "trn2.48xlarge", "trn2.3xlarge"};
  const std::string product = kProducts[world_.rng.Below(kProducts.size())];
  const auto days = static_cast<std::int64_t>(1 + world_.rng.Below(3));
  const auto count = static_cast<std::int64_t>(1 + world_.rng.Below(2));
  const WallTime now = std::max(world_.ControllersNow(), snapshot.block_now);
  controller::OfferingQuery query{.duration_hours = days * 24};
  if (product.starts_with("u-")) {
    query.ultraserver_type = product;
    query.ultraserver_count = count;
  } else {
    query.instance_type = product;
    query.instance_count = count;
  }
  if (world_.rng.Chance(1, 2)) {
    query.start_date_range = now + hours(static_cast<int>(world_.rng.Below(72)));
  }
  // The next block on the same hardware.
  const auto before = world_.rng.Chance(1, 2) ? Pick(snapshot) : nullptr;
  if (before != nullptr && before->end > now) {
    query = {.duration_hours = 24, .start_date_range = before->end};
    if (before->product().ultra_server) {
      query.ultraserver_type = before->product().name;
      query.ultraserver_count = before->bought.count;
    } else {
      query.instance_type = before->product().instance_type;
      query.instance_count = before->bought.count;
    }
    query.order = controller::OfferingOrder::kStart;
  }
  const auto search = controller::CheckQuery(query, now);
  if (!search.ok()) {
    world_.Fail("a search is refused");
    return "";
  }
  const auto found = controller::SearchOfferings(snapshot.profile, snapshot.prices, *search, now);
  for (const auto& offering : found.offerings) {
    if (offering.start < now) world_.Fail("the past is for sale");
  }
  const bool old = !last_offering_.empty() && world_.rng.Chance(1, 6);
  const std::string last = last_offering_;
  if (!found.offerings.empty()) {
    last_offering_ = OfferingId(found.offerings[world_.rng.Below(found.offerings.size())]);
  } else {
    world_.Meet("nothing for sale");
  }
  return old ? last : last_offering_;
}

void Buyers::Buy() {
  ControllerHost* leader = leader_();
  if (leader == nullptr || leader->snapshot() == nullptr || !leader->snapshot()->synced) return;
  const std::string offering = FindOffering(*leader->snapshot());
  if (offering.empty()) return;
  const std::string name = fmt::format("block{}", ++bought_);
  if (world_.rng.Chance(1, 2)) return Apply(name, offering);
  controller::PurchaseOrder order{.offering_id = offering, .key = {"default", ""}};
  if (world_.rng.Chance(1, 2)) order.key.name = name;
  if (world_.rng.Chance(4, 5)) order.token = fmt::format("t{}", bought_);
  if (world_.rng.Chance(1, 4)) {
    order.terms.replace = controller::ReplacePolicy::kAutomatic;
  }
  if (world_.rng.Chance(1, 6)) order.terms.binding = controller::BindingMode::kAtPurchase;
  if (world_.rng.Chance(1, 10)) order.tags = {{"tahoma.dev/simulated-payment", "fail"}};
  if (!order.token.empty()) ++unanswered_;
  Send(order, true);
  // Somebody is impatient.
  if (!order.token.empty() && world_.rng.Chance(1, 4)) Send(order, false);
}

void Buyers::Apply(const std::string& name, const std::string& offering) {
  json spec = {{"capacityBlockOfferingId", offering}};
  if (world_.rng.Chance(1, 3)) spec["replacePolicy"] = "Automatic";
  if (world_.rng.Chance(1, 8)) spec["bindingMode"] = "AtPurchase";
  if (world_.rng.Chance(1, 10)) spec["tags"] = {{"tahoma.dev/simulated-payment", "fail"}};
  PostOne({{"apiVersion", "tahoma.dev/v1alpha1"},
           {"kind", "CapacityBlock"},
           {"metadata", {{"name", name}}},
           {"spec", std::move(spec)}});
}

void Buyers::PostOne(const json& object) {
  const Answer made = api_.Call("POST", kCollection, object);
  if (made.status == 400 || made.status == 422) {
    world_.Fail("a buyer's object is refused: {}", made.body.dump());
  }
  if (made.status != 0 && made.status < 500) return;
  world_.events.After(seconds(1), Urgency::kNormal, [this, object] { PostOne(object); });
}

// Sends an order to the leader. An order with a token is sent until there is an answer.
void Buyers::Send(const Order& order, bool again) {
  const auto* purchase = std::get_if<controller::PurchaseOrder>(&order);
  const std::string& token =
      purchase != nullptr ? purchase->token : std::get<controller::ExtensionOrder>(order).token;
  const bool repeats = again && !token.empty();
  const auto later = [this, order, repeats] {
    if (!repeats) return;
    world_.events.After(world_.Between(seconds(1), seconds(5)), Urgency::kNormal,
                        [this, order] { Send(order, true); });
  };
  ControllerHost* leader = leader_();
  if (leader == nullptr) return later();
  if (world_.verbose) {
    fmt::print("{:12.6f} order of {} with token \"{}\"\n",
               std::chrono::duration<double>(world_.events.elapsed()).count(),
               purchase != nullptr ? ToString(purchase->key) : "an extension", token);
  }
  auto answered = std::make_shared<bool>(false);
  leader->Order(order, [this, answered, repeats, later](const auto& answer) {
    if (std::exchange(*answered, true)) return;
    if (world_.verbose) {
      fmt::print("{:12.6f} order is answered: {}\n",
                 std::chrono::duration<double>(world_.events.elapsed()).count(),
                 answer.ok() ? (*answer)->reservation : answer.status().ToString());
    }
    if (answer.ok()) checks_.OnAcknowledged(**answer);
    if (answer.ok() || controller::IsRefusal(answer.status())) {
      if (!answer.ok()) world_.Meet("order refused: " + controller::Ec2CodeOf(answer.status()));
      if (repeats) --unanswered_;
      return;
    }
    later();
  });
  world_.events.After(kPatience, Urgency::kNormal, [this, answered, later] {
    if (std::exchange(*answered, true)) return;
    world_.Meet("order without an answer");
    later();
  });
}

std::shared_ptr<const Block> Buyers::Pick(const Snapshot& snapshot) {
  std::vector<std::shared_ptr<const Block>> blocks;
  snapshot.block_list.ForEach(
      [&](const std::string&, const auto& block) { blocks.push_back(block); });
  std::ranges::sort(blocks, {}, &Block::reservation);  // a map's order is another in each process
  return blocks.empty() ? nullptr : blocks[world_.rng.Below(blocks.size())];
}

void Buyers::Extend() {
  ControllerHost* leader = leader_();
  if (leader == nullptr || leader->snapshot() == nullptr) return;
  const auto block = Pick(*leader->snapshot());
  if (block == nullptr) return;
  controller::ExtensionOrder order{.reservation = block->reservation, .offering_id = ""};
  order.offering_id = controller::ExtensionOfferingId(
      {.reservation = block->reservation,
       .start = block->end,
       .end = block->end + hours(24 * static_cast<int>(1 + world_.rng.Below(2))),
       .rate = block->bought.rate,
       .count = block->bought.count});
  order.token = fmt::format("e{}", ++extended_);
  ++unanswered_;
  Send(order, true);
}

void Buyers::DeleteSomething() {
  if (!api_.up()) return;
  const auto list = api_.objects().List(kBlocks, "default/");
  if (list.objects.empty()) return;
  const json& body = *list.objects[world_.rng.Below(list.objects.size())]->body;
  const std::string name = body.at("metadata").at("name").get<std::string>();
  const Answer answer = api_.Call("DELETE", std::string(kCollection) + "/" + name,
                                  {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  if (answer.status == 200) checks_.OnDeleted(name);
}

void Buyers::MoveClock() {
  constexpr std::array<Duration, 9> kSteps = {minutes(1), minutes(25),  hours(1),
                                              hours(6),   hours(20),    hours(24),
                                              hours(72),  -minutes(20), -hours(30)};
  ControllerHost* leader = leader_();
  const auto snapshot = leader == nullptr ? nullptr : leader->snapshot();
  std::optional<WallTime> due;
  if (snapshot != nullptr) {
    snapshot->block_list.ForEach([&](const std::string&, const auto& block) {
      const auto next = controller::NextDue(*block);
      if (next && (!due || next->when < *due)) due = next->when;
    });
  }
  Duration step = kSteps[world_.rng.Below(kSteps.size())];
  // To the very moment of a due, or just before.
  if (due && world_.rng.Chance(1, 2)) {
    step = *due - world_.ControllersNow() - Duration(static_cast<int>(world_.rng.Below(2)));
  }
  world_.wall_offset += step;
  world_.Meet(step < Duration(0) ? "clock set back" : "clock set forward");
  if (leader != nullptr) leader->Wake();
}

// A buyer may have seen every status of an object, except the late write of a former leader: the
// present leader overwrites the status at once if the capacity was sold
// (docs/design/0019-capacity-blocks.md#leaders-follow-one-another).
void Buyers::Look() {
  if (!api_.up()) return;
  ControllerHost* leader = leader_();
  const auto known = leader == nullptr ? nullptr : leader->snapshot();
  const auto is_late = [&](const Block& block) {
    if (known == nullptr || !known->synced) return false;
    const auto* found = known->block_list.Find(block.reservation);
    return found == nullptr || (*found)->version < block.version;
  };
  for (const auto& object : api_.objects().List(kBlocks, "").objects) {
    const json status = object->body->value("status", json::object());
    const std::string record = status.value("record", "");
    if (record.empty()) continue;
    const auto bytes = Unhex(record);
    const auto block = bytes ? controller::DecodeBlock(*bytes) : absl::DataLossError("no hex");
    if (!block.ok()) return world_.Fail("object {} shows no record", object->key);
    if (is_late(*block)) {
      world_.Meet("late record of a block");
      continue;
    }
    checks_.OnAcknowledged(*block);
  }
}

}  // namespace tahoma::simulation
