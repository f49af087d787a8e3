// Package driver runs passes: it sends what a pass asks for, and gives the pass each answer.
//
// A [Pass] decides without I/O. Its writes come out in stages, the answer to each write goes in, and the writes that
// follow from the answer come out, until nothing is left. Package workload plans such passes, and so does each
// reconciler of this module. A controller of your own may plan passes, too: three methods on values, which a table test
// reaches without an API server.
//
//	pass, err := workload.Plan(input)                             // decide
//	...
//	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{  // act
//		Send: runtimeclient.Sender(mgr.GetClient(), mgr.GetAPIReader()),
//		Owner: client.ObjectKeyFromObject(set), Ledgers: []driver.Recorder{r.pods},
//	})
//
// Packages driver/runtimeclient and driver/clientgo have the senders of the two common clients. [UpdatePod] brings one
// pod to a revision in place, for controllers with a loop over pods of their own. [Recording] records what any sender
// sends.
//
// Laws:
//   - Writes of a stage are sent in parallel: one, then twice as many at a time as before, at most 64. An API server
//     that fails is asked once for each size of a batch, not once for each object.
//   - A refusal of one write stops no other write, but for creations: the objects that a pass creates are alike, as
//     pods of one template. Any other error ends the stage.
//   - A pass is called from one goroutine at a time, with every answer of a write that was sent.
//   - A panic ends the run with the writes that are independent of its write, and is an error of the run.
//   - Every answer is recorded in the ledger of its kind before the pass sees it.
//
// A controller without a pass sends many writes in the same batches:
//
//	Alike      for writes that are alike, as the creation of pods: what refuses one refuses all, unless its name is taken
//	Each       for writes to objects of their own: a refusal concerns one item
//	Isolated   for writes in namespaces of their own: any error concerns one item
//
// When not to use Run: for a plan with one write, whose answer nothing follows. Send that write.
package driver
