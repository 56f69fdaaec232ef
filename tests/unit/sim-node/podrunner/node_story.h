// A node's pods told as stories: what happened, and what the node does next, a line for each.
//
//   pods_.OnPod(PodJson("a", {"chips"}), now_);
//   EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
//             (Story{"save", "prepare chips"}));

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "sim-node/podrunner/node_pods.h"

namespace tahoma::sim {

inline constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};

// A pod with these ResourceClaims, all used by its only container.
inline Json PodJson(const std::string& name, const std::vector<std::string>& claims) {
  Json pod = {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}},
              {"spec", {{"nodeName", "node-0"}, {"restartPolicy", "Never"}}}};
  Json container = {{"name", "main"}, {"image", "img"}};
  for (const std::string& claim : claims) {
    pod["spec"]["resourceClaims"].push_back(
        {{"name", "of-" + claim}, {"resourceClaimName", claim}});
    container["resources"]["claims"].push_back({{"name", "of-" + claim}});
  }
  pod["spec"]["containers"] = Json::array({container});
  return pod;
}

inline Json Deleted(Json pod, int grace = 30) {
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = grace;
  return pod;
}

inline ClaimFacts Facts(const std::string& name, const std::vector<std::string>& pods) {
  ClaimFacts facts{.uid = "uid-" + name,
                   .name_space = "default",
                   .name = name,
                   .allocated = true,
                   .drivers = {"neuron.aws.com"},
                   .devices = {"neuron.aws.com/node-0/neuron-device-0/r"}};
  for (const std::string& pod : pods) facts.reserved_for.push_back("uid-" + pod);
  return facts;
}

inline std::vector<PreparedDevice> DevicesOf(const std::string& claim) {
  return {{.requests = {"r"}, .cdi_ids = {"neuron.aws.com/device=" + claim}}};
}

struct Describer {
  std::string operator()(const ReadClaims& read) const {
    return fmt::format("read {} for {}", fmt::join(read.names, "+"), read.pod.name);
  }
  std::string operator()(const PrepareClaim& prepare) const {
    return "prepare " + prepare.claim.name;
  }
  std::string operator()(const UnprepareClaim& unprepare) const {
    return "unprepare " + unprepare.claim.name;
  }
  std::string operator()(const RunContainer& run) const {
    std::string text = "run " + run.pod.name;
    for (const std::string& id : run.cdi_ids) text += " " + id.substr(id.find('=') + 1);
    return text;
  }
  std::string operator()(const StopContainer& stop) const {
    return (stop.kill ? "kill " : "term ") + stop.pod.name;
  }
  std::string operator()(const WriteStatus& write) const {
    const Json status = ParseJson(write.status);
    return fmt::format("{} is {}", write.pod.name, status.value("phase", ""));
  }
  std::string operator()(const DeletePod& remove) const { return "delete " + remove.pod.name; }
  std::string operator()(const WriteEvent& event) const {
    return fmt::format("event {}: {}", event.event.reason, event.event.message);
  }
  std::string operator()(const SaveCheckpoint&) const { return "save"; }
};

using Story = std::vector<std::string>;

inline Story Describe(const NodeActions& actions) {
  Story story;
  for (const NodeAction& action : actions) story.push_back(std::visit(Describer{}, action));
  return story;
}

// The story without what is told to people: statuses and events.
inline Story Deeds(const NodeActions& actions) {
  Story story = Describe(actions);
  std::erase_if(story, [](const std::string& line) {
    return line.starts_with("event ") || line.find(" is ") != std::string::npos;
  });
  return story;
}

class NodePodsTest : public ::testing::Test {
 protected:
  NodePods Make() const { return NodePods({.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"}); }

  // A pod up to its running container.
  void RunPod(NodePods& pods, const std::string& name, const std::vector<std::string>& claims) {
    pods.OnPod(PodJson(name, claims), now_);
    std::vector<ClaimFacts> facts;
    for (const std::string& claim : claims) facts.push_back(Facts(claim, {"a", "b", "c"}));
    pods.OnClaimsRead("uid-" + name, facts, now_);
    for (const std::string& claim : claims) {
      pods.OnClaimPrepared("uid-" + claim, DevicesOf(claim), now_);
    }
    pods.OnStarted("uid-" + name, "main", 0, "tahoma://" + name, now_);
    ASSERT_EQ(pods.Find("uid-" + name)->phase(), "Running");
  }
  NodeActions Exit(NodePods& pods, const std::string& name, int code = 0) {
    return pods.OnExited("uid-" + name, "main", 0, {.code = code}, now_);
  }

  WallTime now_ = kStart;
  NodePods pods_ = Make();
};

}  // namespace tahoma::sim
