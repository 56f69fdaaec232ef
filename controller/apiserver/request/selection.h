// The selection of a list or watch: labelSelector and fieldSelector together.
//
//   TAHOMA_ASSIGN_OR_RETURN(Selection wanted, Selection::Parse(kind, "app=web,tier in (a,b)",
//                                                              "metadata.name=x"));
//   wanted.Matches(*object.body);
//
// Thread safety: immutable.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/selector.h"

namespace tahoma::controller::apiserver {

class Selection {
 public:
  // 400 with Kubernetes' texts for a syntax error or an unknown field label.
  static absl::StatusOr<Selection> Parse(const Kind& kind, std::string_view labels,
                                         std::string_view fields);

  bool everything() const { return labels_.empty() && fields_.empty(); }
  bool Matches(const Json& object) const;

 private:
  struct FieldRequirement {
    std::vector<std::string> path;
    std::string absent;  // the value of an absent field
    bool equal = true;
    std::string value;
  };

  kube::LabelSelector labels_;
  std::vector<FieldRequirement> fields_;
  std::size_t steps_ = 1;  // of one match (lib/base/processor_budget.h)
};

}  // namespace tahoma::controller::apiserver
