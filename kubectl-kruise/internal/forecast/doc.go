// Package forecast computes what a change of a workload will do to its pods, before the change is applied.
//
// It loads objects of a cluster into memory, changes the workload there, and runs the production reconciler of the
// workload's kind on a clock of its own. A model of the nodes starts, restarts and ends containers, as fast as the pods
// of the workload have done so far. Nothing is written to a cluster.
//
//	f, err := forecast.Of(ctx, forecast.Input{
//		Now: time.Now(), Live: live, Wanted: wanted, // the CloneSet as it is, and as it will be
//		Objects: objects, // its pods, revisions and claims, and the budgets of its namespace
//	})
//	...
//	for _, pod := range f.Pods {
//		fmt.Println(pod.Name, pod.Fate, pod.Containers, pod.Paths, pod.Text)
//	}
//	err = f.WriteText(os.Stdout)
//
// A forecast assumes that new images can be pulled and become ready, that no node fails, that no other client changes
// the objects meanwhile, and that the owners of lifecycle hooks answer at once. With HoldHooks they do not answer, and
// the forecast ends where the workload waits for them. A pod that cannot become ready today, as one whose container
// crashes, stays as it is until a change restarts or recreates it. A changed Deployment that asks for a rollout
// in place is held, as by the policy config/native/hold.yaml.
//
// Laws:
//   - The same input gives the same forecast, and is not changed.
//   - Every pod of the workload has exactly one fate, with the reason for it.
//   - The fates are those that the reconciler of this release brings about. Where they depend on which pod becomes
//     ready first, as with a partition over pods that are unavailable, they are those of one possible order.
//   - A forecast ends: a workload that stands still for an hour is Incomplete, with the notes of the reconciler.
//
// When not to use it: for a decision about one pod, which packages inplace and scale make from values.
package forecast
