// Package turns gives each object one writer at a time, together with all requests that wait for the object.
//
//	t := &turns.Turns[types.UID, question]{Serve: serve}
//	err := t.Ask(ctx, uid, &question{...}) // returns when serve has answered it
//	...
//	func serve(ctx context.Context, uid types.UID, turn *turns.Turn[question]) {
//		batch := turn.Join(nil)
//		// decide the batch, and write it once; after a conflict: batch = turn.Join(batch), and again
//		turns.Answer(batch, err)
//	}
//
// Requests that arrive while a turn is served wait for the next one, or join the running one.
//
// Laws:
//   - An object has at most one turn at a time. The turns of different objects do not wait for each other.
//   - A request is answered once, or its context ends. A request whose context has ended joins no turn.
//   - A panic in a turn is an error of the requests in that turn.
//   - An object that nothing waits for costs nothing.
//
// When not to use it: where each write tests only what it changes, and writers do not meet.
package turns
