// Whatever happens to a small fleet, in whatever order: nothing is promised twice, lost or done
// again, and all that is counted is what the blocks say.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/unit/controller/reserve/block_story.h"

namespace tahoma::controller {

void showValue(const StoryStep& step, std::ostream& out) {
  out << "{" << step.what << ", " << step.a << ", " << step.b << ", " << step.c << "}";
}

namespace {

rc::Gen<StoryStep> AnyStep() {
  const auto number = rc::gen::inRange(0U, 2000U);
  return rc::gen::build<StoryStep>(rc::gen::set(&StoryStep::what, rc::gen::inRange(0U, 17U)),
                                   rc::gen::set(&StoryStep::a, number),
                                   rc::gen::set(&StoryStep::b, number),
                                   rc::gen::set(&StoryStep::c, number));
}

StorySetup AnySetup() {
  return {.hosts = *rc::gen::inRange(2, 9),
          .cells = *rc::gen::inRange(1, 3),
          .ultra_servers = *rc::gen::arbitrary<bool>(),
          .one_spare_in = *rc::gen::element(0, 4, 32),
          .payment_delay = std::chrono::minutes(*rc::gen::element(0, 20, 40, 800))};
}

RC_GTEST_PROP(StoryTest, NothingIsPromisedTwiceLostOrDoneAgain, ()) {
  BlockStory story(AnySetup());
  const auto steps = *rc::gen::scale(3.0, rc::gen::container<std::vector<StoryStep>>(AnyStep()));
  for (const StoryStep& step : steps) {
    story.Do(step);
    if (!story.auditor().violations().empty()) RC_FAIL(story.auditor().violations().front());
  }
}

}  // namespace
}  // namespace tahoma::controller
