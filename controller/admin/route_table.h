// The routes of the admin API, each described once: what it takes, what it answers, who may call
// it, and who handles it.
//
//   RouteTable routes;
//   routes.Name("Gang", ObjectOf({{"name", Text("Its name.")}}));
//   routes.Add({.method = "GET",
//               .path = "/v1/gangs/{namespace}/{name}",
//               .id = "getGang",
//               .summary = "One gang.",
//               .needs = {.verb = "get", .group = "tahoma.dev", .resource = "gangs"},
//               .answer = Named("Gang"),
//               .handler = [&](const rest::Request& request) { return Show(request); }});
//   routes.AddTo(server, audited);
//
// The server's routes, the permissions (AttributesOf) and the OpenAPI document (open_api.h) are all
// made of the same descriptions. A handler is called with a request that fits them: names that
// Kubernetes could have, no parameter that is not described, a JSON body of the schema in
// Request::parsed. Anything else is a problem with the code that EC2 has for it.
//
// Scope: the table. What a handler does is its own affair.
//
// Thread safety: Add, Name and AddTo before use; the rest from any thread after that.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/access/attributes.h"
#include "controller/admin/schema.h"
#include "lib/rest/message.h"
#include "lib/rest/router.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

// The permission that a route asks for: a verb on a resource, in the namespace and with the name
// that the path has. Without a verb it is for admins only.
struct Permission {
  std::string verb = {};
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string path = {};  // instead of a resource: the path that stands for it
};

struct Route {
  std::string method = "GET";
  std::string path = {};  // "/v1/gangs/{namespace}/{name}"
  std::string id = {};    // of the operation: generated clients name a function after it
  std::string summary = {};
  Permission needs = {};
  std::vector<Field> query = {};
  std::vector<Field> headers = {};  // that it reads
  Schema body = {};                 // empty: it takes none
  bool body_optional = false;
  int status = 200;    // of success
  Schema answer = {};  // of success
  std::string answer_type = "application/json";
  bool tagged = false;  // the answer has an ETag
  rest::Handler handler = {};
};

class RouteTable {
 public:
  // Gives a schema the name by which answers refer to it.
  void Name(std::string name, Schema schema) { schemas_[std::move(name)] = std::move(schema); }
  void Add(Route route);

  // Adds all of them to a server, before it starts; the table must outlive it. `audited` makes a
  // handler one that leaves a line in the audit (AdminAccess::Audited).
  using Audited = std::function<rest::Handler(rest::Handler)>;
  void AddTo(rest::Server& server, const Audited& audited) const;

  // Returns the permission that the request asks for; PathAttributes where no route takes it.
  Attributes AttributesOf(const rest::Request& head) const;

  const std::deque<Route>& routes() const { return routes_; }
  const std::map<std::string, Schema>& schemas() const { return schemas_; }

  // Returns the schema of a {name} of a path.
  static Schema SchemaOfName(std::string_view name);

 private:
  std::deque<Route> routes_;  // they stay where they are
  std::map<std::string, Schema> schemas_;
  rest::Router router_;  // to the same routes, without handlers
  std::map<std::pair<std::string, std::string>, const Route*> by_pattern_;
};

}  // namespace tahoma::controller
