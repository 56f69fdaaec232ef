// Capacity Blocks are sold on a disk that fails, fills up or loses power at every one of its
// writes: who was told that he has bought has it, once; who was not told asks again and gets one
// answer; and nothing is sold that is not there. A folder that has lost a sale of which somebody
// was told is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/reserve/refusal.h"
#include "controller/store/mark.h"
#include "controller/store/rocks_journal.h"
#include "controller/store/store.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/controller/core/block_leader.h"

namespace tahoma::controller {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::FaultFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;
using Failure = FaultFileSystem::Failure;

constexpr int kHosts = 2;  // UltraServers
const WallTime kMorning = *ParseTime("2026-11-23T09:00:00Z");

// What becomes of a controller whose journal cannot be written.
enum class Fate {
  kStartsAgain,     // on the same disk
  kStandByLeads,    // on an empty disk of its own
  kWaitsForTheDisk  // as in standalone mode
};

// As CoreLoop does it with wait_for_journal: the batch is written again when the store is back.
class WaitingJournal final : public Journal {
 public:
  WaitingJournal(Store& store, FaultFileSystem& disk)
      : journal_(store), store_(store), disk_(disk) {}

  absl::Status Write(const JournalBatch& batch) override {
    absl::Status written = journal_.Write(batch);
    for (; absl::IsUnavailable(written); written = journal_.Write(batch)) {
      ++waits;
      disk_.Heal();
      TAHOMA_CHECK_OK(store_.Recover());
    }
    return written;
  }
  absl::Status Load(const std::function<absl::Status(Sequence, std::string_view)>& visit) override {
    return journal_.Load(visit);
  }

  int waits = 0;

 private:
  RocksJournal journal_;
  Store& store_;
  FaultFileSystem& disk_;
};

// A request of somebody who asks until there is an answer, always with the same token.
struct Request {
  std::string token;
  int day = 0;            // that is bought, or added to the block of `extends`
  std::string extends{};  // the token by which the block was bought
};

// Four can be had: on each of two days there are two hosts.
const std::vector<Request> kRequests = {{"a", 0},      {"b", 0}, {"c", 0},
                                        {"x", 1, "a"}, {"d", 1}, {"e", 1}};

class SaleOnABadDisk {
 public:
  SaleOnABadDisk(Fate fate, std::uint64_t seed) : fate_(fate), rng_(seed) { Begin(); }

  FaultFileSystem& disk() { return *disk_; }
  Leader& leader() { return *leader_; }
  // Returns whether the disk failed meanwhile.
  bool failed() const { return restarts_ > 0 || (waiting_ != nullptr && waiting_->waits > 0); }
  std::string data() const { return fmt::format("{}/{}", dir_.path(), folder_); }
  // What each buyer was told: by token the block, empty for one that was refused.
  const std::map<std::string, std::string>& told() const { return told_; }

  void AskAll(Failure failure) {
    for (const Request& request : kRequests) Ask(request, failure);
  }

  // The same controller, or another one, on what is there.
  void StartAgain() {
    Close();
    Begin();
  }
  void Close() {
    leader_.reset();
    journal_.reset();
    store_.reset();
  }

 private:
  StoreOptions Options() { return {.dir = data(), .file_system = disk_, .single_threaded = true}; }

  void Begin() {
    auto store = Store::Open(Options());
    TAHOMA_CHECK_OK(store.status());
    Lead(*std::move(store));
  }
  void Lead(std::unique_ptr<Store> store) {
    store_ = std::move(store);
    waiting_ = nullptr;
    if (fate_ == Fate::kWaitsForTheDisk) {
      auto journal = std::make_unique<WaitingJournal>(*store_, *disk_);
      waiting_ = journal.get();
      journal_ = std::move(journal);
    } else {
      journal_ = std::make_unique<RocksJournal>(*store_);
    }
    leader_ = std::make_unique<Leader>(api, *journal_, ++term_, kMorning);
  }

  // The program ends, with its machine where the power goes; what is written by the next one may
  // fail, too.
  void EndAndStartAgain(Failure failure) {
    do {
      ++restarts_;
      Close();
      failure == Failure::kCrash ? disk_->PowerCut(rng_) : disk_->Heal();
      if (fate_ == Fate::kStandByLeads) ++folder_;
      if (restarts_ < 4) disk_->FailAfter(rng_.Below(60), failure);
      auto store = Store::Open(Options());
      if (store.ok()) Lead(*std::move(store));
    } while (leader_ == nullptr || !leader_->failure().ok());
  }

  std::variant<PurchaseOrder, ExtensionOrder> OrderOf(const Request& request) const {
    const WallTime start = StartOf(SlotOf(kMorning) + 1 + request.day);
    const Product& product = *FindProduct("u-trn2x64");
    if (!request.extends.empty()) {
      const std::string& block = told_.at(request.extends);
      return ExtensionOrder{
          .reservation = block,
          .offering_id = ExtensionOfferingId({.reservation = block,
                                              .start = start,
                                              .end = start + std::chrono::hours(24),
                                              .rate = product.rate,
                                              .count = 1}),
          .token = request.token};
    }
    return PurchaseOrder{.offering_id = OfferingId({.product = &product,
                                                    .count = 1,
                                                    .zone = "tahoma-1a",
                                                    .start = start,
                                                    .end = start + std::chrono::hours(24),
                                                    .rate = product.rate}),
                         .key = {"team-" + request.token, ""},
                         .token = request.token};
  }

  void Ask(const Request& request, Failure failure) {
    for (int tries = 0; tries < 10; ++tries) {
      const std::uint64_t ticket = ++tickets_;
      leader_->Order(ticket, OrderOf(request));
      for (const OrderAnswer& answer : std::exchange(leader_->answers, {})) {
        if (answer.ticket != ticket) continue;
        ASSERT_TRUE(answer.block.ok() || IsRefusal(answer.block.status())) << answer.block.status();
        const std::string block = answer.block.ok() ? (*answer.block)->reservation : "";
        const auto [before, first] = told_.emplace(request.token, block);
        EXPECT_TRUE(first || before->second == block) << request.token << " has another answer";
        if (leader_->failure().ok()) return;
      }
      if (told_.contains(request.token) && leader_->failure().ok()) return;
      if (!leader_->failure().ok()) EndAndStartAgain(failure);
    }
    ADD_FAILURE() << request.token << " has no answer";
  }

  const Fate fate_;
  Rng rng_;
  TempDir dir_;
  int folder_ = 0;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Journal> journal_;
  WaitingJournal* waiting_ = nullptr;
  std::unique_ptr<Leader> leader_;
  std::int64_t term_ = 0;
  int restarts_ = 0;
  std::uint64_t tickets_ = 0;
  std::map<std::string, std::string> told_;

 public:
  BlockApi api;
};

// Everybody has what he was told, once, and nobody has more; counted from the blocks themselves.
void ExpectSoldOnce(SaleOnABadDisk& sale) {
  std::map<std::string, std::string> by_token;
  std::map<Slot, int> sold;
  const BlockBook& book = sale.leader().blocks().book();
  book.blocks().ForEach([&](const std::string& reservation, const auto& block) {
    EXPECT_TRUE(by_token.emplace(block->token, reservation).second) << block->token;
    EXPECT_EQ(StateName(block->state), "scheduled");
    for (Slot slot = SlotOf(block->start()); StartOf(slot) < block->end; ++slot) ++sold[slot];
    EXPECT_EQ(sale.api.Published(block->key), *block);
  });
  for (const auto& [slot, hosts] : sold) EXPECT_LE(hosts, kHosts);
  for (const auto& [token, reservation] : sale.told()) {
    if (token == "x") {
      ASSERT_FALSE(reservation.empty());
      EXPECT_EQ(book.Find(reservation)->extensions.size(), 1U);
    } else if (!reservation.empty()) {
      EXPECT_EQ(by_token[token], reservation) << token;
      by_token.erase(token);
    }
  }
  EXPECT_TRUE(by_token.empty()) << by_token.begin()->first << " was sold, and nobody was told";
  EXPECT_EQ(sale.told().at("c"), "") << "the third of two hosts was sold";
  EXPECT_EQ(sale.told().at("e"), "");
}

// The most writes of the disk in which all is sold; more would mean that a fault is missed.
constexpr std::uint64_t kWritesMost = 200;

class SaleFaultsTest : public ::testing::TestWithParam<std::tuple<Fate, Failure>> {};

TEST_P(SaleFaultsTest, WhoWasToldHasItOnceWhereverTheDiskFails) {
  const auto [fate, failure] = GetParam();
  std::uint64_t n = 0;
  for (bool failed = true; failed && !HasFailure(); ++n) {
    SCOPED_TRACE(fmt::format("the disk fails at write {}", n));
    ASSERT_LT(n, kWritesMost);
    SaleOnABadDisk sale(fate, n + 1);
    sale.disk().FailAfter(n, failure);
    sale.AskAll(failure);
    failed = sale.failed();
    sale.disk().Heal();
    ExpectSoldOnce(sale);
    sale.AskAll(failure);  // they ask once more, and are told the same
    sale.StartAgain();
    ExpectSoldOnce(sale);
  }
  EXPECT_GT(n, 12U) << "each sale is at least an append and a sync";
}

std::string NameOfCase(const ::testing::TestParamInfo<SaleFaultsTest::ParamType>& made) {
  constexpr std::array kFates = {"StartsAgain", "StandByLeads", "WaitsForTheDisk"};
  constexpr std::array kFailures = {"WriteError", "DiskFull", "PowerCut"};
  const auto [fate, failure] = made.param;
  return fmt::format("{}After{}", kFates[static_cast<std::size_t>(fate)],
                     kFailures[static_cast<std::size_t>(failure)]);
}

INSTANTIATE_TEST_SUITE_P(All, SaleFaultsTest,
                         ::testing::Values(std::tuple(Fate::kStartsAgain, Failure::kWriteError),
                                           std::tuple(Fate::kStartsAgain, Failure::kDiskFull),
                                           std::tuple(Fate::kStartsAgain, Failure::kCrash),
                                           std::tuple(Fate::kStandByLeads, Failure::kCrash),
                                           std::tuple(Fate::kWaitsForTheDisk, Failure::kWriteError),
                                           std::tuple(Fate::kWaitsForTheDisk, Failure::kDiskFull)),
                         NameOfCase);

// ---- A log that was torn or damaged ------------------------------------------------------------

// A folder in which one sale is whole, and the last bytes of the log are of another, of which
// nobody was told and which was not published.
class TornSaleTest : public ::testing::Test {
 protected:
  TornSaleTest() {
    auto store = *Store::Open(Options(false));
    RocksJournal journal(*store);
    Leader leader(api_, journal, 1, kMorning);
    offering_ = leader.Offering();
    first_ = Sell(leader, "first");
    TAHOMA_CHECK(!first_.empty());
    const std::string log = LogFile();
    whole_ = fs::file_size(log);
    mark_before_ = *ReadFile(data() + "/" + kMarkName);
    leader.arrives = [](const ApiWrite&) { return false; };
    TAHOMA_CHECK(Sell(leader, "second").empty());
    store.reset();
    log_ = fs::path(log).filename();
    bytes_ = *ReadFile(log, 1U << 30U);
    fs::rename(data(), dir_.path() + "/left");
  }

  std::string data() const { return dir_.path() + "/data"; }
  StoreOptions Options(bool only_copy) const {
    return {.dir = data(),
            .file_system = std::make_shared<FaultFileSystem>(),  // which does not sync
            .single_threaded = true,
            .only_copy = only_copy};
  }
  std::string LogFile() const {
    for (const auto& entry : fs::directory_iterator(data())) {
      if (entry.path().extension() == ".log" && entry.file_size() > 0) return entry.path();
    }
    return "";
  }
  // The folder with another log; with the mark of before the second sale or of after it.
  void PutBack(const std::string& log, bool acknowledged) const {
    fs::remove_all(data());
    fs::copy(dir_.path() + "/left", data(), fs::copy_options::recursive);
    std::ofstream(data() + "/" + log_, std::ios::binary | std::ios::trunc) << log;
    if (acknowledged) return;
    std::ofstream(data() + "/" + kMarkName, std::ios::binary | std::ios::trunc) << mark_before_;
  }
  // The block that the buyer was told of; empty when there was no answer.
  std::string Sell(Leader& leader, const std::string& token) const {
    leader.Order(1,
                 PurchaseOrder{.offering_id = offering_, .key = {"team-a", token}, .token = token});
    const std::vector<OrderAnswer> answers = std::exchange(leader.answers, {});
    if (answers.empty()) return "";
    TAHOMA_CHECK_OK(answers[0].block.status());
    return (*answers[0].block)->reservation;
  }

  TempDir dir_;
  BlockApi api_;
  std::string offering_;
  std::string first_;        // the block of the first sale
  std::string log_;          // the name of the log
  std::string bytes_;        // its text
  std::uint64_t whole_ = 0;  // its size after the first sale
  std::string mark_before_;
};

TEST_F(TornSaleTest, ASaleThatIsTornAnywhereIsAskedForAgainAndMadeOnce) {
  for (std::uint64_t size = whole_; size <= bytes_.size(); size += 23) {
    SCOPED_TRACE(fmt::format("{} of {} bytes", size, bytes_.size()));
    PutBack(bytes_.substr(0, size), false);
    auto store = Store::Open(Options(false));
    ASSERT_TRUE(store.ok()) << store.status();
    RocksJournal journal(**store);
    BlockApi api = api_;
    Leader leader(api, journal, 2, kMorning);
    EXPECT_NE(leader.blocks().book().Find(first_), nullptr);
    const std::string second = Sell(leader, "second");
    EXPECT_NE(second, "");
    EXPECT_EQ(Sell(leader, "second"), second);
    EXPECT_EQ(leader.blocks().book().blocks().size(), 2U);
  }
}

TEST_F(TornSaleTest, AFolderThatHasLostAnAcknowledgedSaleIsRefusedWithWhatToDo) {
  std::string flipped = bytes_;
  flipped[whole_ / 2] ^= 1;  // in the first sale, which others follow
  const std::string cut = bytes_.substr(0, bytes_.size() - 1);
  for (const auto& [log, acknowledged] :
       {std::pair(cut, true), std::pair(bytes_.substr(0, whole_), true), std::pair(flipped, true),
        std::pair(flipped, false)}) {
    for (const bool only_copy : {false, true}) {
      PutBack(log, acknowledged);
      const absl::Status refused = Store::Open(Options(only_copy)).status();
      EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
      EXPECT_THAT(refused.ToString(),
                  AllOf(HasSubstr("Nothing in it was changed"),
                        HasSubstr(only_copy ? "restore it from a backup into another folder"
                                            : "what was published is read back from the Kuber")));
      EXPECT_EQ(*ReadFile(data() + "/" + log_, 1U << 30U), log);
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
