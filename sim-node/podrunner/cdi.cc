#include "sim-node/podrunner/cdi.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

void Apply(const json& edits, CdiEdits& out) {
  if (!edits.is_object()) return;
  for (const auto& [key, list] : edits.items()) {
    if (!list.is_array()) continue;
    for (const json& entry : list) {
      if (key == "env" && entry.is_string()) {
        const std::string text = entry.get<std::string>();
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) continue;
        out.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      } else if (key == "mounts" && entry.is_object() && entry.contains("hostPath") &&
                 entry["hostPath"].is_string()) {
        const std::string source = entry["hostPath"].get<std::string>();
        const auto target = entry.find("containerPath");
        out.mounts.push_back({.source = source,
                              .target = target != entry.end() && target->is_string()
                                            ? target->get<std::string>()
                                            : source});
      } else if (std::find(out.not_applied.begin(), out.not_applied.end(), key) ==
                 out.not_applied.end()) {
        out.not_applied.push_back(key);
      }
    }
  }
}

// An unknown field is an edit that would silently be left out, or a mistake. Container runtimes
// refuse the whole spec (container-device-interface pkg/cdi: strict parsing).
constexpr std::string_view kSpecFields[] = {"cdiVersion", "kind", "annotations", "devices",
                                            "containerEdits"};
constexpr std::string_view kDeviceFields[] = {"name", "annotations", "containerEdits"};
constexpr std::string_view kEditFields[] = {"env",    "deviceNodes", "netDevices",    "hooks",
                                            "mounts", "intelRdt",    "additionalGids"};

template <std::size_t kCount>
absl::Status OnlyKnown(const json& object, const std::string_view (&known)[kCount],
                       std::string_view where) {
  if (!object.is_object()) return InvalidArgument("{} is no object", where);
  for (const auto& [key, value] : object.items()) {
    if (std::find(std::begin(known), std::end(known), key) == std::end(known)) {
      return InvalidArgument("{} has the unknown field \"{}\"", where, key);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const json& spec) {
  TAHOMA_RETURN_IF_ERROR(OnlyKnown(spec, kSpecFields, "the spec"));
  std::set<std::string> names;
  const auto check_edits = [](const json& holder, std::string_view where) {
    if (!holder.contains("containerEdits")) return absl::OkStatus();
    return OnlyKnown(holder["containerEdits"], kEditFields, fmt::format("{}'s edits", where));
  };
  TAHOMA_RETURN_IF_ERROR(check_edits(spec, "the spec"));
  for (const json& device : spec["devices"]) {
    TAHOMA_RETURN_IF_ERROR(OnlyKnown(device, kDeviceFields, "a device"));
    if (!device.contains("name") || !device["name"].is_string()) {
      return InvalidArgument("a device has no name");
    }
    const std::string name = device["name"].get<std::string>();
    if (!names.insert(name).second) return InvalidArgument("two devices are named {}", name);
    TAHOMA_RETURN_IF_ERROR(check_edits(device, fmt::format("device {}", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ReadSpec(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return NotFound("{} cannot be opened", file.string());
  std::string text(kMaxCdiSpecBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxCdiSpecBytes) {
    return InvalidArgument("{} is longer than {} bytes", file.string(), kMaxCdiSpecBytes);
  }
  json spec = TryParseJson(text);
  if (!spec.is_object() || !spec.contains("kind") || !spec["kind"].is_string() ||
      !spec.contains("devices") || !spec["devices"].is_array()) {
    return InvalidArgument("{} is no CDI spec: kind or devices are missing", file.string());
  }
  TAHOMA_RETURN_IF_ERROR(Annotate(CheckFields(spec), file.string()));
  return spec;
}

// Applies the edits of the `wanted` devices of a spec. Two specs with the same device contradict
// each other.
absl::Status ApplyDevices(const json& spec, std::set<std::string>& wanted,
                          std::set<std::string>& taken, CdiEdits& out) {
  const std::string prefix = spec["kind"].get<std::string>() + "=";
  bool top_applied = false;
  for (const json& device : spec["devices"]) {
    const std::string id = prefix + device["name"].get<std::string>();
    if (taken.contains(id)) return InvalidArgument("CDI device {} is in two specs", id);
    if (wanted.erase(id) == 0) continue;
    taken.insert(id);
    if (!top_applied && spec.contains("containerEdits")) Apply(spec["containerEdits"], out);
    top_applied = true;
    if (device.contains("containerEdits")) Apply(device["containerEdits"], out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CdiEdits> ReadCdi(const std::filesystem::path& folder,
                                 const std::vector<std::string>& ids) {
  CdiEdits edits;
  std::set<std::string> wanted(ids.begin(), ids.end());
  if (wanted.empty()) return edits;
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
    if (files.size() > kMaxCdiSpecs) {
      return ResourceExhausted("{} holds more than {} CDI specs", folder.string(), kMaxCdiSpecs);
    }
  }
  if (error) return NotFound("CDI folder {}: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  std::set<std::string> taken;
  absl::Status unreadable;
  for (const std::filesystem::path& file : files) {
    const absl::StatusOr<json> spec = ReadSpec(file);
    if (spec.ok()) {
      TAHOMA_RETURN_IF_ERROR(Annotate(ApplyDevices(*spec, wanted, taken, edits), file.string()));
    } else {
      unreadable = spec.status();  // only matters if a device stays missing
    }
  }
  if (wanted.empty()) return edits;
  if (!unreadable.ok()) return unreadable;
  return NotFound("CDI device {} is in no spec of {}", *wanted.begin(), folder.string());
}

}  // namespace tahoma::sim
