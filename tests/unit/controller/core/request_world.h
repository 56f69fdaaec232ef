// A core, its journal and the objects about Capacity Blocks as the API has them: each write is
// rendered, carried out on JSON, and comes back as a watch's event.
//
//   RequestWorld world;
//   world.Settle();
//   world.Apply("capacityblocks", "team-a", "train", {{"capacityBlockOfferingId", id}});
//   world.Settle();
//   world.Status("capacityblocks", "team-a", "train").at("state");      // "scheduled"
//
// Thread safety: one thread.

#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/facts/read_facts.h"
#include "controller/core/facts/read_request.h"
#include "controller/publish/render.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/patch.h"
#include "tests/support/fake_api.h"
#include "tests/support/fleet.h"
#include "tests/support/memory_journal.h"

namespace tahoma::controller {

inline constexpr char kBlocks[] = "capacityblocks";  // the plural of their kind

class RequestWorld {
 public:
  explicit RequestWorld(int ultra_servers = 2) : ultra_servers_(ultra_servers) { Start(); }

  // Begins a controller, which reads the journal and then the objects.
  void Start() {
    core_ = std::make_unique<Core>(FirstFit, options);
    commands_.clear();
    TAHOMA_CHECK_OK(journal.Load([&](Sequence sequence, std::string_view bytes) {
      return core_->Restore(sequence, bytes);
    }));
    for (int i = 0; i < ultra_servers_; ++i) AddUltraServer(i);
    for (const auto& [path, object] : objects_) See(path);
    commands_.emplace_back(WatchesSynced{});
  }
  // The journal is lost, as when a stand-by with an empty disk takes over.
  void FailOver() {
    journal.Lose();
    Start();
  }

  void AddUltraServer(int number) {
    const std::string id = "us-" + std::to_string(number);
    for (int z = 0; z < 4; ++z) {
      commands_.emplace_back(
          NodeSeen{InternAlone(NodeFactsOf({.name = id + "-n" + std::to_string(z),
                                            .type = "trn2u.48xlarge",
                                            .ultra_server = id,
                                            .z = z}))});
    }
  }
  void RemoveUltraServer(int number) {
    for (int z = 0; z < 4; ++z) {
      RemoveNode("us-" + std::to_string(number) + "-n" + std::to_string(z));
    }
  }
  void RemoveNode(const std::string& name) { commands_.emplace_back(NodeGone{name}); }

  // Steps until nothing moves; stops before the API write of that number, when there is one.
  // Returns whether it came to rest.
  bool Settle(int most_writes = 1'000'000) {
    for (int quiet = 0; quiet < 2;) {
      const std::vector<Command> commands = std::exchange(commands_, {});
      StepOutput out = core_->Step(commands, now());
      TAHOMA_CHECK_OK(journal.Write(out.journal));
      for (const ApiWrite& write : out.writes) {
        if (write.kind() != WriteKind::kEvent && --most_writes < 0) return false;
        Execute(write);
      }
      quiet = commands.empty() && out.writes.empty() ? quiet + 1 : 0;
    }
    return true;
  }
  void MoveTo(WallTime time) {
    wall = time;
    Settle();
  }
  void Pass(std::chrono::nanoseconds time) { MoveTo(wall + time); }

  Now now() const { return {wall, MonotonicTime(wall.time_since_epoch())}; }
  const BlockView* View(const std::string& name) const {
    const auto* view = core_->snapshot()->blocks.Find(BlockKey{"team-a", name});
    return view == nullptr ? nullptr : view->get();
  }
  const Block& BlockOf(const std::string& name) const { return *View(name)->block; }
  const Core& core() const { return *core_; }

  // ---- The API ---------------------------------------------------------------------------------

  // Makes an object as kubectl does.
  void Apply(const std::string& plural, const std::string& ns, const std::string& name,
             const Json& spec) {
    const std::string uid = "uid-" + std::to_string(++uids_);
    Json metadata = {
        {"name", name}, {"uid", uid}, {"generation", 1}, {"creationTimestamp", FormatTime(wall)}};
    if (!ns.empty()) metadata["namespace"] = ns;
    Put(PathOf(plural, ns, name), {{"metadata", std::move(metadata)}, {"spec", spec}});
  }
  void Delete(const std::string& plural, const std::string& ns, const std::string& name) {
    Lose(PathOf(plural, ns, name));
  }
  // Somebody writes a status.
  void Edit(const std::string& plural, const std::string& ns, const std::string& name,
            const Json& status) {
    const std::string path = PathOf(plural, ns, name);
    Json object = objects_.at(path);
    object["status"] = kube::MergePatch(object["status"], status);
    Put(path, std::move(object));
  }
  void EditSpec(const std::string& plural, const std::string& ns, const std::string& name,
                const Json& spec) {
    const std::string path = PathOf(plural, ns, name);
    Json object = objects_.at(path);
    object["spec"] = spec;
    object["metadata"]["generation"] = object["metadata"]["generation"].get<int>() + 1;
    Put(path, std::move(object));
  }
  Json Status(const std::string& plural, const std::string& ns, const std::string& name) const {
    const auto found = objects_.find(PathOf(plural, ns, name));
    if (found == objects_.end() || !found->second.contains("status")) return Json::object();
    return found->second.at("status");
  }
  bool Exists(const std::string& plural, const std::string& ns, const std::string& name) const {
    return objects_.contains(PathOf(plural, ns, name));
  }
  std::string State(const std::string& plural, const std::string& name) const {
    return Status(plural, "team-a", name).value("state", "");
  }
  // Reports all objects again, as a watch that begins anew.
  void Replay() {
    for (const auto& [path, object] : objects_) See(path);
  }

  // Returns an offering of one UltraServer (or more) from tomorrow (or later) on.
  std::string Offering(int days = 1, int count = 1, int from = 1) const {
    const auto snapshot = core_->snapshot();
    const WallTime at = snapshot->block_time.ToBlock(wall);
    const auto search = CheckQuery({.ultraserver_type = "u-trn2x64",
                                    .ultraserver_count = count,
                                    .duration_hours = days * 24,
                                    .start_date_range = StartOf(SlotOf(at) + from),
                                    .any_cell = count > 1,
                                    .order = OfferingOrder::kStart},
                                   at);
    const SearchAnswer answer = SearchOfferings(snapshot->profile, snapshot->prices, *search, at);
    TAHOMA_CHECK(!answer.offerings.empty());
    return OfferingId(answer.offerings.front());
  }
  void Buy(const std::string& name, int days = 1) {
    Apply("capacityblocks", "team-a", name, {{"capacityBlockOfferingId", Offering(days)}});
    Settle();
    TAHOMA_CHECK(State("capacityblocks", name) != "");
  }

  CoreOptions options;
  MemoryJournal journal;
  WallTime wall = *ParseTime("2026-11-23T09:00:00Z");
  std::vector<std::string> events;  // "Kind name: Reason"
  int status_writes = 0;            // of requests
  // Whether a write is answered with 500 before it is carried out.
  std::function<bool(const ApiWrite&)> fails = [](const ApiWrite&) { return false; };

 private:
  static std::string PathOf(const std::string& plural, const std::string& ns,
                            const std::string& name) {
    return "/apis/tahoma.dev/v1alpha1/" + (ns.empty() ? "" : "namespaces/" + ns + "/") + plural +
           "/" + name;
  }

  void Put(const std::string& path, Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++versions_);
    objects_[path] = std::move(object);
    See(path);
  }
  void Lose(const std::string& path) {
    const Json object = objects_.at(path);
    objects_.erase(path);
    const std::string ns = object["metadata"].value("namespace", "");
    const std::string name = object["metadata"]["name"];
    const std::string uid = object["metadata"]["uid"];
    if (const auto kind = KindAt(path)) {
      commands_.emplace_back(RequestGone{{*kind, ns, name}, uid});
    } else {
      commands_.emplace_back(BlockGone{{ns, name}, uid});
    }
  }
  void See(const std::string& path) {
    const Json& object = objects_.at(path);
    if (const auto kind = KindAt(path)) {
      const auto fact = ParseRequest(*kind, object);
      TAHOMA_CHECK_OK(fact.status());
      commands_.emplace_back(RequestSeen{*fact});
    } else {
      const auto fact = ParseBlock(object);
      TAHOMA_CHECK_OK(fact.status());
      commands_.emplace_back(BlockSeen{*fact});
    }
  }
  static std::optional<RequestKind> KindAt(const std::string& path) {
    for (const RequestKind kind : kRequestKinds) {
      if (path.find("/" + ResourceOf(kind).plural + "/") != std::string::npos) return kind;
    }
    return std::nullopt;
  }

  void Execute(const ApiWrite& write) {
    if (const auto* note = std::get_if<EventNote>(&write.what)) {
      const Json event = ParseJson(RenderEvent(*note, "event", 1).Text());
      events.push_back(fmt::format("{} {}: {}", event["involvedObject"]["kind"].get<std::string>(),
                                   note->name, note->reason));
      return;
    }
    const kube::Request request = Render(write);
    ApiResult result = ResultOf(write);
    if (auto shown = ResultIfShown(write, request)) {
      result = *std::move(shown);
    } else if (fails(write)) {
      result.outcome = WriteOutcome::kUnavailable;
    } else if (const WriteOutcome outcome = CarryOut(write, request);
               outcome != WriteOutcome::kDone) {
      result.outcome = outcome;
    } else {
      result = ReadAnswer(write, kube::Response{.status = 200, .body = carried_.dump()});
    }
    commands_.emplace_back(std::move(result));
  }

  WriteOutcome CarryOut(const ApiWrite& write, const kube::Request& request) {
    const Json body = ParseJson(request.Text());
    if (write.kind() == WriteKind::kRequestStatus) ++status_writes;
    if (request.method == "POST") {
      const std::string path = request.target + "/" + body["metadata"]["name"].get<std::string>();
      if (objects_.contains(path)) return WriteOutcome::kConflict;
      Json object = body;
      object["metadata"]["uid"] = "uid-" + std::to_string(++uids_);
      object["metadata"]["creationTimestamp"] = FormatTime(wall);
      Put(path, std::move(object));
      carried_ = objects_.at(path);
      return WriteOutcome::kDone;
    }
    std::string path = request.target;
    const bool status = path.ends_with("/status");
    if (status) path.resize(path.size() - std::string("/status").size());
    const auto found = objects_.find(path);
    if (found == objects_.end()) return WriteOutcome::kGone;
    const Json& before = found->second;
    if (body["metadata"]["uid"] != before["metadata"]["uid"]) return WriteOutcome::kConflict;
    Json after = kube::MergePatch(before, body);
    if (after != before) Put(path, std::move(after));
    carried_ = objects_.at(path);
    return WriteOutcome::kDone;
  }

  const int ultra_servers_;
  std::unique_ptr<Core> core_;
  std::vector<Command> commands_;
  std::map<std::string, Json> objects_;
  Json carried_;  // the object that was written last
  int uids_ = 0, versions_ = 100;
};

}  // namespace tahoma::controller
