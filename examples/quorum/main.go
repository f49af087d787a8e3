// Command quorum is an operator of databases whose members elect a leader. Each member has a claim that outlasts its
// pod. An update leaves a majority of the members available at any time, and comes to the elected leader last.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
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
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), time.Now)
	return ctrl.NewControllerManagedBy(mgr).For(&Database{}).Owns(&corev1.Pod{}).Owns(&corev1.PersistentVolumeClaim{}).
		WatchesRawSource(&r.Queue).Complete(r)
}

type reconciler struct {
	client.Client       // reads from the cache of the manager
	runtimeclient.Queue // the controller watches it

	live      client.Reader
	pods      *ledger.Ledger[*corev1.Pod]
	claims    *ledger.Ledger[*corev1.PersistentVolumeClaim]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	repeats   map[types.NamespacedName]workload.Repeats
	now       func() time.Time
}

func newReconciler(c client.Client, live client.Reader, now func() time.Time) *reconciler {
	return &reconciler{
		Client: c, live: live, now: now, repeats: map[types.NamespacedName]workload.Repeats{},
		pods: ledger.New[*corev1.Pod](live, now), revisions: ledger.New[*appsv1.ControllerRevision](live, now),
		claims: ledger.New[*corev1.PersistentVolumeClaim](live, now),
	}
}

// Reconcile makes a pass over the members of a database.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	db, key := &Database{}, request.NamespacedName
	if err := r.Get(ctx, key, db); err != nil || db.DeletionTimestamp != nil {
		delete(r.repeats, key)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	of := client.MatchingLabels{databaseLabel: db.Name}
	pods, again, err := r.pods.List(ctx, r, db, &corev1.PodList{}, of)
	claims, _, unknown := r.claims.List(ctx, r, db, &corev1.PersistentVolumeClaimList{}, of)
	revisions, _, failed := r.revisions.List(ctx, r, db, &appsv1.ControllerRevisionList{}, of)
	in, invalid := db.input(pods, claims, revisions)
	if err := errors.Join(err, unknown, failed, invalid); err != nil {
		return reconcile.Result{}, err
	}
	in.Scale.Now, in.Repeats = r.now(), r.repeats[key]
	pass, err := workload.Plan(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(r.Client, r.live), Owner: key, Now: r.now,
		Ledgers: []driver.Recorder{r.pods, r.claims, r.revisions},
	})
	r.repeats[key] = pass.Repeats()
	return r.Result(request, cmp.Or(pass.RequeueAfter(), again), errors.Join(err, r.report(ctx, db, pass)))
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, db *Database, pass *workload.Pass) error {
	old := db.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	db.Status.CurrentRevision, _ = pass.Promote(db.Status.CurrentRevision)
	db.Status.Ready, db.Status.Message = pass.Counts().Ready, headline.Text
	if equality.Semantic.DeepEqual(old.Status, db.Status) {
		return nil
	}
	return r.Status().Patch(ctx, db, client.MergeFrom(old))
}

// Pods, claims and revisions carry their database in a label. Pods also carry their group, of which a database has one,
// and their place in it. The database itself labels the pod of its elected leader.
const (
	databaseLabel, groupLabel = "example.com/database", "example.com/group"
	memberLabel, electedLabel = "example.com/member", "example.com/elected"
)

// input describes the database to package workload: one group, of which each member is recreated by itself.
func (d *Database) input(
	pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, revisions []*appsv1.ControllerRevision,
) (in workload.Input, err error) {
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"member": &d.Spec.Template})
	if err != nil {
		return in, err
	}
	minority := scale.FailureTolerance(d.Spec.Members)
	in = workload.Input{
		Owner:     workload.OwnedBy(d, kind(), map[string]string{databaseLabel: d.Name}),
		Scale:     scale.Input{Slots: []string{d.Name}, Limits: scale.Limits{MaxUnavailable: 1}},
		Instances: workload.Groups(pods, groupLabel, memberLabel),
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
			all = append(all, d.withClaim(&in, pod, claims))
		}
		return all, nil
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: revisions, Current: d.Status.CurrentRevision, Limit: 10,
	})
}

// withClaim returns a pod and its claim, the pod alone where the claim exists, and nothing while the claim terminates.
// The claim goes with the database.
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
