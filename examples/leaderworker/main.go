// Command leaderworker is an operator of groups, each of a leader and workers, as a model has that needs several nodes.
// The leader is created and updated first, and the workers find it by the environment variable LEADER_ADDRESS. A group
// leaves traffic as a whole, and a pod that fails has its group recreated after a back-off.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	return ctrl.NewControllerManagedBy(mgr).For(&LeaderWorker{}).Owns(&corev1.Pod{}).WatchesRawSource(&r.Queue).Complete(r)
}

type reconciler struct {
	client.Client       // reads from the cache of the manager
	runtimeclient.Queue // the controller watches it

	live      client.Reader
	pods      *ledger.Ledger[*corev1.Pod]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	repeats   map[types.NamespacedName]workload.Repeats
	now       func() time.Time
}

func newReconciler(c client.Client, live client.Reader, now func() time.Time) *reconciler {
	return &reconciler{
		Client: c, live: live, now: now, repeats: map[types.NamespacedName]workload.Repeats{},
		pods: ledger.New[*corev1.Pod](live, now), revisions: ledger.New[*appsv1.ControllerRevision](live, now),
	}
}

// Reconcile makes a pass over the pods of a LeaderWorker.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set, key := &LeaderWorker{}, request.NamespacedName
	if err := r.Get(ctx, key, set); err != nil || set.DeletionTimestamp != nil {
		delete(r.repeats, key)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	of := client.MatchingLabels{setLabel: set.Name}
	pods, again, err := r.pods.List(ctx, r, set, &corev1.PodList{}, of)
	revisions, _, failed := r.revisions.List(ctx, r, set, &appsv1.ControllerRevisionList{}, of)
	in, invalid := set.input(pods, revisions)
	if err := errors.Join(err, failed, invalid); err != nil {
		return reconcile.Result{}, err
	}
	in.Scale.Now, in.Repeats = r.now(), r.repeats[key]
	pass, err := workload.Plan(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(r.Client, r.live), Owner: key, Now: r.now,
		Ledgers: []driver.Recorder{r.pods, r.revisions},
	})
	r.repeats[key] = pass.Repeats()
	return r.Result(request, cmp.Or(pass.RequeueAfter(), again), errors.Join(err, r.report(ctx, set, pass)))
}

// report writes the status. The restarts follow from those that were read: the write fails where these have changed.
func (r *reconciler) report(ctx context.Context, set *LeaderWorker, pass *workload.Pass) error {
	old := set.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	set.Status.CurrentRevision, _ = pass.Promote(set.Status.CurrentRevision)
	set.Status.Restarts, set.Status.Message = pass.Restarts(), headline.Text
	if equality.Semantic.DeepEqual(old.Status, set.Status) {
		return nil
	}
	return r.Status().Patch(ctx, set, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
}

// Pods and revisions carry their LeaderWorker in a label. Pods also carry their group, and their place in it.
const setLabel, groupLabel, memberLabel = "example.com/leaderworker", "example.com/group", "example.com/member"

// input describes the groups to package workload.
func (s *LeaderWorker) input(
	pods []*corev1.Pod, revisions []*appsv1.ControllerRevision,
) (in workload.Input, err error) {
	templates := map[string]*corev1.PodTemplateSpec{"leader": &s.Spec.Leader, "worker": &s.Spec.Worker}
	data, err := revision.EncodeRoles(templates)
	if err != nil {
		return in, err
	}
	in = workload.Input{
		Owner: workload.OwnedBy(s, kind(), map[string]string{setLabel: s.Name}),
		Scale: scale.Input{
			Slots: make([]string, s.Spec.Replicas), Limits: scale.Limits{MaxUnavailable: s.Spec.MaxUnavailable},
		},
		Instances: workload.Groups(pods, groupLabel, memberLabel),
		Members:   []workload.Member{{Name: "leader", Role: "leader"}},
		Group: workload.Group{
			Label: groupLabel, MemberLabel: memberLabel,
			Restart: workload.Restart{
				Policy: workload.RestartGroup, BackOff: 10 * time.Second, MaxBackOff: 5 * time.Minute, Failed: crashes,
			},
		},
		Restarts: s.Status.Restarts,
		Strategy: workload.InPlaceIfPossible,
	}
	for i := range in.Scale.Slots {
		in.Scale.Slots[i] = fmt.Sprintf("%s-%d", s.Name, i)
	}
	for i := int32(1); i < s.Spec.Size; i++ {
		in.Members = append(in.Members, workload.Member{Name: fmt.Sprintf("w%d", i), Role: "worker"})
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			pod, err := in.Pod(c)
			if err != nil {
				return nil, err
			}
			s.connect(pod)
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: revisions, Current: s.Status.CurrentRevision, Limit: 10,
	})
}

// crashes reports whether a container of a pod crashes again and again. A pod that has finished has failed anyway.
func crashes(pod *corev1.Pod) (why string, failed bool) {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			return fmt.Sprintf("container %s crashes", s.Name), true
		}
	}
	return "", false
}

// connect tells a pod the address of its leader, which has the name of the group. The address is that of a pod behind a
// headless Service with the name of the LeaderWorker.
func (s *LeaderWorker) connect(pod *corev1.Pod) {
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, s.Name
	address := fmt.Sprintf("%s.%s.%s", pod.Labels[groupLabel], s.Name, s.Namespace)
	for i := range pod.Spec.Containers {
		env := &pod.Spec.Containers[i].Env
		*env = append([]corev1.EnvVar{{Name: "LEADER_ADDRESS", Value: address}}, *env...)
	}
}
