package runtimeclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/workload"
)

// Site is the resource of an operator.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas int32                  `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string      `json:"currentRevision,omitempty"`
		UpdatedPods     int32       `json:"updatedPods"`
		Waits           []string    `json:"waits,omitempty"`
		Observed        metav1.Time `json:"-"`
	} `json:"status"`
}

// siteReconciler is a reconciler on a manager of controller-runtime.
type siteReconciler struct{ *runtimeclient.Workloads }

func (r *siteReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return r.Gone(request, err)
	}
	of := client.MatchingLabels{"site": site.Name}
	seen, err := r.Observe(ctx, site, of) // the cache, and what the reconciler has written since
	data, invalid := revision.Encode(&site.Spec.Template)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	in := workload.Input{
		Owner:     workload.OwnedBy(site, siteKind, of),
		Scale:     scale.Input{Limits: scale.Limits{Replicas: site.Spec.Replicas, MaxUnavailable: 1}},
		Instances: workload.Pods(seen.Pods),
		Strategy:  workload.InPlaceIfPossible,
	}
	history := workload.History{Data: data, Stored: seen.Revisions, Current: site.Status.CurrentRevision, Limit: 10}
	if err := in.SetHistory(history); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, site, in) // decide without I/O, then act in parallel, with what follows from each answer
	if pass == nil {
		return reconcile.Result{}, err
	}
	return r.Result(request, pass, errors.Join(err, r.report(ctx, site, pass)))
}

// report writes the status.
func (r *siteReconciler) report(ctx context.Context, site *Site, pass *workload.Pass) error {
	old := site.DeepCopy()
	site.Status.CurrentRevision, _ = pass.Promote(site.Status.CurrentRevision)
	site.Status.UpdatedPods = pass.Counts().UpdatedAvailable
	site.Status.Waits = nil
	for _, n := range pass.Notes() {
		site.Status.Waits = append(site.Status.Waits, n.String())
	}
	return r.PatchStatus(ctx, old, site)
}

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

// DeepCopy returns a copy, as generated code does.
func (s *Site) DeepCopy() *Site {
	data, err := json.Marshal(s)
	c := &Site{}
	if err := errors.Join(err, json.Unmarshal(data, c)); err != nil {
		panic(err)
	}
	return c
}

// DeepCopyObject returns a copy.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// SiteList is a list of sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Site `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *SiteList) DeepCopyObject() runtime.Object {
	c := &SiteList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

func addSites(s *runtime.Scheme) error {
	s.AddKnownTypes(siteKind.GroupVersion(), &Site{}, &SiteList{})
	metav1.AddToGroupVersion(s, siteKind.GroupVersion())
	return nil
}

// The operator creates pods, and a new image reaches them one at a time, in place. Its revisions are stored and
// promoted.
func TestOperator(t *testing.T) {
	w := newSites(t)
	m, site := w.Model, w.site
	m.Reconciler = w.r
	rolledOut := func(image string) func() error {
		return func() error {
			m.Look(site)
			if n := site.Status.UpdatedPods; n != 3 || len(site.Status.Waits) > 0 {
				return fmt.Errorf("%d pods are updated, %q", n, site.Status.Waits)
			}
			for _, pod := range m.Pods() {
				if got := pod.Spec.Containers[0].Image; got != image {
					return fmt.Errorf("pod %s has %s", pod.Name, got)
				}
			}
			return nil
		}
	}
	m.Eventually(rolledOut("web:1"))
	before, first := map[types.UID]bool{}, site.Status.CurrentRevision
	for _, pod := range m.Pods() {
		before[pod.UID] = true
	}
	objects.Change(m, site, func(s *Site) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	m.Eventually(rolledOut("web:2"))
	for _, pod := range m.Pods() {
		if !before[pod.UID] || pod.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("pod %s is another one, or restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
		}
	}
	if site.Status.CurrentRevision == first || len(before) != 3 {
		t.Errorf("%d pods, at the revision %s, after %s", len(before), site.Status.CurrentRevision, first)
	}
}
