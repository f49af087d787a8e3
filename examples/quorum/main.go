// Command quorum is an operator of databases whose members elect a leader. Each member has a claim that outlasts its
// pod. An update leaves a majority of the members available at any time, and reaches the elected leader last.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

func main() {
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		err = add(mgr)
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// add adds the operator to a manager.
func add(mgr ctrl.Manager) error {
	if err := addToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), nil)
	return ctrl.NewControllerManagedBy(mgr).For(&Database{}).Owns(&corev1.Pod{}).Owns(&corev1.PersistentVolumeClaim{}).
		WatchesRawSource(&r.Queue).Complete(r)
}

type reconciler struct{ *runtimeclient.Workloads }

func newReconciler(c client.Client, live client.Reader, now func() time.Time) *reconciler {
	return &reconciler{runtimeclient.NewWorkloads(c, live, runtimeclient.WorkloadsOptions{Claims: true, Now: now})}
}

// Reconcile makes a pass over the members of a database.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	db := &Database{}
	if err := r.Get(ctx, request.NamespacedName, db); err != nil || db.DeletionTimestamp != nil {
		return r.Gone(request, err)
	}
	seen, err := r.Observe(ctx, db, client.MatchingLabels{databaseLabel: db.Name})
	in, invalid := db.input(seen)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, db, in)
	if pass == nil {
		return reconcile.Result{}, err
	}
	return r.Result(request, pass, errors.Join(err, r.report(ctx, db, pass)))
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, db *Database, pass *workload.Pass) error {
	old := db.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	db.Status.CurrentRevision, _ = pass.Promote(db.Status.CurrentRevision)
	db.Status.Ready, db.Status.Message = pass.Counts().Ready, headline.Text
	return r.PatchStatus(ctx, old, db)
}

// Pods, claims and revisions carry their database in a label. Pods also carry their group, of which a database has one,
// and their place in it. The database itself labels the pod of its elected leader.
const (
	databaseLabel, groupLabel = "example.com/database", "example.com/group"
	memberLabel, electedLabel = "example.com/member", "example.com/elected"
)

// input describes the database to package workload: one group, of which each member is recreated by itself.
func (d *Database) input(seen runtimeclient.Observed) (in workload.Input, err error) {
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"member": &d.Spec.Template})
	if err != nil {
		return in, err
	}
	minority := scale.FailureTolerance(d.Spec.Members)
	in = workload.Input{
		Owner:     workload.OwnedBy(d, kind(), map[string]string{databaseLabel: d.Name}),
		Scale:     scale.Input{Slots: []string{d.Name}, Limits: scale.Limits{MaxUnavailable: 1}},
		Instances: workload.Groups(seen.Pods, groupLabel, memberLabel),
		Group: workload.Group{
			Label: groupLabel, MemberLabel: memberLabel,
			Traffic: workload.TrafficEach, Blocked: workload.BlockedPod,
			Restart: workload.Restart{Policy: workload.RestartPod},
			Roles: []workload.Role{{
				Name: "member", MaxUnavailable: &minority,
				Last: func(pod *corev1.Pod) bool { return pod.Labels[electedLabel] == "true" },
			}},
		},
		Strategy: workload.InPlaceIfPossible,
	}
	for i := range d.Spec.Members {
		in.Members = append(in.Members, workload.Member{Name: fmt.Sprint(i), Role: "member"})
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			pod, err := in.Pod(c)
			if err != nil {
				return nil, err
			}
			all = append(all, d.withClaim(&in, pod, seen.Claims))
		}
		return all, nil
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: seen.Revisions, Current: d.Status.CurrentRevision, Limit: 10,
	})
}

// withClaim returns a pod and its claim, the pod alone where the claim exists, and nothing while the claim terminates.
// The garbage collector deletes the claim with the database.
func (d *Database) withClaim(
	in *workload.Input, pod *corev1.Pod, claims []*corev1.PersistentVolumeClaim,
) []write.Object {
	pod.Name = d.Name + "-" + pod.Labels[memberLabel]
	claim := &corev1.PersistentVolumeClaim{Spec: *d.Spec.Claim.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: "data-" + pod.Name, Labels: in.Owner.Labels,
		OwnerReferences: []metav1.OwnerReference{in.Owner.Reference},
	}}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}})
	named := func(c *corev1.PersistentVolumeClaim) bool { return c.Name == claim.Name }
	switch at := slices.IndexFunc(claims, named); {
	case at < 0:
		return []write.Object{claim, pod}
	case claims[at].DeletionTimestamp != nil:
		return nil
	}
	return []write.Object{pod}
}
