#include "lib/kube/patch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/json_writer.h"

namespace tahoma::kube {
namespace {

// Returns why an operation is not well formed by RFC 6902; empty when it is.
std::string WrongOperation(const Json& operation) {
  if (!operation.is_object()) return "is not an object";
  const auto text = [&](const char* key) {
    const auto found = operation.find(key);
    return found != operation.end() && found->is_string();
  };
  if (!text("op")) return "has no \"op\"";
  if (!text("path")) return "has no \"path\"";
  const auto& op = operation["op"].get_ref<const std::string&>();
  if (op == "remove") return "";
  if (op == "move" || op == "copy") return text("from") ? "" : "has no \"from\"";
  if (op != "add" && op != "replace" && op != "test")
    return "has the unknown \"op\" \"" + op + "\"";
  return operation.contains("value") ? "" : "has no \"value\"";
}

// Returns whether the value that `path` adds to, or removes from, can have members. nlohmann takes
// a number or a text there for a mistake of its own, and ends the program or does nothing.
bool HasContainer(const Json& document, const std::string& path) {
  const Json::json_pointer at(path);
  if (at.empty()) return true;
  const Json& parent = document.at(at.parent_pointer());
  return parent.is_object() || parent.is_array();
}

// Changes an operation to kube-apiserver's meaning, which differs from the RFC's in two places on
// which clients rely: "replace" of a member that an object lacks adds it, and "test" for null holds
// when the member is not there. Returns null when the operation holds in any case.
Json AsKubernetesReads(const Json& document, Json operation) {
  const Json::json_pointer at(operation["path"].get_ref<const std::string&>());
  if (at.empty() || document.contains(at) || !document.contains(at.parent_pointer()) ||
      !document.at(at.parent_pointer()).is_object()) {
    return operation;
  }
  if (operation["op"] == "replace") operation["op"] = "add";
  if (operation["op"] == "test" && operation["value"].is_null()) return nullptr;
  return operation;
}

// Returns the bytes that the operation copies.
std::size_t Copies(const Json& document, const Json& operation) {
  if (operation["op"] != "copy") return 0;
  const Json::json_pointer from(operation["from"].get_ref<const std::string&>());
  return JsonText(document.at(from)).size();
}

constexpr std::size_t kItemsOfStep = 16;  // items of a list that is shifted

// Counts the values in `value`; nullopt when it is nested deeper than `depth_most`.
std::optional<std::size_t> CountValues(const Json& value, std::ptrdiff_t depth_most) {
  if (!value.is_structured()) return 1;
  if (depth_most <= 0) return std::nullopt;
  std::size_t count = 1;
  for (const Json& item : value) {
    const auto below = CountValues(item, depth_most - 1);
    if (!below) return std::nullopt;
    count += *below;
  }
  return count;
}

// Refuses an operation that nests deeper than a body may, or needs more work than the request may
// take. Ten thousand short operations could otherwise nest values without end, or shift a long list
// each.
absl::Status CheckWork(const Json& document, const Json& operation) {
  const auto& path = operation["path"].get_ref<const std::string&>();
  const auto tokens = std::count(path.begin(), path.end(), '/');
  const auto& op = operation["op"].get_ref<const std::string&>();
  const Json* value = nullptr;
  if (op == "add" || op == "replace") value = &operation["value"];
  if (op == "move" || op == "copy") {
    const Json::json_pointer from(operation["from"].get_ref<const std::string&>());
    value = &document.at(from);
    if (op == "move" && !from.empty() && document.at(from.parent_pointer()).is_array()) {
      ProcessorBudget::Spend(1 + document.at(from.parent_pointer()).size() / kItemsOfStep);
    }
  }
  const auto values = value == nullptr ? 1 : CountValues(*value, kPatchDepthMax - tokens);
  if (!values || tokens > kPatchDepthMax) {
    return FailedPrecondition("{} at \"{}\" would nest values deeper than {} levels", op,
                              CutUtf8(path, 512), kPatchDepthMax);
  }
  ProcessorBudget::Spend(*values);
  const Json::json_pointer at(path);
  if (!at.empty() && document.contains(at.parent_pointer())) {
    const Json& parent = document.at(at.parent_pointer());
    if (parent.is_array()) ProcessorBudget::Spend(parent.size() / kItemsOfStep);
  }
  return absl::OkStatus();
}

}  // namespace

Json MergePatch(Json target, const Json& patch) {
  target.merge_patch(patch);
  return target;
}

Json MergeDiff(const Json& before, const Json& after) {
  if (!before.is_object() || !after.is_object()) return after;
  Json patch = Json::object();
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    if (old == before.end()) {
      patch[key] = value;
    } else if (*old != value) {
      patch[key] = MergeDiff(*old, value);
    }
  }
  return patch;
}

absl::StatusOr<Json> JsonPatch(const Json& target, const Json& operations) {
  if (!operations.is_array()) return InvalidArgument("a JSON patch is an array of operations");
  if (operations.size() > kPatchOperationsMax) {
    return ResourceExhausted("The allowed maximum operations in a JSON patch is {}, got {}",
                             kPatchOperationsMax, operations.size());
  }
  Json result = Unshared(target);
  std::size_t copied = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (const std::string wrong = WrongOperation(operations[i]); !wrong.empty()) {
      return InvalidArgument("operation {} of the JSON patch {}", i, wrong);
    }
    const auto& op = operations[i]["op"].get_ref<const std::string&>();
    const auto& path = operations[i]["path"].get_ref<const std::string&>();
    const auto missing = [&] {
      return FailedPrecondition(
          "{} operation does not apply: doc is missing path: \"{}\": missing value", op, path);
    };
    try {
      if (op != "test" && !HasContainer(result, path)) return missing();
      TAHOMA_RETURN_IF_ERROR(CheckWork(result, operations[i]));
      copied += Copies(result, operations[i]);
      if (copied > kPatchCopyBytesMax) {
        return FailedPrecondition(
            "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding "
            "the limit {}",
            copied, kPatchCopyBytesMax);
      }
      Json one = Json::array();
      one.push_back(AsKubernetesReads(result, operations[i]));
      if (!one[0].is_null()) result.patch_inplace(one);
    } catch (const Json::out_of_range&) {
      return missing();
    } catch (const Json::other_error&) {
      return FailedPrecondition("testing path {} failed", path);
    } catch (const Json::exception& error) {
      return InvalidArgument("operation {} of the JSON patch: {}", i, error.what());
    }
  }
  return result;
}

}  // namespace tahoma::kube
