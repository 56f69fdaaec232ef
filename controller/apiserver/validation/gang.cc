// Our own kind. In a real cluster the controller says the same in the Gang's status.

#include <fmt/format.h>

#include <charconv>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// "4x4x2" as {4, 4, 2}; the schema's pattern has made sure that these are numbers.
std::vector<int> SidesOf(std::string_view shape) {
  std::vector<int> sides;
  while (!shape.empty()) {
    const auto end = std::min(shape.find('x'), shape.size());
    int side = 0;
    std::from_chars(shape.data(), shape.data() + end, side);
    sides.push_back(side);
    shape.remove_prefix(std::min(end + 1, shape.size()));
  }
  return sides;
}

void CheckShape(const std::string& shape, Causes& causes) {
  std::string wrong;
  int count = 0;
  for (const int side : SidesOf(shape)) {
    if (side == 1 || side == 2 || side == 4) continue;
    wrong += fmt::format("{}{}", wrong.empty() ? "" : " and ", side);
    ++count;
  }
  if (wrong.empty()) return;
  causes.push_back(Invalid(
      "spec.shape", shape,
      fmt::format("each side must be 1, 2 or 4; {} {} not", wrong, count == 1 ? "is" : "are")));
}

}  // namespace

void CheckGang(const Json& gang, Causes& causes) {
  const Json& spec = ValueAt(gang, {"spec"});
  const std::string shape = TextAt(spec, {"shape"});
  if (!shape.empty()) CheckShape(shape, causes);
  if (!shape.empty() && spec.contains("chips")) {
    causes.push_back(Invalid("spec.chips", spec["chips"],
                             "may not be set together with spec.shape, which says how many chips "
                             "a slice has"));
  }
  const Json& members = ValueAt(spec, {"members"});
  const Json& slices = ValueAt(spec, {"slices"});
  if (!members.is_number_integer() || !slices.is_number_integer()) return;
  if (slices.get<std::int64_t>() < 1) return;  // told by the schema, or beyond 64 bits
  if (members.get<std::int64_t>() % slices.get<std::int64_t>() == 0) return;
  causes.push_back(Invalid("spec.slices", slices,
                           fmt::format("must divide spec.members ({}): every slice has the same "
                                       "number of pods",
                                       members.get<std::int64_t>())));
}

}  // namespace tahoma::controller::apiserver
