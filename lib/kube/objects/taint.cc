#include "lib/kube/objects/taint.h"

#include <string_view>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

TaintEffect ParseEffect(std::string_view effect) {
  if (effect == "NoExecute") return TaintEffect::kNoExecute;
  if (effect == "None" || effect == "PreferNoSchedule") return TaintEffect::kNone;
  return TaintEffect::kNoSchedule;
}

std::string_view EffectText(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNone:
      return "None";
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

}  // namespace

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect.has_value() && *toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.op == TolerationOperator::kExists;
  if (toleration.key != taint.key) return false;
  return toleration.op == TolerationOperator::kExists || toleration.value == taint.value;
}

Taint ParseTaint(Field field) {
  return {.key = std::string(field.At("key").Text()),
          .value = std::string(field.At("value").Text()),
          .effect = ParseEffect(field.At("effect").Text())};
}

Json RenderTaint(const Taint& taint) {
  Json out = {{"key", taint.key}, {"effect", EffectText(taint.effect)}};
  if (!taint.value.empty()) out["value"] = taint.value;
  return out;
}

Toleration ParseToleration(Field field) {
  Toleration parsed;
  parsed.key = field.At("key").Text();
  if (field.At("operator").Text() == "Exists") parsed.op = TolerationOperator::kExists;
  parsed.value = field.At("value").Text();
  const std::string_view effect = field.At("effect").Text();
  if (!effect.empty()) parsed.effect = ParseEffect(effect);
  const Field seconds = field.At("tolerationSeconds");
  if (seconds.has_value()) parsed.seconds = seconds.Int();
  return parsed;
}

Json RenderToleration(const Toleration& toleration) {
  Json out = {{"operator", toleration.op == TolerationOperator::kExists ? "Exists" : "Equal"}};
  if (!toleration.key.empty()) out["key"] = toleration.key;
  if (!toleration.value.empty()) out["value"] = toleration.value;
  if (toleration.effect) out["effect"] = EffectText(*toleration.effect);
  if (toleration.seconds) out["tolerationSeconds"] = *toleration.seconds;
  return out;
}

}  // namespace tahoma::kube
