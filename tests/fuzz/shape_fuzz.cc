// Shapes as users write them: what is read is written back as an equal shape.

#include "lib/base/check.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> FuzzSeeds() { return {"4x4x4", "2x4", "1x1x1", "16x16x16", "3x5x2"}; }

void FuzzOne(std::string_view input) {
  const auto shape = tahoma::torus::Shape::Parse(input);
  if (!shape.ok()) return;
  TAHOMA_CHECK(*tahoma::torus::Shape::Parse(shape->ToString()) == *shape);
  const auto offered = tahoma::torus::ParseOffered(input);
  TAHOMA_CHECK(!offered.ok() || *offered == *shape);
}
