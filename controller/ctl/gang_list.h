// The gangs of a namespace or of all, as kubectl lists a kind: a table, a list object, a watch.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json list, ListGangs(transport, ns));   // ns empty: all
//   std::vector<const Json*> gangs;
//   for (const Json& gang : list["items"]) gangs.push_back(&gang);
//   fmt::print("{}", GangTable(GangColumns::kUsual, ns.empty()).Text(gangs));
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

inline const kube::Resource kNamespaces{
    .group = "", .version = "v1", .plural = "namespaces", .namespaced = false};

enum class GangColumns { kUsual, kWide };

// Writes rows whose columns stay where they are while more rows follow.
class GangTable {
 public:
  GangTable(GangColumns columns, bool with_namespace);

  // Returns the header and a row for each gang.
  std::string Text(const std::vector<const Json*>& gangs);
  // Returns one more row.
  std::string Row(const Json& gang);

 private:
  std::vector<std::string> Cells(const Json& gang) const;

  const GangColumns columns_;
  const bool with_namespace_;
  std::vector<std::size_t> widths_;
};

// Returns a List as kubectl's -o json shows one. kNotFound for a namespace that is not there.
absl::StatusOr<Json> ListGangs(kube::Transport& transport, const std::string& ns);

// Gives each gang that is there, and then each change of one, until `sink` returns false or the
// watch cannot go on, which is the error. A server's end of the watch is not the end.
absl::Status WatchGangs(kube::Transport& transport, const std::string& ns, const Json& list,
                        const std::function<bool(const Json& gang)>& sink);

// kNotFound when the API server says that there is no such namespace. A caller who may not read
// namespaces gets no error.
absl::Status CheckNamespace(kube::Transport& transport, const std::string& ns);

}  // namespace tahoma::controller
