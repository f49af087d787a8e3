// Package process runs the programs of a test cluster and stops them again, and only them.
//
// Each program is the leader of a session of its own, so that an interrupt at the terminal does not reach it, and
// writes to a log file. A Record of it, kept in a file, names it by PID, start time and boot, so that a later process
// can stop it without ever hitting another one that was given the same PID since.
//
// A bound program dies with the process that started it, however that one dies (Linux only).
package process
