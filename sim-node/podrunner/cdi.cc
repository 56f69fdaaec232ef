#include "sim-node/podrunner/cdi.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using nlohmann::json;

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
        out.host_paths.push_back(entry["hostPath"].get<std::string>());
      } else if (std::find(out.not_applied.begin(), out.not_applied.end(), key) ==
                 out.not_applied.end()) {
        out.not_applied.push_back(key);
      }
    }
  }
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
  json spec = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!spec.is_object() || !spec.contains("kind") || !spec["kind"].is_string() ||
      !spec.contains("devices") || !spec["devices"].is_array()) {
    return InvalidArgument("{} is no CDI spec: kind or devices are missing", file.string());
  }
  return spec;
}

// Takes from one spec what it has of `wanted`.
void TakeDevices(const json& spec, std::set<std::string>& wanted, CdiEdits& out) {
  const std::string prefix = spec["kind"].get<std::string>() + "=";
  bool top_applied = false;
  for (const json& device : spec["devices"]) {
    if (!device.is_object() || !device.contains("name") || !device["name"].is_string()) continue;
    const auto found = wanted.find(prefix + device["name"].get<std::string>());
    if (found == wanted.end()) continue;
    wanted.erase(found);
    if (!top_applied && spec.contains("containerEdits")) Apply(spec["containerEdits"], out);
    top_applied = true;
    if (device.contains("containerEdits")) Apply(device["containerEdits"], out);
  }
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
  absl::Status unreadable;
  for (const std::filesystem::path& file : files) {
    const absl::StatusOr<json> spec = ReadSpec(file);
    if (spec.ok()) {
      TakeDevices(*spec, wanted, edits);
    } else {
      unreadable = spec.status();  // only matters if a device stays missing
    }
  }
  if (wanted.empty()) return edits;
  if (!unreadable.ok()) return unreadable;
  return NotFound("CDI device {} is in no spec of {}", *wanted.begin(), folder.string());
}

}  // namespace tahoma::sim
