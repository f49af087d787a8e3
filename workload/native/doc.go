// Package native updates the pods of StatefulSets and DaemonSets of Kubernetes in place, while their built-in
// controllers create the pods, keep the revisions and count.
//
// With updateStrategy OnDelete these controllers leave running pods alone. They count a pod as updated by the label
// controller-revision-hash, and create a missing pod at the newest revision. Package native returns the input of a pass
// of package workload that does the rest: it changes what can change in the running pods, moves the label of each pod
// last, and evicts a pod whose change is not possible in place. Nothing is needed in the cluster.
//
//	rollout := native.Rollout{MaxUnavailable: ptr.To(intstr.FromString("10%"))}
//	in, notes := native.StatefulSet(set, native.Observed{Now: time.Now(), Pods: pods, Revisions: revisions}, rollout)
//	pass, err := workload.Plan(in)
//	if err != nil {
//		return err
//	}
//	err = clientgo.Run(ctx, client, pass) // or driver.Run
//
// The notes are why no update begins: the controller has not observed the template yet, or the strategy of the set does
// not leave its pods to this package. The pass then only ends the updates that are under way, so that making it is
// always right. Make a pass when the set or one of its pods changes, and after Pass.RequeueAfter. The Example is an
// operator that creates a StatefulSet; package controllers/native is a reconciler for all sets that ask for it.
//
// # The strategy of a StatefulSet
//
//	strategy                                 a pod that dies    not possible in place    status of the set
//	OnDelete                                 newest revision    evicted, or InPlaceOnly  currentRevision stays old
//	RollingUpdate with partition >= replicas old, then updated  reported                 completes, as does kubectl
//	                                                                                     rollout status
//
// Choose RollingUpdate with a partition that is never reached, such as 2147483647, for changes of images: the status is
// right at all times. Choose OnDelete where changes come that need another pod. A DaemonSet has OnDelete alone.
//
// A pod that is older than the annotation kubectl.kubernetes.io/restartedAt of the template is evicted with any
// strategy, or reported with InPlaceOnly: kubectl rollout restart asks for new pods.
//
// Laws:
//   - A pod has the label of a revision only once its containers have run that revision. Before, the annotation
//     kruisekit.dev/pending-revision has the name. The one exception is an update that is taken back: its pod has kept
//     the label.
//   - No revision, and no set, is written.
//   - Parse rejects a field that it does not know.
//
// # Deployments
//
// Deployment returns a pass over the pods of a Deployment whose spec.paused is true, and DeploymentPlan.Writes what
// follows the pass:
//
//	plan := native.Deployment(deployment, observed, rollout)
//	pass, err := workload.Plan(plan.Input)
//	err = clientgo.Run(ctx, client, pass)
//	for _, w := range plan.Writes(pass) {
//		_, err = clientgo.Sender(client)(ctx, w) // stop at the first that fails
//	}
//
// ExampleDeployment is an operator that does so.
//
// Further laws, under a built-in controller whose cache lags:
//   - For a change that is possible in place, pods are in one ReplicaSet.
//   - A ReplicaSet that has pods gets a template when all of its pods run it and are available.
//   - Until then its template has a mark, an annotation: it equals no template to which the user may go back.
//   - The hold ends when the built-in controller has observed the template, or where a change is not possible in place.
package native
