// Command roles is an operator of services that have several roles, as the router, the prefill and the decode of a
// model. Each role has a template, a number of pods, and a bound of its own. A change of one role leaves the pods of
// the others in traffic.
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
	return ctrl.NewControllerManagedBy(mgr).For(&Inference{}).Owns(&corev1.Pod{}).WatchesRawSource(&r.Queue).Complete(r)
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

// Reconcile makes a pass over the pods of a service.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service, key := &Inference{}, request.NamespacedName
	if err := r.Get(ctx, key, service); err != nil || service.DeletionTimestamp != nil {
		delete(r.repeats, key)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	of := client.MatchingLabels{serviceLabel: service.Name}
	pods, again, err := r.pods.List(ctx, r, service, &corev1.PodList{}, of)
	revisions, _, failed := r.revisions.List(ctx, r, service, &appsv1.ControllerRevisionList{}, of)
	in, invalid := service.input(pods, revisions)
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
	return r.Result(request, cmp.Or(pass.RequeueAfter(), again), errors.Join(err, r.report(ctx, service, pass)))
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, service *Inference, pass *workload.Pass) error {
	old := service.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	service.Status.CurrentRevision, _ = pass.Promote(service.Status.CurrentRevision)
	service.Status.Ready, service.Status.Message = pass.Counts().Ready, headline.Text
	if equality.Semantic.DeepEqual(old.Status, service.Status) {
		return nil
	}
	return r.Status().Patch(ctx, service, client.MergeFrom(old))
}

// Pods and revisions carry their service in a label. Pods also carry their group, of which a service has one, their
// place in it, and their role.
const (
	serviceLabel, roleLabel = "example.com/inference", "example.com/role"
	groupLabel, memberLabel = "example.com/group", "example.com/member"
)

// input describes the service to package workload: one group, of which each pod is recreated by itself.
func (s *Inference) input(pods []*corev1.Pod, revisions []*appsv1.ControllerRevision) (in workload.Input, err error) {
	in = workload.Input{
		Owner:     workload.OwnedBy(s, kind(), map[string]string{serviceLabel: s.Name}),
		Scale:     scale.Input{Slots: []string{s.Name}, Limits: scale.Limits{MaxUnavailable: 1}},
		Instances: workload.Groups(pods, groupLabel, memberLabel),
		Group: workload.Group{
			Label: groupLabel, MemberLabel: memberLabel,
			Traffic: workload.TrafficEach, Blocked: workload.BlockedPod,
			Restart: workload.Restart{Policy: workload.RestartPod},
		},
		Strategy: workload.InPlaceIfPossible,
	}
	templates := map[string]*corev1.PodTemplateSpec{}
	for k := range s.Spec.Roles {
		r := &s.Spec.Roles[k]
		templates[r.Name] = &r.Template
		in.Group.Roles = append(in.Group.Roles, workload.Role{Name: r.Name, MaxUnavailable: &r.MaxUnavailable})
		for i := range r.Replicas {
			in.Members = append(in.Members, workload.Member{Name: fmt.Sprintf("%s-%d", r.Name, i), Role: r.Name})
		}
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			pod, err := in.Pod(c)
			if err != nil {
				return nil, err
			}
			pod.Name = s.Name + "-" + c.Member.Name // also where another role becomes the first one
			pod.Labels[roleLabel] = c.Member.Role
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	data, err := revision.EncodeRoles(templates)
	if err != nil {
		return in, err
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: revisions, Current: s.Status.CurrentRevision, Limit: 10,
	})
}
