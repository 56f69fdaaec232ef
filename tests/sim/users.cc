#include "tests/sim/users.h"

#include <array>
#include <string_view>
#include <utility>

#include "tests/sim/queue_checks.h"
#include "tests/sim/virtual_node.h"

namespace tahoma::simulation {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kGangLabel[] = "tahoma.dev/gang";
constexpr char kIndexLabel[] = "batch.kubernetes.io/job-completion-index";
constexpr char kPodsPath[] = "/api/v1/namespaces/default/pods";
constexpr char kGangsPath[] = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
constexpr char kClaimsPath[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kTemplates[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";

// Shapes with the members of one gang slice; the last three cannot be had, each for another reason.
struct GangKind {
  const char* shape;
  int members;
  int chips;  // per pod
};
constexpr std::array<GangKind, 13> kGangKinds = {{{"4x4x4", 4, 16},
                                                  {"4x4x2", 2, 16},
                                                  {"4x4", 1, 16},
                                                  {"2x2x4", 4, 4},
                                                  {"4x2x2", 2, 8},
                                                  {"2x2", 1, 4},
                                                  {"4x2", 2, 4},
                                                  {"2x2x2", 2, 4},
                                                  {"2x1", 1, 2},
                                                  {"", 3, 1},
                                                  {"3x2", 1, 6},
                                                  {"4x4x4", 3, 16},
                                                  {"4x4", 1, 8}}};

json ChipRequest(int count) {
  return {
      {"name", "neurons"},
      {"exactly",
       {{"deviceClassName", "neuron.aws.com"},
        {"allocationMode", "ExactCount"},
        {"count", count},
        {"selectors", json::array({json{{"cel",
                                         {{"expression",
                                           "device.attributes['neuron.aws.com'].resourceType == "
                                           "'neuron_device'"}}}}})}}}};
}

json SelectedRequest(const char* device_class, int count, const std::string& expression) {
  json request = ChipRequest(count);
  request["exactly"]["deviceClassName"] = device_class;
  request["exactly"]["selectors"][0]["cel"]["expression"] = expression;
  return request;
}

json ClaimSpec(json request, json constraints) {
  json devices = {{"requests", json::array({std::move(request)})}};
  if (!constraints.is_null()) devices["constraints"] = json::array({std::move(constraints)});
  return {{"devices", std::move(devices)}};
}

}  // namespace

void Users::Submit() {
  const std::string name = fmt::format("job{}", ++submitted_);
  const std::uint64_t dice = world_.rng.Below(10);
  if (dice < 6) return SubmitGang(name);
  if (dice < 8) return SubmitPod(name);
  if (dice < 9) return SubmitSharers(name);
  SubmitGangAroundAClaim(name);
}

// Adds a request for interfaces to the claim of a template.
void Users::AddNics(json& claim_template) {
  json request = {{"name", "nics"},
                  {"exactly",
                   {{"deviceClassName", "nics"},
                    {"allocationMode", "ExactCount"},
                    {"count", 1 + world_.rng.Below(3)}}}};
  claim_template["spec"]["spec"]["devices"]["requests"].push_back(std::move(request));
}

void Users::AddRuntime(json& annotations) {
  if (world_.rng.Chance(1, 4)) return;  // until it is deleted
  annotations[kRunsFor] = std::to_string(1 + world_.rng.Below(60));
  if (world_.rng.Chance(1, 5)) annotations[kExitsWith] = "3";
}

Users::Object Users::Template(const std::string& name, json request, json constraints) {
  return {kTemplates,
          {{"metadata", {{"name", name}}},
           {"spec", {{"spec", ClaimSpec(std::move(request), std::move(constraints))}}}}};
}

Users::Object Users::Gang(const std::string& name, json spec) {
  return {kGangsPath,
          {{"apiVersion", "tahoma.dev/v1alpha1"},
           {"kind", "Gang"},
           {"metadata", {{"name", name}}},
           {"spec", std::move(spec)}}};
}

Users::Object Users::Claim(const std::string& name, int chips) {
  return {kClaimsPath,
          {{"metadata", {{"name", name}}}, {"spec", ClaimSpec(ChipRequest(chips), nullptr)}}};
}

Users::Object Users::Member(const std::string& gang, int rank, json claim) {
  Object pod = Pod(fmt::format("{}-{}", gang, rank), std::move(claim));
  pod.body["metadata"]["labels"] = {{"tahoma.dev/gang", gang}};
  return pod;
}

Users::Object Users::Pod(const std::string& name, json claim) {
  claim["name"] = "neurons";
  json pod = {{"metadata", {{"name", name}, {"annotations", json::object()}}},
              {"spec",
               {{"schedulerName", "tahoma"},
                {"restartPolicy", "Never"},
                {"terminationGracePeriodSeconds", world_.rng.Below(20)},
                {"containers",
                 json::array({json{
                     {"name", "main"},
                     {"image", "work"},
                     {"resources", {{"claims", json::array({json{{"name", "neurons"}}})}}}}})},
                {"resourceClaims", json::array({std::move(claim)})}}}};
  if (world_.swarm.needs) {
    constexpr std::array kCores = {"500m", "30", "70", "200"};  // large nodes have 192
    pod["spec"]["containers"][0]["resources"]["requests"] = {
        {"cpu", kCores[world_.rng.Below(kCores.size())]}};
  }
  AddRuntime(pod["metadata"]["annotations"]);
  return {kPodsPath, std::move(pod)};
}

void Users::SubmitGang(const std::string& name) {
  constexpr GangKind kOfAnySize{"", 4, 1};
  const bool changes_size = world_.rng.Chance(1, 6);
  const GangKind& kind =
      changes_size ? kOfAnySize : kGangKinds[world_.rng.Below(kGangKinds.size())];
  const int slices = changes_size ? 1 : 1 + static_cast<int>(world_.rng.Chance(1, 4));
  json spec = {{"members", kind.members * slices}, {"slices", slices}};
  if (changes_size) spec["minMembers"] = 1 + world_.rng.Below(4);
  if (*kind.shape != '\0') spec["shape"] = kind.shape;
  if (world_.rng.Chance(1, 4)) spec["priority"] = world_.rng.Below(3);
  constexpr const char* kPolicies[] = {"RestartAll", "RestartAll", "Replace", "Replace", "Fail"};
  spec["failurePolicy"] = kPolicies[world_.rng.Below(5)];
  // Nobody makes pods anew after the chaos: the wait for new pods ends before a world is at rest.
  if (spec["failurePolicy"] == "Replace") spec["startWithin"] = "60s";
  if (world_.rng.Chance(1, 8)) spec["startWithin"] = "20s";
  // The checks of blocks know nothing of borrowing gangs.
  const bool preemptible = world_.rng.Chance(1, world_.swarm.ends_known ? 2 : 4);
  if (world_.swarm.purchases == 0 && preemptible) spec["preemptible"] = true;
  if (world_.swarm.purchases > 0 && world_.rng.Chance(1, 3)) {
    spec["capacityBlock"] = fmt::format("block{}", 1 + world_.rng.Below(8));
  }
  if (world_.swarm.queues && world_.rng.Chance(4, 5)) {
    spec["queue"] = QueueNames()[world_.rng.Below(QueueNames().size())];
  }
  std::optional<std::uint64_t> longest;
  if (world_.swarm.ends_known && world_.rng.Chance(7, 8)) {
    longest = 60 + world_.rng.Below(180);
    spec["maxRuntime"] = fmt::format("{}s", *longest);
  }
  Object gang = Gang(name, std::move(spec));
  gang.body["metadata"]["annotations"] = {{kChipsPerPod, std::to_string(kind.chips)}};
  std::vector<Object> objects = {std::move(gang), Template(name, ChipRequest(kind.chips), nullptr)};
  if (world_.swarm.nics && world_.rng.Chance(1, 2)) AddNics(objects[1].body);
  json annotations = json::object();
  AddRuntime(annotations);
  // Some run for longer than they may.
  if (longest) annotations[kRunsFor] = std::to_string(1 + world_.rng.Below(*longest + 20));
  if (world_.rng.Chance(1, 2)) {
    Object pod = Member(name, 0, json{{"resourceClaimTemplateName", name}});
    pod.body["metadata"].erase("name");
    if (longest) pod.body["metadata"]["annotations"] = annotations;
    Job& job = jobs_[name];
    job = {.members = kind.members * slices, .attempt = 0, .pod = std::move(pod.body)};
    Post(std::move(objects));
    for (int i = 0; i < job.members; ++i) PostPodOfJob(name, job, i);
    return;
  }
  for (int i = 0; i < kind.members * slices; ++i) {
    Object pod = Member(name, i, json{{"resourceClaimTemplateName", name}});
    if (longest || world_.rng.Chance(2, 3)) pod.body["metadata"]["annotations"] = annotations;
    objects.push_back(std::move(pod));
  }
  Post(std::move(objects));
}

void Users::PostPodOfJob(const std::string& gang, const Job& job, int index) {
  json pod = job.pod;
  pod["metadata"]["name"] = fmt::format("{}-{}-{}", gang, index, job.attempt);
  pod["metadata"]["labels"][kIndexLabel] = std::to_string(index);
  if (job.attempt > 0) pod["metadata"]["annotations"].erase(kExitsWith);
  Post({{kPodsPath, std::move(pod)}});
}

void Users::ReplacePods() {
  if (!api_.up() || jobs_.empty()) return;
  const auto pods = api_.objects().List({"", "pods"}, "default/");
  for (auto& [gang, job] : jobs_) {
    if (api_.objects().Get({"tahoma.dev", "gangs"},
                           controller::apiserver::ObjectKey("default", gang)) == nullptr) {
      continue;  // it is not made yet, or was deleted
    }
    std::vector<bool> there(static_cast<std::size_t>(job.members), false);
    for (const auto& object : pods.objects) {
      const json& metadata = object->body->at("metadata");
      const json labels = metadata.value("labels", json::object());
      if (labels.value(kGangLabel, "") != gang || !labels.contains(kIndexLabel)) continue;
      const std::string phase = object->body->value("/status/phase"_json_pointer, std::string());
      if (metadata.contains("deletionTimestamp") || phase == "Failed") continue;
      there[std::stoul(labels.at(kIndexLabel).get<std::string>())] = true;
    }
    ++job.attempt;
    for (int i = 0; i < job.members; ++i) {
      if (there[static_cast<std::size_t>(i)]) continue;
      world_.Meet("lost pod made anew");
      PostPodOfJob(gang, job, i);
    }
  }
}

void Users::SubmitPod(const std::string& name) {
  const std::uint64_t dice = world_.rng.Below(6);
  json request = ChipRequest(1 << world_.rng.Below(5));
  json constraints;
  bool plain = dice < 3;
  if (dice == 3) {  // AWS's connected chips
    request = ChipRequest(4);
    constraints = {{"requests", json::array({"neurons"})},
                   {"matchAttribute", "resource.aws.com/devicegroup4_id"}};
  } else if (dice == 4) {
    request = SelectedRequest("neuron.aws.com", 1,
                              "device.attributes['neuron.aws.com'].resourceType == 'neuron_node'");
  } else if (dice == 5) {
    const int lnc = world_.rng.Chance(1, 2) ? 1 : 2;
    request = SelectedRequest("neuroncore.tahoma.dev", 1 << world_.rng.Below(3),
                              fmt::format("device.attributes['tahoma.dev'].lnc == {}", lnc));
  }
  const std::string chips = std::to_string(request["exactly"]["count"].get<int>());
  Object pod = Pod(name, json{{"resourceClaimTemplateName", name}});
  if (plain) pod.body["metadata"]["annotations"][kChipsPerPod] = chips;
  Post({Template(name, std::move(request), std::move(constraints)), std::move(pod)});
}

// Two or three pods with one claim that outlives them.
void Users::SubmitSharers(const std::string& name) {
  std::vector<Object> objects = {Claim(name, 2)};
  const int pods = 2 + static_cast<int>(world_.rng.Below(2));
  for (int i = 0; i < pods; ++i) {
    objects.push_back(Pod(fmt::format("{}-{}", name, i), json{{"resourceClaimName", name}}));
  }
  Post(std::move(objects));
}

// A gang with a shape. The first pod uses a claim, perhaps allocated for another pod by then.
void Users::SubmitGangAroundAClaim(const std::string& name) {
  constexpr int kChips = 4;
  const std::string other = name + "-other";
  Post({Gang(name, {{"members", 2}, {"shape", "2x4"}}), Claim(other, kChips),
        Template(name, ChipRequest(kChips), nullptr),
        Pod(other, json{{"resourceClaimName", other}}),
        Member(name, 0, json{{"resourceClaimName", other}}),
        Member(name, 1, json{{"resourceClaimTemplateName", name}})});
}

void Users::Post(std::vector<Object> objects) {
  for (std::size_t i = objects.size(); i > 1; --i) {
    std::swap(objects[i - 1], objects[world_.rng.Below(i)]);
  }
  Duration at{0};
  for (const Object& object : objects) {
    at += world_.rng.Chance(1, 8) ? world_.Between(seconds(0), seconds(4)) : world_.Latency();
    world_.events.After(at, Urgency::kNormal, [this, object] { PostOne(object); });
  }
}

void Users::PostOne(const Object& object) {
  const Answer made = api_.Call("POST", object.collection, object.body);
  if (made.status == 400) world_.Fail("a user's object is refused: {}", made.body.dump());
  if (made.status != 0 && made.status < 500) return;
  world_.events.After(seconds(1), Urgency::kNormal, [this, object] { PostOne(object); });
}

std::string Users::Pick(const controller::apiserver::ResourceName& resource,
                        const std::string& collection) {
  if (!api_.up()) return "";
  const auto list = api_.objects().List(resource, "default/");
  if (list.objects.empty()) return "";
  const auto& chosen = list.objects[world_.rng.Below(list.objects.size())];
  return fmt::format("{}/{}", collection,
                     chosen->body->at("metadata").at("name").get<std::string>());
}

void Users::Delete(const std::string& path, bool force) {
  if (path.empty()) return;
  json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (force) options["gracePeriodSeconds"] = 0;
  (void)api_.Call("DELETE", path, options);
}

void Users::DeleteSomething() {
  const Swarm& swarm = world_.swarm;
  if (world_.Happens(swarm.delete_pod)) Delete(Pick({"", "pods"}, kPodsPath), false);
  if (world_.Happens(swarm.force_pod)) Delete(Pick({"", "pods"}, kPodsPath), true);
  if (world_.Happens(swarm.delete_gang)) Delete(Pick({"tahoma.dev", "gangs"}, kGangsPath), false);
  if (world_.Happens(swarm.delete_claim)) {
    Delete(Pick({"resource.k8s.io", "resourceclaims"}, kClaimsPath), false);
  }
}

void Users::Scale() {
  const std::string path = Pick({"tahoma.dev", "gangs"}, kGangsPath);
  if (path.empty()) return;
  const Answer gang = api_.Call("GET", path);
  if (gang.status != 200 || !gang.body.at("spec").contains("minMembers")) return;
  const json scale = {{"spec", {{"replicas", 1 + world_.rng.Below(5)}}}};
  const Answer done = api_.Call("PATCH", path + "/scale", scale, "application/merge-patch+json");
  if (done.status == 200) world_.Meet("gang scaled");
  if (done.status == 422) world_.Meet("gang not scaled below minMembers");
}

void Users::Mislabel() {
  const std::string path = Pick({"", "pods"}, kPodsPath);
  const std::string other = Pick({"tahoma.dev", "gangs"}, kGangsPath);
  if (path.empty() || other.empty()) return;
  const Answer pod = api_.Call("GET", path);
  if (pod.status != 200) return;
  const json& metadata = pod.body.at("metadata");
  const json labels = metadata.value("labels", json::object());
  if (!labels.contains(kGangLabel) || !pod.body.at("spec").contains("nodeName")) return;
  world_.Meet("pod mislabelled");
  mislabelled_.emplace(path, labels.at(kGangLabel).get<std::string>());
  Label(path, other.substr(other.rfind('/') + 1));
  world_.events.After(world_.Between(milliseconds(100), seconds(20)), Urgency::kNormal,
                      [this, path] { Label(path, mislabelled_.at(path)); });
}

void Users::Label(const std::string& pod, const std::string& gang) {
  const Answer done =
      api_.Call("PATCH", pod, json{{"metadata", {{"labels", {{kGangLabel, gang}}}}}},
                "application/merge-patch+json");
  if (done.status != 0 && done.status < 500) return;
  world_.events.After(seconds(1), Urgency::kNormal, [this, pod, gang] { Label(pod, gang); });
}

void Users::LabelBack() {
  for (const auto& [pod, gang] : mislabelled_) Label(pod, gang);
}

bool Users::DeleteAll() {
  const std::array<std::pair<controller::apiserver::ResourceName, const char*>, 4> kinds = {
      {{{"", "pods"}, kPodsPath},
       {{"tahoma.dev", "gangs"}, kGangsPath},
       {{"resource.k8s.io", "resourceclaims"}, kClaimsPath},
       {{"resource.k8s.io", "resourceclaimtemplates"}, kTemplates}}};
  bool none = true;
  for (const auto& [resource, collection] : kinds) {
    for (const auto& object : api_.objects().List(resource, "default/").objects) {
      none = false;
      const json& metadata = object->body->at("metadata");
      if (metadata.contains("deletionTimestamp")) continue;
      Delete(fmt::format("{}/{}", collection, metadata.at("name").get<std::string>()), false);
    }
  }
  return none;
}

}  // namespace tahoma::simulation
