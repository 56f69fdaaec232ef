// The name under which a controller holds its lease: the same after a restart, and of one living
// process at a time.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open({.dir = dir}));   // locks the folder
//   options.identity = LeaseIdentity(dir);     // "host-a_6c9d…_fd01-1a2b3c"
//
// It is made of the boot id of the running kernel and of device and inode of the folder's lock
// file. Within one kernel that file is locked by one process at most (RocksDB's LOCK, held by the
// store until the process is dead), and while it is open its number belongs to no other file. So
// whoever has this identity knows that everybody who had it before is dead. A copy of the folder
// has another inode, another host or a host that was booted again another boot id: those wait for
// the end of the lease as any other controller. The one thing that has the same identity and lives
// is a running machine that is copied with its memory.
//
// Thread safety: a pure function of the machine's state.

#pragma once

#include <string>

namespace tahoma::controller {

// Returns the lease identity of a data folder whose store is open in this process. It is random
// where the kernel does not give its boot id: then a restart waits for the end of its own lease.
std::string LeaseIdentity(const std::string& data_dir);

}  // namespace tahoma::controller
