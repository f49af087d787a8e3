// Package operate has the commands for days on which something must happen to running pods: restart, pull, protect and
// pause-all.
//
// What they write is decided by pure functions: Next, Protect, PauseAll and PullJob.
package operate
