// Counts the synced commits that the store carries: many threads, and one thread without waiting.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/store/store.h"
#include "lib/base/check.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

struct Fixture {
  Fixture() {
    auto opened = Store::Open({.dir = dir.path()});
    TAHOMA_CHECK_OK(opened.status());
    store = *std::move(opened);
  }
  testing::TempDir dir;
  std::unique_ptr<Store> store;
};

Fixture& Shared() {
  static Fixture fixture;
  return fixture;
}

WriteBatch SmallBatch(std::uint64_t i) {
  WriteBatch batch;
  batch.Put(Keyspace::kApi, "o/core/pods/default/p" + std::to_string(i % 10'000),
            std::string(1000, 'x'));
  return batch;
}

void BM_StoreCommits(benchmark::State& state) {
  Store& store = *Shared().store;
  std::uint64_t i = static_cast<std::uint64_t>(state.thread_index()) * 1'000'000;
  for (auto _ : state) TAHOMA_CHECK_OK(store.Commit(SmallBatch(i++)));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StoreCommits)->Threads(16)->Threads(64)->Threads(256)->UseRealTime();

void BM_StoreCommitsFromOneThread(benchmark::State& state) {
  Store& store = *Shared().store;
  std::uint64_t i = 0;
  for (auto _ : state) {
    store.CommitAsync(SmallBatch(i++), [](const absl::Status& status) { TAHOMA_CHECK_OK(status); });
  }
  TAHOMA_CHECK_OK(store.Commit({}));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StoreCommitsFromOneThread)->UseRealTime();

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
