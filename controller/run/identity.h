// The name under which a controller holds its lease: the same after a restart, and of at most one
// living process.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open({.dir = dir}));   // locks the folder
//   options.identity = LeaseIdentity(dir);     // "host-a_6c9d…_fd01-1a2b3c"
//
// The identity is made of the running kernel's boot id, and of device and inode of the folder's
// lock file. RocksDB locks the file (LOCK) until the process is dead: within one kernel at most one
// process holds the lock, and while the file is open no other file has its inode. A process with
// this identity therefore knows that all earlier holders are dead. A copy of the folder has another
// inode, and another host or a rebooted host another boot id: controllers there wait for the end of
// the lease like any other controller. The only exception is a running machine that is copied with
// its memory: both copies have the same identity, alive.
//
// Thread safety: a pure function of the machine's state.

#pragma once

#include <string>

namespace tahoma::controller {

// Returns the lease identity of a data folder whose store is open in this process. The identity is
// random where the kernel gives no boot id: then a restart waits for the end of its own lease.
std::string LeaseIdentity(const std::string& data_dir);

}  // namespace tahoma::controller
