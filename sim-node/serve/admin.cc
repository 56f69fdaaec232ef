#include "sim-node/serve/admin.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <initializer_list>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

absl::StatusOr<int> ChipNumber(std::string_view text) {
  int chip = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), chip);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("chip \"{}\" is not a number", text);
  }
  return chip;
}

// Returns a request's JSON body. kInvalidArgument, naming the member, unless it has all of `keys`
// and nothing else.
absl::StatusOr<json> BodyWith(const rest::Request& request,
                              std::initializer_list<std::string_view> keys) {
  json body = TryParseJson(request.body);
  if (!body.is_object()) {
    return InvalidArgument("the body must be a JSON object with \"{}\"",
                           fmt::join(keys, "\" and \""));
  }
  for (const auto& [name, value] : body.items()) {
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
      return InvalidArgument("the body has an unknown field \"{}\"", name);
    }
  }
  for (const std::string_view key : keys) {
    if (!body.contains(key)) return InvalidArgument("the body has no \"{}\"", key);
  }
  return body;
}

absl::StatusOr<json> BodyField(const rest::Request& request, const char* key) {
  TAHOMA_ASSIGN_OR_RETURN(const json body, BodyWith(request, {key}));
  return body[key];
}

rest::Response Answer(const absl::Status& done, LiveInstance& live) {
  if (!done.ok()) return rest::Response::FromStatus(done);
  return rest::Response::Json(200, live.Read(StateJson));
}

absl::Status BreakChip(const rest::Request& request, LiveInstance& live) {
  TAHOMA_ASSIGN_OR_RETURN(const int chip, ChipNumber(request.param("chip")));
  TAHOMA_ASSIGN_OR_RETURN(const json reason, BodyField(request, "reason"));
  if (!reason.is_string()) return InvalidArgument("reason must be a string");
  TAHOMA_ASSIGN_OR_RETURN(const ChipFault fault, ParseFault(reason.get<std::string>()));
  return live.Change([&](Instance& node) { return node.BreakChip(chip, fault); });
}

absl::Status RepairChip(const rest::Request& request, LiveInstance& live) {
  TAHOMA_ASSIGN_OR_RETURN(const int chip, ChipNumber(request.param("chip")));
  return live.Change([&](Instance& node) { return node.RepairChip(chip); });
}

// Calls change(node, chip, port) for the link in the path.
template <typename Change>
absl::Status ChangeLink(const rest::Request& request, LiveInstance& live, const Change& change) {
  TAHOMA_ASSIGN_OR_RETURN(const int chip, ChipNumber(request.param("chip")));
  TAHOMA_ASSIGN_OR_RETURN(const Port port, ParsePort(request.param("port")));
  return live.Change([&](Instance& node) { return change(node, chip, port); });
}

absl::Status SetLink(const rest::Request& request, LiveInstance& live, std::uint16_t permille) {
  return ChangeLink(request, live, [permille](Instance& node, int chip, Port port) {
    return node.SetLink(chip, port, permille);
  });
}

absl::Status RepairLink(const rest::Request& request, LiveInstance& live) {
  return ChangeLink(request, live, [](Instance& node, int chip, Port port) {
    return node.RepairLink(chip, port);
  });
}

absl::Status DegradeLink(const rest::Request& request, LiveInstance& live) {
  TAHOMA_ASSIGN_OR_RETURN(const json permille, BodyField(request, "permille"));
  if (!permille.is_number_integer() || permille < 0 || permille > 1000) {
    return InvalidArgument("permille must be an integer from 0 to 1000");
  }
  return SetLink(request, live, permille.get<std::uint16_t>());
}

absl::Status LosePackets(const rest::Request& request, LiveInstance& live) {
  TAHOMA_ASSIGN_OR_RETURN(const json ppm, BodyField(request, "lossPpm"));
  if (!ppm.is_number_integer() || ppm < 0 || ppm > kMaxLossPpm) {
    return InvalidArgument("lossPpm must be an integer from 0 to {}", kMaxLossPpm);
  }
  return ChangeLink(request, live, [&](Instance& node, int chip, Port port) {
    return node.SetLinkLoss(chip, port, ppm.get<std::uint32_t>());
  });
}

absl::Status FlapLink(const rest::Request& request, LiveInstance& live) {
  TAHOMA_ASSIGN_OR_RETURN(const json body, BodyWith(request, {"periodUs", "downUs"}));
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(kMaxFlapPeriod).count();
  for (const char* key : {"periodUs", "downUs"}) {
    if (!body[key].is_number_integer() || body[key] < 1 || body[key] > most) {
      return InvalidArgument("{} must be an integer from 1 to {}", key, most);
    }
  }
  const auto time = [&](const char* key) -> VirtualDuration {
    return std::chrono::microseconds(body[key].get<std::int64_t>());
  };
  return ChangeLink(request, live, [&](Instance& node, int chip, Port port) {
    return node.SetLinkFlapping(chip, port, {.period = time("periodUs"), .down = time("downUs")});
  });
}

absl::Status SetEfa(const rest::Request& request, LiveInstance& live, bool up) {
  TAHOMA_ASSIGN_OR_RETURN(const int chip, ChipNumber(request.param("chip")));
  return live.Change([&](Instance& node) { return node.SetEfa(chip, up); });
}

absl::Status NoElection() {
  return FailedPrecondition(
      "this node takes part in no election: its configuration has no ultraServer.peers");
}

absl::Status Elect(NodeElection* election) {
  return election == nullptr ? NoElection() : election->Elect();
}

absl::Status SetMode(const rest::Request& request, NodeElection* election) {
  TAHOMA_ASSIGN_OR_RETURN(const json text, BodyField(request, "mode"));
  if (!text.is_string()) return InvalidArgument("mode must be a string");
  TAHOMA_ASSIGN_OR_RETURN(const UltraServerMode mode, hw::ParseMode(text.get<std::string>()));
  return election == nullptr ? NoElection() : election->SetMode(mode);
}

void AddGauges(rest::Metrics& metrics, LiveInstance& live) {
  metrics.AddGaugeCallback("tahoma_node_chips_broken", "Chips with a fault.", [&live] {
    return live.Read([](const Instance& node) {
      double broken = 0;
      for (int i = 0; i < node.chip_count(); ++i) broken += node.chip(i).fault ? 1 : 0;
      return broken;
    });
  });
  metrics.AddGaugeCallback("tahoma_node_links_down", "Directed links that carry nothing.", [&live] {
    return live.Read([](const Instance& node) {
      double down = 0;
      for (int i = 0; i < node.chip_count(); ++i) {
        for (const Port port : kAllPorts) down += node.LinkPermille(i, port) == 0 ? 1 : 0;
      }
      return down;
    });
  });
  metrics.AddGaugeCallback("tahoma_node_efa_down", "Chips whose network card is down.", [&live] {
    return live.Read([](const Instance& node) {
      double down = 0;
      for (int i = 0; i < node.chip_count(); ++i) down += node.chip(i).efa_up ? 0 : 1;
      return down;
    });
  });
  metrics.AddGaugeCallback("tahoma_node_claims", "Claims held.", [&live] {
    return live.Read(
        [](const Instance& node) { return static_cast<double>(node.claims().size()); });
  });
}

json ChipJson(const Instance& node, int index) {
  const ChipState& state = node.chip(index);
  json links = json::object();
  json loss = json::object();
  json flapping = json::object();
  for (const Port port : kAllPorts) {
    const std::size_t at = PortIndex(port);
    const std::string name = PortName(port);
    if (node.HasLink(port)) links[name] = node.LinkPermille(index, port);
    if (state.link_loss_ppm.at(at) != 0) loss[name] = state.link_loss_ppm.at(at);
    if (const Flapping& flaps = state.link_flapping.at(at); flaps != Flapping{}) {
      flapping[name] = {{"periodUs", Nanoseconds(flaps.period) / 1e3},
                        {"downUs", Nanoseconds(flaps.down) / 1e3}};
    }
  }
  json chip = {{"chip", index},
               {"healthy", !state.fault.has_value()},
               {"lnc", node.lnc(index)},
               {"efa", state.efa_up ? "up" : "down"},
               {"linkPermille", std::move(links)}};
  if (!loss.empty()) chip["linkLossPpm"] = std::move(loss);
  if (!flapping.empty()) chip["linkFlapping"] = std::move(flapping);
  if (state.fault) {
    chip["reason"] = FaultName(*state.fault);
    if (!FaultClass(*state.fault).empty()) chip["errorClass"] = FaultClass(*state.fault);
  }
  return chip;
}

json ElectionJson(const ElectionResult& result) {
  json modes = json::array();
  for (const UltraServerMode mode : result.modes) modes.push_back(ModeName(mode));
  const ClassFiles files = ClassFilesOf(result);
  return {{"state", StateName(result.state)},
          {"reason", result.reason},
          {"nodes", result.node_count},
          {"mode", ModeName(result.mode)},
          {"modes", std::move(modes)},
          {"classFiles",
           {{"ultraserver_mode", files.ultraserver_mode},
            {"node_id_2", files.node_id_2},
            {"node_id_4", files.node_id_4},
            {"server_id_2", files.server_id_2},
            {"server_id_4", files.server_id_4}}}};
}

}  // namespace

std::string StateJson(const Instance& node) {
  json chips = json::array();
  for (int i = 0; i < node.chip_count(); ++i) chips.push_back(ChipJson(node, i));
  json claims = json::array();
  for (const HeldClaim* claim : node.claims()) {
    claims.push_back({{"uid", claim->claim_uid},
                      {"namespace", claim->name_space},
                      {"name", claim->name},
                      {"lnc", claim->lnc},
                      {"chips", claim->TouchedChips()}});
  }
  json state = {{"nodeName", node.options().name},
                {"instanceType", node.type().name},
                {"generation", node.generation()},
                {"chips", std::move(chips)},
                {"claims", std::move(claims)}};
  if (node.options().ultra_server) {
    state["ultraServer"] = {{"id", node.options().ultra_server->id},
                            {"nodeId", node.options().ultra_server->node_id}};
    if (node.election()) state["ultraServer"]["election"] = ElectionJson(*node.election());
  }
  return state.dump();
}

void InstallAdminRoutes(rest::Server& server, rest::Metrics& metrics, LiveInstance& live,
                        NodeElection* election) {
  AddGauges(metrics, live);
  const auto post = [&](const std::string& path,
                        std::function<absl::Status(const rest::Request&)> act) {
    server.Route("POST", path, [&live, act = std::move(act)](const rest::Request& request) {
      return Answer(act(request), live);
    });
  };
  server.Route("GET", "/v1/state",
               [&live](const rest::Request&) { return Answer(absl::OkStatus(), live); });
  post("/v1/chips/{chip}/break", [&live](const auto& request) { return BreakChip(request, live); });
  post("/v1/chips/{chip}/repair",
       [&live](const auto& request) { return RepairChip(request, live); });
  post("/v1/links/{chip}/{port}/down",
       [&live](const auto& request) { return SetLink(request, live, 0); });
  post("/v1/links/{chip}/{port}/up",
       [&live](const auto& request) { return RepairLink(request, live); });
  post("/v1/links/{chip}/{port}/degrade",
       [&live](const auto& request) { return DegradeLink(request, live); });
  post("/v1/links/{chip}/{port}/lose",
       [&live](const auto& request) { return LosePackets(request, live); });
  post("/v1/links/{chip}/{port}/flap",
       [&live](const auto& request) { return FlapLink(request, live); });
  post("/v1/efa/{chip}/down",
       [&live](const auto& request) { return SetEfa(request, live, false); });
  post("/v1/efa/{chip}/up", [&live](const auto& request) { return SetEfa(request, live, true); });
  post("/v1/ultraserver/elect", [election](const auto&) { return Elect(election); });
  post("/v1/ultraserver/mode",
       [election](const auto& request) { return SetMode(request, election); });
}

}  // namespace tahoma::sim
