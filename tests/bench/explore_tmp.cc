#include <cstdio>
#include <chrono>
#include "lib/collective/cuts.h"
#include "lib/collective/routes.h"
#include "lib/base/rng.h"
#include "lib/hw/catalogue.h"
#include "sim-node/collective/bound.h"
#include "sim-node/collective/plan.h"
#include <bit>
using namespace tahoma; using namespace tahoma::sim;
template<class F> double us(F f){auto a=std::chrono::steady_clock::now();int n=0;do{f();n++;}while(std::chrono::steady_clock::now()-a<std::chrono::milliseconds(20));return std::chrono::duration<double,std::micro>(std::chrono::steady_clock::now()-a).count()/n;}
int main(){
  TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  auto u=UnitLinksOf(links);
  for(int seed=0;seed<6;seed++){
    Rng rng(seed); torus::ChipMask m = seed==0? ~0ull : seed==1? ~1ull : rng.Next()|rng.Next()|(seed>3?rng.Next():0);
    auto ul=u;
    if(seed>2) for(int i=0;i<seed*2;i++) ul.SetPermille({torus::ChipIndex((int)rng.Below(64)),torus::kAxes[rng.Below(3)],torus::kDirections[rng.Below(2)],0});
    auto t=collective::ThroughOf(ul,m);
    printf("n=%d gather %.1f us exch %.1f bcast %.1f", std::popcount(m), us([&]{collective::WorstGatherCut(ul,m,t);}), us([&]{collective::WorstExchangeCut(ul,m,t);}), us([&]{collective::WorstBroadcastCut(ul,m,t,std::countr_zero(m));}));
    printf(" crowd %.1f unitlinks %.2f\n", us([&]{collective::Crowd c(ul,t); for(auto a=m;a;a&=a-1)for(auto b=m;b;b&=b-1)c.Add(std::countr_zero(a),std::countr_zero(b)); c.Time(1,1);}), us([&]{collective::UnitLinks x(torus::kUltraServerShape, hw::kTrainium2.links);}));
  }
  // ratios irregular
  const Operation ops[]={Operation::kAllReduce,Operation::kAllGather,Operation::kAllToAll,Operation::kBroadcast,Operation::kSendReceive};
  for(int seed=0;seed<14;seed++){
    Rng rng(seed+100); torus::ChipMask m;
    bool inst = seed%2;
    if(inst){ m=0; while(std::popcount(m)<3+seed) {m|=1ull<<rng.Below(16);} } else m=rng.Next()|rng.Next();
    TorusLinks l= links;
    if(seed%4==2) l.SetCablePermille(TorusLinks::IdOf(torus::ChipIndex(5),torus::Axis::kX,torus::Direction::kPlus),0);
    auto set=SetOf(MembersOf(m),l);
    for(auto op:ops) for(std::uint64_t b: {1ull<<10,1ull<<16,1ull<<20,1ull<<24,1ull<<26,1ull<<30}){
      if(op==Operation::kAllToAll && b<1024) continue;
      auto p=PlanCollective({.operation=op,.bytes=b,.type=ElementType::kFp32},MembersOf(m),l);
      if(!p.ok()){printf("%s\n",std::string(p.status().message()).c_str());continue;}
      double bound=Nanoseconds(LowerBound(op,set,b,l))/1e3; double t=Nanoseconds(p->times.end-p->times.start)/1e3;
      printf("n=%d conn=%d %s %llu %s steps=%zu t=%.2f bound=%.2f ratio %.3f\n",std::popcount(m),(int)(set.through()==m),std::string(Name(op)).c_str(),(unsigned long long)b,std::string(Name(p->algorithm)).c_str(),p->schedule.steps.size(),t,bound,t/bound);
    }
  }
}
