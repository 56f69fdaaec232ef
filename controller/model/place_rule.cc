#include "controller/model/place_rule.h"

namespace tahoma::controller {

std::string PlaceRule::Describe() const {
  switch (kind) {
    case Kind::kApart:
      return "podAntiAffinity on " + key;
    case Kind::kBeside:
      return "podAffinity on " + key;
    case Kind::kSpread:
      break;
  }
  return "topologySpreadConstraints on " + key;
}

}  // namespace tahoma::controller
