// Command roles is an operator of services that have several roles, as the router, the prefill and the decode of a
// model. Each role has a template, a number of pods, and a bound of its own. A change of one role leaves the pods of
// the others in traffic.
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
	return ctrl.NewControllerManagedBy(mgr).For(&Inference{}).Owns(&corev1.Pod{}).WatchesRawSource(&r.Queue).Complete(r)
}

type reconciler struct{ *runtimeclient.Workloads }

func newReconciler(c client.Client, live client.Reader, now func() time.Time) *reconciler {
	return &reconciler{runtimeclient.NewWorkloads(c, live, runtimeclient.WorkloadsOptions{Now: now})}
}

// Reconcile makes a pass over the pods of a service.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service := &Inference{}
	if err := r.Get(ctx, request.NamespacedName, service); err != nil || service.DeletionTimestamp != nil {
		return r.Gone(request, err)
	}
	seen, err := r.Observe(ctx, service, client.MatchingLabels{serviceLabel: service.Name})
	in, invalid := service.input(seen)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, service, in)
	if pass == nil {
		return reconcile.Result{}, err
	}
	return r.Result(request, pass, errors.Join(err, r.report(ctx, service, pass)))
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, service *Inference, pass *workload.Pass) error {
	old := service.DeepCopy()
	headline, _ := note.Headline(pass.Notes())
	service.Status.CurrentRevision, _ = pass.Promote(service.Status.CurrentRevision)
	service.Status.Ready, service.Status.Message = pass.Counts().Ready, headline.Text
	return r.PatchStatus(ctx, old, service)
}

// Pods and revisions carry their service in a label. Pods also carry their group, of which a service has one, their
// place in it, and their role.
const (
	serviceLabel, roleLabel = "example.com/inference", "example.com/role"
	groupLabel, memberLabel = "example.com/group", "example.com/member"
)

// input describes the service to package workload: one group, of which each pod is recreated by itself.
func (s *Inference) input(seen runtimeclient.Observed) (in workload.Input, err error) {
	in = workload.Input{
		Owner:     workload.OwnedBy(s, kind(), map[string]string{serviceLabel: s.Name}),
		Scale:     scale.Input{Slots: []string{s.Name}, Limits: scale.Limits{MaxUnavailable: 1}},
		Instances: workload.Groups(seen.Pods, groupLabel, memberLabel),
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
		Data: data, Stored: seen.Revisions, Current: s.Status.CurrentRevision, Limit: 10,
	})
}
