// Package following keeps an index of the objects of a kind in line with a cache, on every replica of a manager.
//
//	f := &following.Follower{Kind: kind, Put: index.Put, Delete: index.Delete}
//	err := f.AddTo(mgr)
//	...
//	err = f.Wait(ctx) // until the index has all objects of the cache
//
// A kind that is not installed is looked for, and its index is complete as it is until then. The index of a kind that
// is found later is not complete before it has the objects: another version of the kind may have stored some. Objects
// are untyped, so that one that cannot be decoded does not hide the others.
package following
