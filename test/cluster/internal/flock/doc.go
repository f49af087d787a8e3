// Package flock locks files between processes. The kernel releases the locks of a process that dies, however it dies,
// so a lock that is held proves that its holder lives.
//
// Locks are advisory and per open file: two locks taken in one process exclude each other too.
package flock
