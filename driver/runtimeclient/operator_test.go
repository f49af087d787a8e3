package runtimeclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
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
type siteReconciler struct {
	client.Client       // reads from the cache of the manager
	runtimeclient.Queue // the controller watches it

	live      client.Reader
	pods      *ledger.Ledger[*corev1.Pod]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	repeats   map[types.UID]workload.Repeats
	now       func() time.Time
}

func (r *siteReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods, revisions, err := r.observe(ctx, site) // the cache, and what the reconciler has written since
	data, invalid := revision.Encode(&site.Spec.Template)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	in := workload.Input{
		Owner:     workload.OwnedBy(site, siteKind, map[string]string{"site": site.Name}),
		Scale:     scale.Input{Now: r.now(), Limits: scale.Limits{Replicas: site.Spec.Replicas, MaxUnavailable: 1}},
		Instances: workload.Pods(pods),
		Strategy:  workload.InPlaceIfPossible,
		Repeats:   r.repeats[site.UID],
	}
	history := workload.History{Data: data, Stored: revisions, Current: site.Status.CurrentRevision, Limit: 10}
	if err := in.SetHistory(history); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := workload.Plan(in) // decide: no I/O in here
	if err != nil {
		return reconcile.Result{}, err
	}
	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{ // act: in parallel, with what follows from each answer
		Send:    runtimeclient.Sender(r.Client, r.live),
		Owner:   request.NamespacedName,
		Ledgers: []driver.Recorder{r.pods, r.revisions},
	})
	r.repeats[site.UID] = pass.Repeats()
	return r.Result(request, pass.RequeueAfter(), errors.Join(err, r.report(ctx, site, pass)))
}

// observe reads the pods and the revisions of a site.
func (r *siteReconciler) observe(
	ctx context.Context, site *Site,
) (pods []*corev1.Pod, revisions []*appsv1.ControllerRevision, err error) {
	var podList corev1.PodList
	var revisionList appsv1.ControllerRevisionList
	key, of := client.ObjectKeyFromObject(site), client.MatchingLabels{"site": site.Name}
	if err := errors.Join(
		r.List(ctx, &podList, client.InNamespace(site.Namespace), of),
		r.List(ctx, &revisionList, client.InNamespace(site.Namespace), of),
	); err != nil {
		return nil, nil, err
	}
	pods, _, failed := r.pods.Overlay(ctx, key, revision.ControlledBy(site, podList.Items))
	revisions, _, err = r.revisions.Overlay(ctx, key, revision.ControlledBy(site, revisionList.Items))
	return pods, revisions, errors.Join(failed, err)
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
	patch := client.MergeFrom(old)
	if data, err := patch.Data(site); err != nil || string(data) == "{}" {
		return err
	}
	return r.Status().Patch(ctx, site, patch)
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

// The operator creates pods, and a new image reaches them one at a time, in place. Its revisions are stored and
// promoted.
func TestOperator(t *testing.T) {
	m := objects.NewModel(t, &SiteList{}, func(s *runtime.Scheme) error {
		s.AddKnownTypes(siteKind.GroupVersion(), &Site{}, &SiteList{})
		metav1.AddToGroupVersion(s, siteKind.GroupVersion())
		return nil
	})
	m.Reconciler = &siteReconciler{
		Client: m.Server, live: m.Server, now: m.Now, repeats: map[types.UID]workload.Repeats{},
		pods:      ledger.New[*corev1.Pod](m.Server, m.Now),
		revisions: ledger.New[*appsv1.ControllerRevision](m.Server, m.Now),
	}
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	site.SetGroupVersionKind(siteKind)
	site.Spec.Replicas = 3
	site.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	m.Put(site)
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
