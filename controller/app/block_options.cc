#include "controller/app/block_options.h"

#include <fmt/format.h>

#include <string>

#include "controller/reserve/capacity.h"
#include "controller/reserve/money.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr Money kRateMost{1'000'000'000};  // what Fee computes with
constexpr std::size_t kTagMost = 128;

absl::StatusOr<PriceList> PricesOf(const std::map<std::string, std::string>& prices) {
  PriceList list;
  for (const auto& [name, text] : prices) {
    const Product* product = FindProduct(name);
    if (product == nullptr) {
      return InvalidArgument("capacityBlocks.prices: \"{}\" is not sold; the products are {}, {}",
                             name, ProductNames(false), ProductNames(true));
    }
    const absl::StatusOr<Money> rate = ParseMoney(text);
    if (!rate.ok()) {
      return InvalidArgument("capacityBlocks.prices.{}: {}", name, Message(rate.status()));
    }
    if (*rate > kRateMost) {
      return InvalidArgument("capacityBlocks.prices.{}: {} is too much; at most {} USD an hour",
                             name, text, kRateMost.ToString());
    }
    list.Set(*product, *rate);
  }
  return list;
}

}  // namespace

void DeclareBlockOptions(config::Fields& fields, BlockOptions& options) {
  fields.Map("prices", &options.prices,
             "USD for an hour of each instance or UltraServer, by product");
  fields.Duration("paymentDelay", &options.payment_delay, {.max = std::chrono::hours(48)},
                  "how long a simulated payment takes; above 12h none succeeds");
  fields.String("paymentFailureTag", &options.payment_failure_tag,
                "blocks that have this tag with the value \"fail\" are not paid; empty: all are");
  fields.Int("oneSpareIn", &options.one_spare_in, {.min = 0, .max = 1'000'000},
             "of so many hosts of a pool one is a spare and not for sale; 0: none is");
  fields.Bool("shareUltraServers", &options.share_ultra_servers,
              "whether blocks of UltraServers may let other namespaces in; EC2's may not");
  fields.Section("quota", "what a namespace may have", [&](config::Fields& quota) {
    quota.Int("instances", &options.quota_instances, {.min = 0, .max = 10'000'000},
              "instances of all its blocks on any date");
    quota.Int("average", &options.quota_average, {.min = 0, .max = 10'000'000},
              "instances on average over windowDays; 0: no such limit");
    quota.Int("windowDays", &options.quota_window_days, {.min = 1, .max = 182},
              "days of the average");
  });
}

absl::StatusOr<BookOptions> BookOptionsOf(const BlockOptions& options) {
  BookOptions book;
  TAHOMA_ASSIGN_OR_RETURN(book.prices, PricesOf(options.prices));
  if (options.payment_failure_tag.size() > kTagMost) {
    return InvalidArgument("capacityBlocks.paymentFailureTag has {} characters; at most {}",
                           options.payment_failure_tag.size(), kTagMost);
  }
  book.payment = {.delay = std::chrono::floor<std::chrono::seconds>(options.payment_delay),
                  .failure_tag = options.payment_failure_tag};
  book.hosts.one_spare_in = options.one_spare_in;
  book.share_ultra_servers = options.share_ultra_servers;
  book.quota = {.instances = options.quota_instances, .window_days = options.quota_window_days};
  if (options.quota_average != 0) book.quota.average = options.quota_average;
  return book;
}

}  // namespace tahoma::controller
