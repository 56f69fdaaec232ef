// Users of pods: which number a pod gets, and what a process of a pod's user can do. Tests that
// start processes need root, as sim-node does.

#include "sim-node/podrunner/pod_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "lib/base/status.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/log_folder.h"
#include "sim-node/podrunner/spawner.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PodUsersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can start processes as other users";
  }
  std::unique_ptr<PodUsers> Open(std::uint32_t first, std::uint32_t count) {
    auto users = PodUsers::Open(Options(first, count));
    EXPECT_TRUE(users.ok()) << users.status();
    return *std::move(users);
  }
  PodUsers::Options Options(std::uint32_t first, std::uint32_t count) const {
    return {.first = first, .count = count, .lock_file = dir_.path() + "/lock"};
  }
  testing::TempDir dir_;
};

TEST_F(PodUsersTest, EveryPodHasAUserThatNoOtherHas) {
  const auto users = Open(50'000, 3);
  const uid_t a = *users->Assign("a", {});
  const uid_t b = *users->Assign("b", {});
  EXPECT_NE(a, b);
  EXPECT_EQ(*users->Assign("a", {}), a) << "its containers share it";
  EXPECT_EQ(*users->Assign("c", {}), 50'002U);
  EXPECT_EQ(Message(users->Assign("d", {}).status()), "all 3 users of this node's pods are taken");
  users->Release("b");
  EXPECT_EQ(*users->Assign("d", {}), b);
}

TEST_F(PodUsersTest, ARangeThatWrapsRoundToRootIsAMistakeOfOurs) {
  EXPECT_DEATH((void)PodUsers::Open(Options(4'294'967'290U, 10)), "CHECK failed: options.first");
}

TEST_F(PodUsersTest, AUserIsUsedAgainAsLateAsPossible) {
  const auto users = Open(50'000, 3);
  std::set<uid_t> seen;
  for (const std::string pod : {"a", "b", "c"}) {
    seen.insert(*users->Assign(pod, {}));
    users->Release(pod);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST_F(PodUsersTest, AWishIsGrantedWhereNobodyElseCanHaveThatUser) {
  const auto users = Open(50'000, 10);
  EXPECT_EQ(*users->Assign("a", 50'007), 50'007U);
  EXPECT_NE(*users->Assign("b", 50'007), 50'007U) << "it is taken";
  for (const std::int64_t foreign : {0, 1000, 50'010, -1}) {
    const uid_t given = *users->Assign("pod" + std::to_string(foreign), foreign);
    EXPECT_GE(given, 50'000U);
    EXPECT_LE(given, 50'009U);
  }
}

TEST_F(PodUsersTest, TwoProgramsNeverShareARange) {
  auto first = Open(50'000, 10);
  const auto second = PodUsers::Open(Options(50'009, 10));
  EXPECT_EQ(Message(second.status()),
            "another program gives users from 50009 to 50018 to its pods: set podRunner.firstUser "
            "to the first of 10 that nobody has");
  EXPECT_EQ(Open(50'010, 10)->first(), 50'010U);
  first.reset();
  EXPECT_EQ(Open(50'009, 10)->first(), 50'009U);
}

TEST_F(PodUsersTest, AnAccountOfTheMachineIsNoPodsUser) {
  EXPECT_THAT(std::string(Message(PodUsers::Open(Options(65'530, 10)).status())),
              HasSubstr("user 65534 is the account nobody: set podRunner.firstUser"));
}

TEST_F(PodUsersTest, WithoutANumberTheFirstFreeRangeIsTaken) {
  // Sim-nodes may run on this machine now: the ranges are locked where theirs are.
  const auto first = PodUsers::Open({});
  const auto second = PodUsers::Open({});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_GT((*second)->first(), (*first)->last());
}

TEST_F(PodUsersTest, TheFolderThatKeepsAUserOutIsNamed) {
  const fs::path folder = dir_.path() + "/a/b";
  fs::create_directories(folder);
  EXPECT_EQ(ClosedTo(50'000, folder), dir_.path());  // mkdtemp makes the folder private
  fs::permissions(dir_.path(), fs::perms(0711));
  EXPECT_EQ(ClosedTo(50'000, folder), "");
  fs::permissions(folder.parent_path(), fs::perms(0750));
  EXPECT_EQ(ClosedTo(50'000, folder), folder.parent_path());
}

// ---- Processes ---------------------------------------------------------------------------------

constexpr uid_t kUser = 50'000;
constexpr uid_t kOther = 50'001;

class UserSpawnerTest : public PodUsersTest {
 protected:
  UserSpawnerTest()
      : spawner_(std::make_unique<PosixSpawner>(clock_, dir_.path(), [this](const Ended& ended) {
          const std::lock_guard lock(mutex_);
          ended_[ended.id] = ended.exit;
          changed_.notify_all();
        })) {
    fs::permissions(dir_.path(), fs::perms(0711));
  }
  Launch Shell(const std::string& id, uid_t user, const std::string& script) {
    const std::string folder = dir_.path() + "/" + id;
    if (mkdir(folder.c_str(), 0700) == 0) {
      EXPECT_EQ(chown(folder.c_str(), user, user), 0);
    }
    return {.id = id,
            .user = user,
            .processes_most = 64,
            .program = {.path = "/bin/sh", .argv = {"sh", "-c", script}},
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .working_dir = folder,
            .log_file = dir_.path() + "/" + id + ".log"};
  }
  Exit WaitFor(const std::string& id) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return ended_.contains(id);
    })) << id;
    return ended_[id];
  }
  // Runs the script as the user and returns the output.
  std::string Says(uid_t user, const std::string& script) {
    const std::string id = "c" + std::to_string(++count_);
    const absl::Status started = spawner_->Start(Shell(id, user, script));
    EXPECT_TRUE(started.ok()) << started;
    WaitFor(id);
    std::string out;
    LogReader(dir_.path() + "/" + id + ".log", {}).Next(out);
    return out;
  }
  void MakeFifo(const std::string& path, uid_t user) {
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    ASSERT_EQ(chown(path.c_str(), user, user), 0);
  }

  int count_ = 0;
  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Exit> ended_;
  std::unique_ptr<PosixSpawner> spawner_;
};

TEST_F(UserSpawnerTest, AProcessHasItsUserAndGroupAndNothingElse) {
  EXPECT_EQ(Says(kUser, "id -u; id -g; id -G; umask; ulimit -Hc"),
            "50000\n50000\n50000\n0077\n0\n");
  EXPECT_EQ(Says(kUser, "grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status"),
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"
            "NoNewPrivs:\t1\n");
  EXPECT_EQ(Says(kUser, "ls /proc/self/fd | head -3 | tr '\\n' ' '"), "0 1 2 \n");
}

TEST_F(UserSpawnerTest, ItsOutputCanBeOpenedAgain) {
  EXPECT_EQ(Says(kUser, "echo a > /dev/stdout; echo b > /dev/stderr"), "a\nb\n");
}

TEST_F(UserSpawnerTest, AProgramThatLiesWhereTheUserCannotGoRunsAllTheSame) {
  const std::string closed = dir_.path() + "/closed";
  ASSERT_EQ(mkdir(closed.c_str(), 0700), 0);
  fs::copy_file("/bin/true", closed + "/true");
  Launch launch = Shell("a", kUser, "");
  launch.program = {.path = closed + "/true", .argv = {"true"}};
  ASSERT_TRUE(spawner_->Start(launch).ok());
  EXPECT_EQ(WaitFor("a").code, 0);
  // The program's own mode counts.
  fs::permissions(closed + "/true", fs::perms(0700));
  launch.id = "b";
  EXPECT_THAT(std::string(Message(spawner_->Start(launch))),
              HasSubstr("as user 50000: Permission denied"));
}

TEST_F(UserSpawnerTest, AWorkingDirectoryThatTheUserCannotEnterIsRefused) {
  Launch launch = Shell("a", kUser, "true");
  launch.working_dir = "/root";
  const struct stat found = [] {
    struct stat of = {};
    stat("/root", &of);
    return of;
  }();
  if ((found.st_mode & S_IXOTH) != 0) GTEST_SKIP() << "/root is open here";
  EXPECT_THAT(std::string(Message(spawner_->Start(launch))), HasSubstr("Permission denied"));
}

TEST_F(UserSpawnerTest, OneUserReachesNothingOfAnothersProcess) {
  const std::string up = dir_.path() + "/up";
  MakeFifo(up, kUser);
  ASSERT_TRUE(
      spawner_->Start(Shell("victim", kUser, "echo $$ > " + up + "; exec sleep 1000")).ok());
  std::ifstream in(up);
  std::string pid;
  ASSERT_TRUE(in >> pid);
  EXPECT_THAT(Says(kOther, "kill -0 " + pid + " 2>&1; cat /proc/" + pid +
                               "/environ 2>&1; ls /proc/" + pid + "/cwd/ 2>&1"),
              ::testing::AllOf(HasSubstr("ermitted"), HasSubstr("ermission denied"),
                               ::testing::Not(HasSubstr("TAHOMA_CONTAINER_ID"))));
}

// Sessions, groups and a clean environment hide a process from every check but the check of its
// user.
TEST_F(UserSpawnerTest, NothingOfAUserOutlivesItsLastContainer) {
  const std::string held = dir_.path() + "/held";
  const std::string ready = dir_.path() + "/ready";
  MakeFifo(held, kUser);
  MakeFifo(ready, kUser);
  const std::string hides = "exec 9> " + held + "; setsid env -i /bin/sh -c 'echo > " + ready +
                            "; exec /bin/sleep 1000' & read line < " + ready + "; exit 0";
  ASSERT_TRUE(spawner_->Start(Shell("a", kUser, hides)).ok());
  std::ifstream in(held);
  EXPECT_EQ(WaitFor("a").code, 0);
  std::string line;
  EXPECT_FALSE(std::getline(in, line)) << "nobody has it open any more";
}

TEST_F(UserSpawnerTest, AContainersEndLeavesTheOthersOfItsPodRunning) {
  const std::string up = dir_.path() + "/up";
  MakeFifo(up, kUser);
  ASSERT_TRUE(spawner_->Start(Shell("stays", kUser, "echo > " + up + "; exec sleep 1000")).ok());
  std::ifstream in(up);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(Says(kUser, "echo done"), "done\n");
  {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(ended_.contains("stays"));
  }
  spawner_->Signal("stays", /*kill=*/true);
  EXPECT_EQ(WaitFor("stays").signal, SIGKILL);
}

TEST_F(UserSpawnerTest, AForkBombIsBoundedAndEndsWithItsContainer) {
  Launch bomb = Shell("a", kUser, "for i in $(seq 1 200); do sleep 1000 & done; exit 7");
  bomb.processes_most = 20;
  ASSERT_TRUE(spawner_->Start(bomb).ok());
  WaitFor("a");
  EXPECT_EQ(Says(kUser, "echo free"), "free\n");
}

// The defect: a process of a dead sim-node shared its user with a later pod.
TEST_F(UserSpawnerTest, ProcessesOfADeadProgramEndWhenItsRangeIsTakenAgain) {
  const std::string held = dir_.path() + "/held";
  MakeFifo(held, kUser);
  ASSERT_TRUE(spawner_->Start(Shell("a", kUser, "exec env -i sleep 1000 > " + held)).ok());
  std::ifstream in(held);
  const auto users = Open(kUser, 2);
  std::string line;
  EXPECT_FALSE(std::getline(in, line));
  EXPECT_EQ(WaitFor("a").signal, SIGKILL);
}

// ---- Folders -----------------------------------------------------------------------------------

TEST_F(UserSpawnerTest, AContainersFoldersBelongToItsUserAndItsLogDoesNot) {
  const mode_t former = umask(0077);  // sim-node's
  LogFolder logs(dir_.path() + "/state");
  const PodRef pod{.name_space = "default", .name = "a", .uid = "a-uid"};
  const auto log = logs.Begin(pod, "main", 0, kUser);
  ASSERT_TRUE(log.ok()) << log.status();
  std::ofstream(*log) << "said";
  umask(former);
  const std::string work = logs.WorkFolder(pod, "main");
  EXPECT_EQ(Says(kUser, "cd " + work + " && echo mine > f && cat f; cat " + log->string() +
                            " 2>/dev/null; ls " + dir_.path() + "/state/pods 2>/dev/null"),
            "mine\n");
  EXPECT_EQ(Says(kOther, "cat " + work + "/f 2>/dev/null; cd " + work + " 2>/dev/null || echo no"),
            "no\n");
  // The pod has another user after a restart of sim-node; the pod still owns the files it wrote.
  symlink("/etc/passwd", (work + "/link").c_str());
  ASSERT_TRUE(logs.Begin(pod, "main", 1, kOther).ok());
  EXPECT_EQ(Says(kOther, "cat " + work + "/f"), "mine\n");
  struct stat passwd = {};
  ASSERT_EQ(stat("/etc/passwd", &passwd), 0);
  EXPECT_EQ(passwd.st_uid, 0U) << "a link is not followed";
}

}  // namespace
}  // namespace tahoma::sim
