// Package workload plans one whole pass over the pods of a workload: what to create, delete and change now, in which
// order, and what to report.
//
// It joins packages scale, inplace, lifecycle and revision, so that a controller keeps only what is its own: the
// identity of its pods, its API, and the words of its status. A pass is a value. Plan computes it from an observation,
// without I/O; the caller sends its writes, and asks the pass what follows from each answer.
//
// This is a whole reconcile of an operator whose resource s has replicas, a pod template, and the name of the current
// revision in its status. It observes, plans, acts and reports, and needs nothing in the cluster. Package
// driver/clientgo runs it as its Example.
//
//	func (s *site) reconcile(ctx context.Context, client kubernetes.Interface) error {
//		pods, revisions, err := clientgo.Observe(ctx, client, s, "site="+s.Name)
//		data, invalid := revision.Encode(&s.Template)
//		if err := errors.Join(err, invalid); err != nil {
//			return err
//		}
//		in := workload.Input{
//			Owner:     workload.OwnedBy(s, siteKind(), map[string]string{"site": s.Name}),
//			Scale:     scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: s.Replicas, MaxUnavailable: 1}},
//			Instances: workload.Pods(pods),
//			Strategy:  workload.InPlaceIfPossible,
//			Repeats:   s.repeats,
//		}
//		history := workload.History{Data: data, Stored: revisions, Current: s.Current, Limit: 10}
//		if err := in.SetHistory(history); err != nil {
//			return err
//		}
//		pass, err := workload.Plan(in)
//		if err != nil {
//			return err
//		}
//		err = clientgo.Run(ctx, client, pass)
//		s.repeats = pass.Repeats()
//		s.report(pass, err)
//		return err
//	}
//
// Limit the rollout with scale.Limits: a partition, a surge, how many pods may be unavailable. An operator that reads
// from a cache records what Send returns in package ledger, and sends the writes of a stage at the same time:
//
//	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
//		for len(writes) > 0 {
//			w := writes[0]
//			pod, err := clientgo.Send(ctx, pods, &w.Write) // or runtimeclient.Send
//			writes = append(writes[1:], pass.Answer(time.Now(), w, pod, err)...)
//		}
//	}
//
// Report Pass.Counts, Pass.Notes, Pass.Failures and, as the current revision, Pass.Promote. Reconcile again when a pod
// changes, and after Pass.RequeueAfter: also where an error is returned, whose back-off may be longer than what another
// pod waits for.
//
// # Order
//
//	first      the caller's own writes; pods that have finished are deleted
//	complete   groups get the members that they lack; what is left of a group without a leader is deleted
//	scale      instances are restored, created or deleted, as package scale plans
//	free       slots without an order: where all creations of the plan are rejected or wait, instances are deleted
//	continue   updates that have begun go on; states move; new pods open their readiness gate
//	ask        where Input.Ask is set, the caller answers whether the updates may begin: see ActionAsk
//	update     updates begin
//
// A pass that has changed the number of pods ends before it continues updates, and one that has moved a state ends
// before it begins updates: the next pass observes the result. The caller makes that pass when it observes a change of
// a pod, and at the latest after RequeueAfter.
//
// # Instances
//
// An instance is a pod, a group of pods with a template per role, or an object of another kind. Instances are
// interchangeable, or have slots as those of a StatefulSet: see scale.Input. A pod of a group that is no member is
// deleted: the size of groups was lowered.
//
//	in.Members = []workload.Member{{Name: "leader", Role: "leader"}, {Name: "w1", Role: "worker"}}
//	in.Instances = workload.Groups(pods, "example.com/group", "example.com/member") // labels of pods
//
// The revisions of groups come from revision.EncodeRoles. Input.Group is how the pods of a group go together: the order
// of roles, their bounds, which pods leave traffic, what a blocked change recreates, restarts. Its zero value suits a
// leader and its workers. All pods leave traffic, the leader changes first, the others follow once it is done, and all
// come back together. A change that is not possible in place recreates the group.
//
// Input.Children has instances be objects whose controller is another one, or the same engine one level down. An update
// of an object goes as that of a pod: hooks, out of traffic, a grace period, the change, and back.
//
// # Pods that another controller creates
//
// A pass with Scale.UpdateOnly creates no pods, deletes none that have finished or are too many, and only updates: in
// place, or by the deletion of a pod in its slot, which the controller of the pods then creates again. Without a Store
// it writes no revisions. Where that controller counts pods by their revision label, set Policy.Relabel, and where
// budgets of others guard the pods, set Evict. Package workload/native does so for StatefulSets and DaemonSets.
//
// Laws, besides those of package scale:
//   - Everything that must be remembered is in the pods. A pass that is sent in part, or twice, by a process that died,
//     does no harm: the next pass continues.
//   - No order of answers, whether success, conflict, refusal or timeout, keeps a pod out of traffic for good, or
//     creates an instance twice.
//   - With TrafficEach, no update takes a pod out of traffic beyond the bounds of its role, its group and the workload.
//     A group that is deleted or recreated as a whole has only the bound of the workload.
//   - Each failure stops only its own instance. Where an update is refused, another instance takes its turn.
//   - A write that was decided upon an older pod is no failure: the pass asks to be made again. Neither is
//     ErrUnobserved.
//   - With Input.Repeats, a write that another writer reverts is made again at most once a minute, and so are passes in
//     a row whose writes are outdated each time.
//   - The grace period of a pod begins when the pod has left traffic, however long the writes before it took.
//   - The order of the instances does not matter, and neither they nor their pods are changed.
//
// When not to use it: for pods that are not replaced when they end, as those of a job.
package workload
