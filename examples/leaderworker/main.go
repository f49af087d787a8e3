// Command leaderworker is an operator of groups, each of a leader and workers, as a model has that needs several nodes.
// The leader is created and updated first, and the workers find it by the environment variable LEADER_ADDRESS. A group
// leaves traffic as a whole, and a pod that fails has its group recreated after a back-off.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	return ctrl.NewControllerManagedBy(mgr).For(&LeaderWorker{}).Owns(&corev1.Pod{}).WatchesRawSource(&r.Queue).Complete(r)
}

type reconciler struct{ *runtimeclient.Workloads }

func newReconciler(c client.Client, live client.Reader, now func() time.Time) *reconciler {
	return &reconciler{runtimeclient.NewWorkloads(c, live, runtimeclient.WorkloadsOptions{Now: now})}
}

// Reconcile makes a pass over the pods of a LeaderWorker.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &LeaderWorker{}
	if err := r.Get(ctx, request.NamespacedName, set); err != nil || set.DeletionTimestamp != nil {
		return r.Gone(request, err)
	}
	seen, err := r.Observe(ctx, set, client.MatchingLabels{setLabel: set.Name})
	in, invalid := set.input(seen)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, set, in)
	if pass == nil {
		return reconcile.Result{}, err
	}
	return r.Result(request, pass, errors.Join(err, r.report(ctx, set, pass)))
}

// report writes the status. The restarts follow from those that were read: the write fails where these have changed.
func (r *reconciler) report(ctx context.Context, set *LeaderWorker, pass *workload.Pass) error {
	old := set.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	set.Status.CurrentRevision, _ = pass.Promote(set.Status.CurrentRevision)
	set.Status.Restarts, set.Status.Message = pass.Restarts(), headline.Text
	return r.PatchStatus(ctx, old, set, client.MergeFromWithOptimisticLock{})
}

// Pods and revisions carry their LeaderWorker in a label. Pods also carry their group, and their place in it.
const setLabel, groupLabel, memberLabel = "example.com/leaderworker", "example.com/group", "example.com/member"

// input describes the groups to package workload.
func (s *LeaderWorker) input(seen runtimeclient.Observed) (in workload.Input, err error) {
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
		Instances: workload.Groups(seen.Pods, groupLabel, memberLabel),
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
		Data: data, Stored: seen.Revisions, Current: s.Status.CurrentRevision, Limit: 10,
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
