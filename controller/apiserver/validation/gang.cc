// Our own kind. In a real cluster the CustomResourceDefinition says the same, in CEL.

#include <limits>

#include "controller/apiserver/validation/parts.h"
#include "controller/model/gang_rules.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// The schema has refused what is no integer; one beyond 64 bits is beyond every bound too.
std::optional<std::int64_t> IntegerAt(const Json& spec, const char* field) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Json& value = ValueAt(spec, {field});
  if (!value.is_number_integer()) return std::nullopt;
  const bool beyond =
      value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{kMost};
  return beyond ? kMost : value.get<std::int64_t>();
}

}  // namespace

void CheckGang(const Json& gang, Causes& causes) {
  const Json& spec = ValueAt(gang, {"spec"});
  const GangRequest request{.members = IntegerAt(spec, "members").value_or(1),
                            .shape = TextAt(spec, {"shape"}),
                            .chips = IntegerAt(spec, "chips"),
                            .slices = IntegerAt(spec, "slices").value_or(1),
                            .max_runtime = TextAt(spec, {"maxRuntime"})};
  for (const GangFault& fault : FaultsOf(request)) {
    causes.push_back(
        Invalid("spec." + fault.field, ValueAt(spec, {fault.field.c_str()}), fault.why));
  }
}

}  // namespace tahoma::controller::apiserver
