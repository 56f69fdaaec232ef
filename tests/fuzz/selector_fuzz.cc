// Selectors and quantities as they come in a query: never a crash, and quantities print what they
// are.

#include "lib/base/check.h"
#include "lib/kube/quantity.h"
#include "lib/kube/selector.h"
#include "lib/kube/url.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> FuzzSeeds() {
  return {"app=train,tier in (a,b),!old,n>5",
          "metadata.name=a,x!=b\\,c",
          "1.5Gi",
          "100m",
          "12e6",
          "/api/v1/pods?labelSelector=a%3Db&watch=1"};
}

void FuzzOne(std::string_view input) {
  using namespace tahoma::kube;
  if (const auto selector = LabelSelector::Parse(input); selector.ok()) {
    (void)selector->Matches([](std::string_view) { return std::string_view("5"); });
  }
  (void)ParseFieldSelector(input);
  if (const auto target = ParseTarget(input); target.ok()) (void)SplitPath(target->path);
  if (const auto quantity = Quantity::Parse(input); quantity.ok()) {
    // Binary quantities below one are printed rounded up only when they are large: compare from
    // the second printing on.
    const auto again = Quantity::Parse(quantity->ToString());
    TAHOMA_CHECK(again.ok());
    TAHOMA_CHECK(again->ToString() == quantity->ToString());
  }
}
