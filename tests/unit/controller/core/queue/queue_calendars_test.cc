// Queues by day and night, by a whole core: numbers in force, clocks that are set, gangs that
// cannot be ended, and gangs that are told before.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/queue/queue_keeper.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kChips = "trn2.48xlarge";

WallTime Utc(const std::string& text) { return *ParseTime(text); }
const WallTime kEvening = Utc("2023-11-14T22:30:00Z");
const WallTime kMorning = Utc("2023-11-15T08:00:00Z");

// Queues night and day share sixteen chips: all are night's own but from 08:00 to 20:00.
class QueueCalendarsTest : public ::testing::Test {
 protected:
  QueueCalendarsTest() {
    world_.api.AddNode("node-a");
    PutQueue("night", 16);
    PutQueue("day", 0);
    PutCalendar();
    world_.on_writes = [this](const std::vector<ApiWrite>& writes) {
      for (const ApiWrite& write : writes) {
        const auto* status = std::get_if<QueueCalendarStatusWrite>(&write.what);
        if (status != nullptr) calendars_[status->name] = *status->status;
      }
    };
    world_.MoveTo(kEvening);
  }

  void PutQueue(const std::string& name, std::int64_t chips) {
    world_.api.PutQueue(name, [&](QueueSpec& spec) {
      spec.kueue_names = {name};
      spec.guaranteed[kChips] = chips;
    });
  }
  void PutCalendar(
      int from = 8 * 60, const std::string& name = "c",
      const std::function<void(QueueCalendarSpec&)>& change = [](auto&) {}) {
    world_.api.PutQueueCalendar(name, [&](QueueCalendarSpec& spec) {
      QueuePeriod period{.name = "by-day", .from = from, .until = 20 * 60, .queues = {}};
      period.queues["night"].guaranteed = ChipCounts{{kChips, 0}};
      period.queues["day"].guaranteed = ChipCounts{{kChips, 16}};
      spec.periods = {period};
      change(spec);
    });
  }
  void Add(const std::string& name, const std::string& queue, int chips,
           std::optional<std::chrono::seconds> runtime, bool preemptible = false) {
    world_.api.AddPodWithClaim(name, "", chips);
    world_.api.ChangePod(name, [&](PodFact& pod) {
      pod.labels = {{"kueue.x-k8s.io/queue-name", queue}};
      pod.max_runtime = runtime;
      pod.preemptible = preemptible;
    });
    world_.Settle();
  }
  std::vector<std::string> Bound() {
    std::vector<std::string> names;
    for (const auto& [name, pod] : world_.api.pods()) {
      if (!pod.node.empty() && !pod.finished) names.push_back(name);
    }
    return names;
  }
  const GangView& ViewOf(const std::string& pod) {
    return **world_.core().snapshot()->gangs.Find(GangRef{{"default", pod}, true});
  }
  const QueueView& Queue(const std::string& name) {
    return **world_.core().snapshot()->queues.Find(name);
  }
  std::int64_t Guaranteed(const std::string& queue) {
    return Queue(queue).spec->guaranteed.at(kChips);
  }
  std::optional<WallTime> Told(const std::string& pod) {
    return world_.api.pods().at(pod).bound_reclaim;
  }

  World world_;
  std::map<std::string, QueueCalendarStatus> calendars_;
};

TEST_F(QueueCalendarsTest, NumbersMoveWithTheTimeOfDay) {
  EXPECT_EQ(Guaranteed("night"), 16);
  EXPECT_EQ(Queue("night").period, "");
  EXPECT_EQ(Queue("night").next_change, kMorning);
  world_.MoveTo(kMorning);
  EXPECT_EQ(Guaranteed("night"), 0);
  EXPECT_EQ(Guaranteed("day"), 16);
  EXPECT_EQ(Queue("day").period, "c/by-day");
  EXPECT_EQ(Queue("day").next_change, kMorning + hours(12));
  EXPECT_EQ(calendars_["c"].period, "by-day");
  EXPECT_EQ(calendars_["c"].next_change, kMorning + hours(12));
  world_.MoveTo(kMorning + hours(12));
  EXPECT_EQ(Guaranteed("night"), 16);
  EXPECT_EQ(calendars_["c"].period, "");
}

TEST_F(QueueCalendarsTest, TheCoreWakesForTheNextChange) {
  world_.MoveTo(kMorning - std::chrono::seconds(20));
  const WallTime now = world_.Time().wall;
  ASSERT_LT(now, kMorning);
  const StepOutput out = world_.core().Step({}, world_.Time());
  ASSERT_TRUE(out.wake.has_value());
  EXPECT_LE(*out.wake - world_.Time().monotonic, kMorning - now);
}

TEST_F(QueueCalendarsTest, AClockThatIsSetBackOrForwardSkipsNothing) {
  for (const auto& [time, chips] : std::vector<std::pair<std::string, std::int64_t>>{
           {"2023-11-20T12:00:00Z", 0},   // over five days at once
           {"2023-11-20T07:00:00Z", 16},  // back
           {"2023-11-15T09:00:00Z", 0},   // days back
           {"2023-11-14T23:00:00Z", 16},
           {"2024-11-14T19:00:00Z", 0}}) {
    world_.SetWallClock(Utc(time));
    world_.Settle();
    EXPECT_EQ(Guaranteed("night"), chips) << time;
  }
}

TEST_F(QueueCalendarsTest, ACalendarThatIsDeletedInAPeriodLeavesEachQueueItsOwn) {
  world_.MoveTo(kMorning + hours(1));
  EXPECT_EQ(Guaranteed("night"), 0);
  world_.api.RemoveQueueCalendar("c");
  world_.Settle();
  EXPECT_EQ(Guaranteed("night"), 16);
  EXPECT_EQ(Queue("night").period, "");
  EXPECT_EQ(Queue("night").next_change, std::nullopt);
}

TEST_F(QueueCalendarsTest, AGangThatCannotBeEndedStartsOnlyIfItEndsBefore) {
  Add("long", "night", 4, hours(12));
  Add("endless", "night", 4, std::nullopt);
  Add("short", "night", 4, hours(9));
  Add("endable", "night", 4, std::nullopt, true);
  EXPECT_THAT(Bound(), ElementsAre("endable", "short"));
  EXPECT_EQ(ViewOf("long").reason, GangReason::kQueueCalendar);
  EXPECT_EQ(
      ViewOf("long").message,
      "4 chips of trn2.48xlarge more: 16 are free, and 16 are kept for other queues when "
      "period by-day of QueueCalendar c begins on 2023-11-15T08:00:00Z, and the gang cannot be "
      "ended before");
  EXPECT_EQ(ViewOf("endless").reason, GangReason::kQueueCalendar);
  // By day the queue has nothing of its own, and by night all: nobody is in the way any more.
  world_.api.RemoveQueueCalendar("c");
  world_.Settle();
  EXPECT_THAT(Bound(), ElementsAre("endable", "endless", "long", "short"));
}

TEST_F(QueueCalendarsTest, GangsThatCannotBeEndedCountTogetherAtTheChange) {
  PutCalendar(8 * 60, "c", [](QueueCalendarSpec& spec) {
    spec.periods[0].queues["night"].guaranteed = ChipCounts{{kChips, 8}};
    spec.periods[0].queues["day"].guaranteed = ChipCounts{{kChips, 8}};
  });
  Add("a", "night", 4, hours(24));
  Add("b", "night", 4, std::nullopt);
  Add("c", "night", 4, hours(24));
  EXPECT_THAT(Bound(), ElementsAre("a", "b")) << "eight chips are its own by day, too";
  EXPECT_EQ(ViewOf("c").reason, GangReason::kQueueCalendar);
  // The same after a restart, which finds both in the journal.
  world_.Start();
  world_.Settle();
  EXPECT_THAT(Bound(), ElementsAre("a", "b"));
  world_.api.FinishPod("b", true);
  world_.Settle();
  EXPECT_THAT(Bound(), ElementsAre("a", "c"));
}

TEST_F(QueueCalendarsTest, GangsPlannedAtOnceCountTogether) {
  PutCalendar(8 * 60, "c", [](QueueCalendarSpec& spec) {
    spec.periods[0].queues["night"].guaranteed = ChipCounts{{kChips, 8}};
    spec.periods[0].queues["day"].guaranteed = ChipCounts{{kChips, 8}};
  });
  for (const char* name : {"a", "b", "c", "d"}) {
    world_.api.AddPodWithClaim(name, "", 3);
    world_.api.ChangePod(name, [](PodFact& pod) {
      pod.labels = {{"kueue.x-k8s.io/queue-name", "night"}};
    });
  }
  world_.Settle();
  EXPECT_THAT(Bound(), ElementsAre("a", "b"));
}

TEST_F(QueueCalendarsTest, ALimitToComeCountsForGangsThatCannotBeEnded) {
  PutCalendar(8 * 60, "c", [](QueueCalendarSpec& spec) {
    spec.periods[0].queues.erase("day");
    spec.periods[0].queues["night"].guaranteed = ChipCounts{{kChips, 4}};
    spec.periods[0].queues["night"].limit = ChipCounts{{kChips, 4}};
  });
  Add("a", "night", 8, hours(9));
  Add("b", "night", 4, hours(10));
  Add("c", "night", 4, hours(10));
  EXPECT_THAT(Bound(), ElementsAre("a", "b"));
  EXPECT_THAT(ViewOf("c").message, HasSubstr("queue night holds 4 of at most 4 when period"));
}

TEST_F(QueueCalendarsTest, GangsAreToldBeforeAndEndedWhenTheOwnerComes) {
  Add("train", "night", 16, std::nullopt, true);
  world_.MoveTo(kMorning - minutes(31));
  EXPECT_EQ(Told("train"), std::nullopt);
  world_.MoveTo(kMorning - minutes(30));
  EXPECT_EQ(Told("train"), kMorning);
  EXPECT_EQ(EventsOf(world_.api, EventReason::kReclaimIsNear), 1);
  world_.Start();
  world_.Settle();
  EXPECT_EQ(EventsOf(world_.api, EventReason::kReclaimIsNear), 1) << "it was told before";
  world_.MoveTo(kMorning + minutes(10));
  EXPECT_EQ(Told("train"), kMorning) << "it may still be ended";
  EXPECT_THAT(Bound(), ElementsAre("train")) << "nobody has come";
  Add("serve", "day", 4, std::nullopt, true);
  world_.MoveTo(kMorning + minutes(20));
  EXPECT_THAT(Bound(), ElementsAre("serve"));
}

TEST_F(QueueCalendarsTest, TheOwnerWaitsUntilTheHourAndNoLonger) {
  Add("train", "night", 16, std::nullopt, true);
  Add("serve", "day", 4, std::nullopt, true);
  world_.MoveTo(kMorning - minutes(1));
  EXPECT_THAT(Bound(), ElementsAre("train"));
  world_.MoveTo(kMorning);
  EXPECT_THAT(Bound(), ElementsAre("serve"));
  // In the evening the hardware goes back the same way.
  Add("train-again", "night", 16, std::nullopt, true);
  world_.MoveTo(kMorning + hours(12) - minutes(30));
  EXPECT_EQ(Told("serve"), kMorning + hours(12));
  world_.MoveTo(kMorning + hours(12));
  EXPECT_THAT(Bound(), ElementsAre("train-again"));
}

TEST_F(QueueCalendarsTest, ANoticeMovesWithTheCalendarAndIsWithdrawn) {
  Add("train", "night", 16, std::nullopt, true);
  world_.MoveTo(kMorning - minutes(20));
  EXPECT_EQ(Told("train"), kMorning);
  PutCalendar(8 * 60 + 5);
  world_.Settle();
  EXPECT_EQ(Told("train"), kMorning + minutes(5));
  EXPECT_EQ(EventsOf(world_.api, EventReason::kReclaimIsNear), 2);
  PutCalendar(9 * 60);
  world_.Settle();
  EXPECT_EQ(Told("train"), std::nullopt);
  PutCalendar();
  world_.Settle();
  EXPECT_EQ(Told("train"), kMorning);
  world_.api.RemoveQueueCalendar("c");
  world_.Start();
  world_.Settle();
  EXPECT_EQ(Told("train"), std::nullopt) << "the next leader withdraws it, too";
}

TEST_F(QueueCalendarsTest, WhoIsToldIsWhoseQueueWillHoldTooMuch) {
  PutCalendar(8 * 60, "c", [](QueueCalendarSpec& spec) {
    spec.periods[0].queues["night"].guaranteed = ChipCounts{{kChips, 8}};
  });
  Add("a", "night", 4, hours(9), true);
  Add("b", "night", 4, std::nullopt, true);
  Add("d", "day", 4, std::nullopt, true);
  world_.MoveTo(kMorning - minutes(20));
  EXPECT_EQ(Told("b"), std::nullopt) << "eight chips stay its queue's own";
  Add("e", "night", 4, std::nullopt, true);
  Add("f", "night", 4, hours(1), true);
  world_.MoveTo(kMorning - minutes(10));
  EXPECT_EQ(Told("b"), kMorning);
  EXPECT_EQ(Told("e"), kMorning);
  EXPECT_EQ(Told("d"), std::nullopt);
}

TEST_F(QueueCalendarsTest, AClockThatIsSetOverTheWarningGivesItAtOnce) {
  Add("train", "night", 16, std::nullopt, true);
  world_.SetWallClock(kMorning - minutes(1));
  world_.Settle();
  EXPECT_EQ(Told("train"), kMorning);
  world_.SetWallClock(kMorning - hours(2));
  world_.Settle();
  EXPECT_EQ(Told("train"), std::nullopt);
}

TEST_F(QueueCalendarsTest, AWrongCalendarSaysWhyAndOthersGoOn) {
  PutCalendar(8 * 60, "a-unknown", [](QueueCalendarSpec& spec) {
    auto& queues = spec.periods[0].queues;
    queues = {{"gone", queues["day"]}};
  });
  PutCalendar(8 * 60, "invalid",
              [](QueueCalendarSpec& spec) { spec.invalid = "spec.x: is wrong"; });
  PutCalendar(9 * 60, "later");
  world_.MoveTo(kMorning);
  EXPECT_EQ(calendars_["a-unknown"].trouble, CalendarTrouble::kQueueUnknown);
  EXPECT_EQ(calendars_["invalid"].trouble, CalendarTrouble::kInvalid);
  EXPECT_EQ(calendars_["invalid"].message, "spec.x: is wrong");
  EXPECT_EQ(calendars_["later"].trouble, CalendarTrouble::kOverlap);
  EXPECT_EQ(calendars_["later"].next_change, std::nullopt);
  EXPECT_EQ(calendars_["c"].trouble, CalendarTrouble::kNone);
  EXPECT_EQ(Queue("day").period, "c/by-day");
}

TEST_F(QueueCalendarsTest, APeriodThatGuaranteesMoreThanTheParentHasIsTheParentsTrouble) {
  world_.api.PutQueue("fleet", [](QueueSpec& spec) { spec.guaranteed[kChips] = 16; });
  world_.api.PutQueue("part", [](QueueSpec& spec) {
    spec.parent = "fleet";
    spec.kueue_names = {"part"};
  });
  PutCalendar(8 * 60, "d", [](QueueCalendarSpec& spec) {
    spec.periods[0].queues = {{"part", {.guaranteed = ChipCounts{{kChips, 17}}, .limit = {}}}};
  });
  Add("before", "part", 2, hours(1));
  EXPECT_THAT(Bound(), ElementsAre("before")) << "the trouble is to come";
  world_.MoveTo(kMorning);
  EXPECT_EQ(Queue("fleet").trouble, QueueTrouble::kGuarantees);
  EXPECT_THAT(Queue("fleet").message, HasSubstr("period by-day of QueueCalendar d"));
  Add("meanwhile", "part", 2, std::nullopt, true);
  EXPECT_EQ(ViewOf("meanwhile").reason, GangReason::kQueueInvalid);
  world_.MoveTo(kMorning + hours(12));
  EXPECT_EQ(Queue("fleet").trouble, QueueTrouble::kNone);
  EXPECT_THAT(Bound(), ElementsAre("meanwhile"));
}

}  // namespace
}  // namespace tahoma::controller
