// Package keeper shares one control plane between processes: those of one `go test ./...`, one per package.
//
// A keeper is a process that runs the plane. Its users hold a shared lock on a file; when no process has held it for a
// while, the keeper tears the plane down and ends. All of it stands on locks that the kernel releases when their holder
// dies:
//
//	start.lock    held while a plane is started or torn down, so that neither happens twice or at once
//	use.lock      held, shared, by each user
//	keeper.lock   held by the keeper as long as it lives
//
// So no process has to be asked whether it lives, nothing is left to time, and killing any process at any moment leaves
// nothing that the next user does not clear away. The programs of the plane die with the keeper.
package keeper
