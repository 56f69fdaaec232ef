#include "sim-node/podrunner/volume_spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace tahoma::sim {
namespace {

using kube::Field;

std::optional<int> ModeOf(Field field) {
  constexpr int kModeBits = 0777;
  if (!field.has_value()) return std::nullopt;
  return field.Int32() & kModeBits;
}

std::vector<KeyFile> KeyFilesOf(Field items) {
  std::vector<KeyFile> files;
  for (const Field item : items.Items(kVolumeFilesMost)) {
    files.push_back({.key = std::string(item.At("key").Text()),
                     .path = std::string(item.At("path").Text()),
                     .mode = ModeOf(item.At("mode"))});
  }
  return files;
}

// A field path, or an amount of the container's that this runner does not know.
std::vector<KeyFile> FieldFilesOf(Field items) {
  std::vector<KeyFile> files;
  for (const Field item : items.Items(kVolumeFilesMost)) {
    std::string field(item.At("fieldRef").At("fieldPath").Text());
    if (field.empty()) field = item.At("resourceFieldRef").At("resource").Text();
    files.push_back({.key = std::move(field),
                     .path = std::string(item.At("path").Text()),
                     .mode = ModeOf(item.At("mode"))});
  }
  return files;
}

FileSource KeyedSource(FileSource::Kind kind, Field field, const char* name) {
  return {.kind = kind,
          .object = std::string(field.At(name).Text()),
          .optional = field.At("optional").Bool(),
          .files = KeyFilesOf(field.At("items"))};
}

FileSource ProjectedSource(Field source) {
  if (const Field map = source.At("configMap"); map.has_value()) {
    return KeyedSource(FileSource::Kind::kConfigMap, map, "name");
  }
  if (const Field secret = source.At("secret"); secret.has_value()) {
    return KeyedSource(FileSource::Kind::kSecret, secret, "name");
  }
  if (const Field fields = source.At("downwardAPI"); fields.has_value()) {
    return {.kind = FileSource::Kind::kFields, .files = FieldFilesOf(fields.At("items"))};
  }
  if (const Field token = source.At("serviceAccountToken"); token.has_value()) {
    return {.kind = FileSource::Kind::kToken,
            .files = {{.path = std::string(token.At("path").Text())}},
            .audience = std::string(token.At("audience").Text()),
            .life = std::chrono::seconds(token.At("expirationSeconds").Int(3600))};
  }
  FileSource unknown{.kind = FileSource::Kind::kUnsupported};
  source.Entries([&](const std::string& kind, Field) { unknown.object = kind; });
  return unknown;
}

VolumeSpec ParseVolume(Field volume, const std::string& pod) {
  using Kind = VolumeSpec::Kind;
  VolumeSpec spec{.name = std::string(volume.At("name").Text())};
  const auto files = [&](Field field) {
    spec.kind = Kind::kFiles;
    spec.mode = ModeOf(field.At("defaultMode")).value_or(0644);
  };
  if (const Field empty = volume.At("emptyDir"); empty.has_value()) {
    spec.in_memory = empty.At("medium").Text() == "Memory";
  } else if (const Field host = volume.At("hostPath"); host.has_value()) {
    spec.kind = Kind::kHostPath;
    spec.what = host.At("path").Text();
    spec.path_type = host.At("type").Text();
  } else if (const Field claim = volume.At("persistentVolumeClaim"); claim.has_value()) {
    spec.kind = Kind::kClaim;
    spec.what = claim.At("claimName").Text();
    spec.read_only = claim.At("readOnly").Bool();
  } else if (volume.At("ephemeral").has_value()) {
    spec.kind = Kind::kClaim;
    spec.what = fmt::format("{}-{}", pod, spec.name);
  } else if (const Field map = volume.At("configMap"); map.has_value()) {
    files(map);
    spec.sources.push_back(KeyedSource(FileSource::Kind::kConfigMap, map, "name"));
  } else if (const Field secret = volume.At("secret"); secret.has_value()) {
    files(secret);
    spec.sources.push_back(KeyedSource(FileSource::Kind::kSecret, secret, "secretName"));
  } else if (const Field fields = volume.At("downwardAPI"); fields.has_value()) {
    files(fields);
    spec.sources.push_back(
        {.kind = FileSource::Kind::kFields, .files = FieldFilesOf(fields.At("items"))});
  } else if (const Field projected = volume.At("projected"); projected.has_value()) {
    files(projected);
    for (const Field source : projected.At("sources").Items(kVolumesOfPodMost)) {
      spec.sources.push_back(ProjectedSource(source));
    }
  } else {
    bool is_empty = true;
    volume.Entries([&](const std::string& kind, Field) {
      if (kind == "name") return;
      is_empty = false;
      spec.what = kind;
    });
    if (!is_empty) spec.kind = Kind::kUnsupported;
  }
  return spec;
}

}  // namespace

std::vector<VolumeSpec> ParseVolumes(Field spec, const std::string& pod) {
  std::vector<VolumeSpec> volumes;
  for (const Field volume : spec.At("volumes").Items(kVolumesOfPodMost)) {
    volumes.push_back(ParseVolume(volume, pod));
  }
  return volumes;
}

std::vector<MountSpec> ParseMounts(Field container) {
  std::vector<MountSpec> mounts;
  for (const Field mount : container.At("volumeMounts").Items(kVolumesOfPodMost)) {
    MountSpec spec{.volume = std::string(mount.At("name").Text()),
                   .path = std::string(mount.At("mountPath").Text()),
                   .sub_path = std::string(mount.At("subPath").Text()),
                   .read_only = mount.At("readOnly").Bool()};
    if (const Field expression = mount.At("subPathExpr"); !expression.Text().empty()) {
      spec.sub_path = expression.Text();
      spec.expands = true;
    }
    mounts.push_back(std::move(spec));
  }
  return mounts;
}

}  // namespace tahoma::sim
