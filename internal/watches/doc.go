// Package watches turns the events of a watch into requests.
//
// Transitions hands a handler an object before and after an event. Decisive selects the updates of an untyped object
// that a pass looks at. Unfinished lists the jobs of a kind that have not ended. Rules find the objects of a list to
// which a change of another object matters. OneListener gives the events of a kind to all controllers by one listener.
// A Follower keeps an index of the objects of a kind in line with a cache, on every replica of a manager:
//
//	f := watches.Follow(index, kind)
//	err := f.AddTo(mgr)
//	...
//	err = f.Wait(ctx) // until the index has all objects of the cache
//
// When not to use it: for the pods of a workload, whose changes package podwatch selects.
package watches
