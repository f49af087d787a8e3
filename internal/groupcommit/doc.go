// Package groupcommit decides the concurrent requests for one object together, and commits them with one write.
//
//	c := groupcommit.New(store)
//	err := c.Commit(ctx, groupcommit.Key{NamespacedName: name, UID: uid}, request) // the Store has filled in its answer
//
// Requests that arrive while a write is under way, and for a moment after a batch of several, form the next batch.
// After a conflict the Committer reads the object live, and decides the batch again, together with the requests that
// arrived meanwhile.
//
// Laws:
//   - An object has at most one write at a time. The batches of different objects do not wait for each other.
//   - Commit returns after the Store has decided the request and the write has succeeded, or with an error. The batch
//     leaves out a request whose context has ended.
//   - Decisions see what this process has written until the cache has it, for at most ledger.Patience.
//   - A panic is an error of the requests in that batch.
//   - An object without requests takes no memory.
//
// When not to use it: where each write tests only what it changes, so that writers do not conflict.
package groupcommit
