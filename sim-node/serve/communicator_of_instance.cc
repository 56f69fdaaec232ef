#include "sim-node/serve/communicator_of_instance.h"

#include <map>
#include <set>
#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

torus::ChipIndex IndexOf(const Instance& instance, int chip) {
  return torus::ChipIndex(FirstChipOf(instance) + chip);
}

}  // namespace

int NodeIdOf(const Instance& instance) {
  const auto& place = instance.options().ultra_server;
  return place ? place->node_id : 0;
}

int FirstChipOf(const Instance& instance) {
  return NodeIdOf(instance) * torus::kInstanceShape.chip_count();
}

NodePlace PlaceOf(const Instance& instance) {
  const auto& place = instance.options().ultra_server;
  return {.name = instance.options().name,
          .ultra_server = place ? place->id : "",
          .node_id = NodeIdOf(instance),
          .instance_type = std::string(instance.type().name),
          .network_layers = instance.options().network_layers};
}

TorusLinks LinksAround(const Instance& instance) {
  const torus::Shape& torus =
      instance.options().ultra_server ? torus::kUltraServerShape : instance.type().torus;
  return {torus, *instance.type().chip};
}

std::vector<LinkState> UnhealthyLinks(const Instance& instance) {
  std::vector<LinkState> unhealthy;
  for (int chip = 0; chip < instance.chip_count(); ++chip) {
    for (const torus::Axis axis : torus::kAxes) {
      for (const torus::Direction direction : torus::kDirections) {
        const Port port{.axis = axis, .direction = direction};
        if (!instance.HasLink(port)) continue;
        const ChipState& state = instance.chip(chip);
        const LinkState link{.link = TorusLinks::IdOf(IndexOf(instance, chip), axis, direction),
                             .permille = instance.LinkPermille(chip, port),
                             .loss_ppm = state.link_loss_ppm.at(PortIndex(port)),
                             .flapping = state.link_flapping.at(PortIndex(port))};
        if (link != LinkState{.link = link.link}) unhealthy.push_back(link);
      }
    }
  }
  return unhealthy;
}

std::vector<torus::ChipIndex> DeadChips(const Instance& instance) {
  std::vector<torus::ChipIndex> dead;
  for (int chip = 0; chip < instance.chip_count(); ++chip) {
    if (instance.chip(chip).fault == ChipFault::kDead) dead.push_back(IndexOf(instance, chip));
  }
  return dead;
}

std::vector<torus::ChipIndex> ChipsWithoutEfa(const Instance& instance) {
  std::vector<torus::ChipIndex> down;
  for (int chip = 0; chip < instance.chip_count(); ++chip) {
    if (!instance.chip(chip).efa_up) down.push_back(IndexOf(instance, chip));
  }
  return down;
}

std::vector<Member> CoresOfClaim(const Instance& instance, const HeldClaim& claim) {
  const hw::ChipModel& model = *instance.type().chip;
  std::map<int, Member> of_chip;
  for (const int chip : claim.chips) {
    of_chip.insert_or_assign(chip, Member{.chip = IndexOf(instance, chip),
                                          .ranks = hw::LogicalCores(model, claim.lnc),
                                          .banks = model.hbm_banks});
  }
  for (const CoresOfChip& part : claim.cores) {
    std::set<int> banks;
    for (const int core : part.cores) banks.insert(hw::HbmBank(model, claim.lnc, core));
    of_chip.insert_or_assign(part.chip, Member{.chip = IndexOf(instance, part.chip),
                                               .ranks = static_cast<int>(part.cores.size()),
                                               .banks = static_cast<int>(banks.size())});
  }
  std::vector<Member> members;
  for (const auto& [chip, member] : of_chip) members.push_back(member);
  return members;
}

absl::StatusOr<wire::Request> InNamespace(const wire::Request& request,
                                          const std::string& name_space) {
  TAHOMA_ASSIGN_OR_RETURN(Json json, wire::ReadJson(request.params, request.method));
  wire::Fields fields(json, request.method);
  const std::string comm_id = fields.String("commId", 1, kMaxCommIdBytes);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  json["commId"] = name_space + "/" + comm_id;
  wire::Request out = request;
  out.params = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out;
}

void AddCommunicatorCalls(NodeServer& server, const LiveInstance& live, CommunicatorCalls& calls,
                          const std::function<void(const std::string& token)>& called) {
  for (const std::string_view method : {kCommJoin, kCommRun, kCommLeave}) {
    server.AddWorkloadCall(std::string(method), [&live, &calls, called](
                                                    const Caller& caller,
                                                    const wire::Request& request) {
      const hw::InstanceType& type =
          live.Read([](const Instance& node) -> const hw::InstanceType& { return node.type(); });
      if (type.fabric == hw::FabricKind::kSwitch) {
        return absl::StatusOr<wire::Reply>(
            Unimplemented("collectives over the switches of a {} are not emulated", type.name));
      }
      called(caller.token);
      const std::vector<Member> cores =
          live.Read([&](const Instance& instance) { return CoresOfClaim(instance, caller.claim); });
      const auto own = InNamespace(request, caller.claim.name_space);
      if (!own.ok()) return absl::StatusOr<wire::Reply>(own.status());
      return calls.Call(*own, caller.token, cores);
    });
  }
}

}  // namespace tahoma::sim
