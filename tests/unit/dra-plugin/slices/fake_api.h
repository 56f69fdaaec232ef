// An API server in memory, for one kind: nodes to read, ResourceSlices to list and write.

#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dra-plugin/slices/slice_json.h"
#include "lib/base/json.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

class FakeApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    log.push_back(request.method + " " + request.target.substr(0, request.target.find('?')));
    if (before) before(request);
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (path.starts_with("/api/v1/nodes/")) {
      return has_node ? Answer(200, {{"metadata", {{"name", "node-a"}, {"uid", "node-uid"}}}})
                      : Failure(404, "nodes \"node-a\" not found");
    }
    if (!path.starts_with(kPath)) return Failure(404, "the server could not find the resource");
    const std::string name = path.size() > kPath.size() ? path.substr(kPath.size() + 1) : "";
    if (request.method == "GET") return List();
    const Json body = Json::parse(request.Text());
    if (request.method == "POST") return Create(body);
    const auto found = slices.find(name);
    if (found == slices.end()) return Failure(404, name + " not found");
    const std::string wanted = request.method == "DELETE"
                                   ? body["preconditions"].value("resourceVersion", "")
                                   : body["metadata"].value("resourceVersion", "");
    if (wanted != found->second["metadata"]["resourceVersion"]) {
      return Failure(409, "the object has been modified");
    }
    if (request.method == "DELETE") {
      slices.erase(found);
      return Answer(200, {{"kind", "Status"}, {"status", "Success"}});
    }
    found->second = Kept(body);
    return Answer(200, found->second);
  }

  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Failure(405, "no watches here");
  }

  int writes() const {
    int count = 0;
    for (const std::string& line : log) count += line.starts_with("GET") ? 0 : 1;
    return count;
  }

  std::map<std::string, Json> slices;
  std::set<std::string> gates_off;  // fields this server drops
  std::vector<std::string> log;
  std::function<void(const kube::Request&)> before;
  bool has_node = true;
  std::string now = "2026-11-21T10:00:00Z";  // given to taints without timeAdded

 private:
  static inline const std::string kPath = "/apis/resource.k8s.io/v1/resourceslices";

  static kube::Response Answer(int status, const Json& body) {
    return {.status = status, .headers = {}, .body = body.dump()};
  }
  static kube::Response Failure(int status, const std::string& message) {
    return Answer(status, {{"kind", "Status"}, {"status", "Failure"}, {"message", message}});
  }

  kube::Response List() {
    Json items = Json::array();
    for (const auto& [name, slice] : slices) items.push_back(slice);
    return Answer(200, {{"kind", "ResourceSliceList"},
                        {"metadata", {{"resourceVersion", std::to_string(version_)}}},
                        {"items", items}});
  }

  Json Kept(Json object) {
    RemoveFields(gates_off, object);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    if (!object["spec"].contains("devices")) return object;
    for (Json& device : object["spec"]["devices"]) {
      if (!device.contains("taints")) continue;
      for (Json& taint : device["taints"]) {
        if (!taint.contains("timeAdded")) taint["timeAdded"] = now;
      }
    }
    return object;
  }

  kube::Response Create(Json object) {
    const std::string name =
        fmt::format("{}{:05x}", object["metadata"].value("generateName", ""), ++names_);
    object["metadata"]["name"] = name;
    object["metadata"]["uid"] = "uid-" + name;
    slices[name] = Kept(std::move(object));
    return Answer(201, slices[name]);
  }

  int version_ = 100;
  int names_ = 0;
};

}  // namespace tahoma::dra
