#include "lib/kube/objects/container.h"

namespace tahoma::kube {
namespace {

EnvVar ParseEnvVar(Field field) {
  EnvVar var{.name = std::string(field.Required("name").Text()),
             .value = std::string(field.At("value").Text())};
  const Field from = field.At("valueFrom");
  if (from.size() == 0) return var;
  if (const Field path = from.At("fieldRef"); path.has_value()) {
    var.source = EnvVar::Source::kField;
    var.value = path.At("fieldPath").Text();
    return var;
  }
  for (const bool is_map : {true, false}) {
    const Field ref = from.At(is_map ? "configMapKeyRef" : "secretKeyRef");
    if (!ref.has_value()) continue;
    var.source = is_map ? EnvVar::Source::kConfigMapKey : EnvVar::Source::kSecretKey;
    var.object = ref.At("name").Text();
    var.key = ref.At("key").Text();
    var.optional = ref.At("optional").Bool();
    return var;
  }
  var.source = EnvVar::Source::kUnsupported;
  var.value.clear();
  from.Entries([&](const std::string& kind, Field) {
    if (var.value.empty()) var.value = kind;
  });
  return var;
}

EnvFrom ParseEnvFrom(Field field) {
  const bool is_map = field.At("configMapRef").has_value();
  const Field ref = field.At(is_map ? "configMapRef" : "secretRef");
  return {.source = is_map ? EnvFrom::Source::kConfigMap : EnvFrom::Source::kSecret,
          .object = std::string(ref.At("name").Text()),
          .prefix = std::string(field.At("prefix").Text()),
          .optional = ref.At("optional").Bool()};
}

Container ParseContainer(Field field) {
  Container container{.name = std::string(field.At("name").Text()),
                      .image = std::string(field.At("image").Text()),
                      .command = field.At("command").Texts(kEntriesMost),
                      .args = field.At("args").Texts(kEntriesMost),
                      .working_dir = std::string(field.At("workingDir").Text())};
  if (container.name.empty()) field.Fail("name is missing");
  for (const Field one : field.At("env").Items(kEntriesMost)) {
    container.env.push_back(ParseEnvVar(one));
  }
  for (const Field one : field.At("envFrom").Items(kEntriesMost)) {
    container.env_from.push_back(ParseEnvFrom(one));
  }
  for (const Field one : field.At("resources").At("claims").Items(kPodClaimsMost)) {
    container.claims.push_back({.claim = std::string(one.At("name").Text()),
                                .request = std::string(one.At("request").Text())});
  }
  return container;
}

}  // namespace

std::vector<Container> ParseContainers(Field list) {
  std::vector<Container> containers;
  for (const Field one : list.Items(kContainersMost)) containers.push_back(ParseContainer(one));
  return containers;
}

}  // namespace tahoma::kube
