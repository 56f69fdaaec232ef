// People and their controllers: they submit gangs and pods, and delete things at any moment.
//
// Requests are written in annotations, so that the checks know them without the planner.
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "tests/sim/api_host.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

// On a Gang or a pod: chips per pod, without any constraint but the gang's shape.
inline constexpr char kChipsPerPod[] = "sim/chips-per-pod";

class Users {
 public:
  Users(World& world, ApiHost& api) : world_(world), api_(api) {}

  void Submit();
  void DeleteSomething();
  // Makes anew the pods that were lost, of gangs whose pods a Job owns: each with the index of the
  // lost pod and another name.
  void ReplacePods();
  // Changes the number of members of a gang with minMembers, as kubectl scale does.
  void Scale();
  // Labels a bound pod into another gang by mistake, and back a little later.
  void Mislabel();
  // Mends the labels of all pods that ever were.
  void LabelBack();
  // Pods, Gangs, claims and templates of all users. True when nothing is left.
  bool DeleteAll();

 private:
  struct Object {
    std::string collection;
    Json body;
  };

  struct Job {
    int members = 0;
    int attempt = 0;
    Json pod;  // without name and index
  };

  void SubmitGang(const std::string& name);
  void PostPodOfJob(const std::string& gang, const Job& job, int index);
  void SubmitPod(const std::string& name);
  void SubmitSharers(const std::string& name);
  void SubmitGangAroundAClaim(const std::string& name);
  // Posts them one after the other in any order, each until it is taken.
  void Post(std::vector<Object> objects);
  void PostOne(const Object& object);
  Object Template(const std::string& name, Json request, Json constraints);
  static Object Gang(const std::string& name, Json spec);
  static Object Claim(const std::string& name, int chips);
  Object Member(const std::string& gang, int rank, Json claim);
  Object Pod(const std::string& name, Json claim);
  void AddNics(Json& claim_template);
  void AddRuntime(Json& annotations);
  // A random object of the collection: its path, or empty.
  std::string Pick(const controller::apiserver::ResourceName& resource,
                   const std::string& collection);
  void Delete(const std::string& path, bool force);
  // Until it is done or the pod is gone.
  void Label(const std::string& pod, const std::string& gang);

  World& world_;
  ApiHost& api_;
  int submitted_ = 0;
  std::map<std::string, Job> jobs_;                 // by their gangs
  std::map<std::string, std::string> mislabelled_;  // the gangs of pods, by their paths
};

}  // namespace tahoma::simulation
