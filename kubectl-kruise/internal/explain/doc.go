// Package explain states which objects touch a pod, and why the pod is not ready, not updated or not evicted.
//
// The reasons come from the packages of the library that decide in the manager: a command asks pub.Review whether an
// eviction would be admitted, and inplace.Diff what an update would do. Everything but the command itself is a pure
// function of objects.
package explain
