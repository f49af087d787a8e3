package workload_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// site is an operator of groups, or of pods with slots, over objects in memory. Its resource is the StatefulSet of
// Kubernetes, of which each replica may be a group of a leader and workers.
type site struct {
	*testing.T
	*objects.Model

	mode mode
	// inOrder fills slots one after the other, and updates one slot at a time.
	inOrder  bool
	strategy workload.Strategy
	grace    int32
	hooks    *kruise.Lifecycle
	// group is how the pods of a group go together, and layout its members; nil for a leader and two workers. numbered
	// gives groups slots.
	group    workload.Group
	layout   []workload.Member
	numbered bool
	// surge is how many groups there may be beyond the replicas.
	surge    int32
	policy   inplace.Policy
	restarts workload.Restarts
	set      *appsv1.StatefulSet
	// random orders the writes of a pass.
	random *rand.Rand

	// client is that of the living process, which reads what views show and remembers repeats.
	client  client.Client
	reads   *apiserver.Server
	views   []*apiserver.Server
	lag     int
	repeats workload.Repeats
	written int64
	created int
	death   *death
	rules   *siteRules
}

const (
	groupLabel, memberLabel = "example.com/group", "example.com/member"
	// members of a group, of which the first one is the leader.
	members = 3
)

func newSite(t *testing.T, m mode, seed uint64, changes ...func(*site)) *site {
	t.Helper()
	s := &site{T: t, Model: objects.NewModel(t, &appsv1.StatefulSetList{}, appsv1.AddToScheme), mode: m}
	s.random = rand.New(rand.NewPCG(seed, 3))
	s.set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s.set.Spec.Replicas = ptr.To[int32](3)
	s.set.Spec.Template = *template("web:1")
	s.set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}
	for _, change := range changes {
		change(s)
	}
	s.rules = newSiteRules(s)
	s.Server.OnChange(s.rules.changed)
	if err := s.Server.Create(t.Context(), s.set); err != nil {
		t.Fatal(err)
	}
	s.Reconciler = s
	s.start(s.Server)
	return s
}

// start starts another process, without a memory, with a client for its writes.
func (s *site) start(c client.Client) {
	s.client, s.reads, s.repeats, s.written = c, nil, workload.Repeats{}, 0
}

func (s *site) size() int32 {
	switch {
	case s.layout != nil:
		return int32(len(s.layout))
	case s.mode == groups:
		return members
	}
	return 1
}

// observe brings what the process reads closer to what the server holds.
func (s *site) observe() {
	if s.lag == 0 || s.reads == nil {
		s.reads = s.Server.Snapshot()
		return
	}
	s.views = append(s.views, s.Server.Snapshot())
	s.views = s.views[max(0, len(s.views)-3*s.lag):]
	for _, v := range s.views {
		if v.Version() > s.reads.Version() && s.random.IntN(s.lag) == 0 {
			s.reads = v
			return
		}
	}
}

// Reconcile makes a pass.
func (s *site) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	s.observe()
	if s.reads.Version() < s.written {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // what it has written is not seen yet
	}
	set, pods, have := read(s.T, s.reads)
	data, err := revision.Encode(&set.Spec.Template)
	if s.mode == groups {
		all := map[string]*corev1.PodTemplateSpec{}
		for _, m := range append([]workload.Member{{Role: "leader"}, {Role: "worker"}}, s.layout...) {
			if s.layout == nil || m.Name != "" {
				all[m.Role] = templateOf(set, m.Role)
			}
		}
		data, err = revision.EncodeRoles(all)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r := revision.Resolve(revision.Input{Owner: set.Name, Data: data, Have: have, Current: set.Status.CurrentRevision})
	store, err := revision.Store(revision.Wanted{Resolution: r, Namespace: set.Namespace})
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, w := range store.Next() {
		if _, err := s.send(ctx, w); err != nil {
			return ctrl.Result{}, err
		}
	}
	newest := store.Newest()
	in := s.planned(set, pods)
	in.SetRevisions(r, newest, have)
	s.rules.begin(set, pods, newest.Name)
	defer func() { s.rules.pass = nil }()
	pass, err := workload.Plan(*in)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.rules.plan, s.rules.going, s.rules.disrupts = pass, map[string]bool{}, pass.Disrupts()
	s.rules.planned(pass.Result())
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		s.sendAll(ctx, pass, writes)
	}
	s.repeats, s.restarts = pass.Repeats(), pass.Restarts()
	if current, promoted := pass.Promote(set.Status.CurrentRevision); promoted {
		before := set.DeepCopy()
		set.Status.CurrentRevision = current
		err = s.client.Status().Patch(ctx, set, client.MergeFrom(before))
		s.written = s.Server.Version()
	}
	s.rules.unchanged(pods)
	return ctrl.Result{RequeueAfter: pass.RequeueAfter()}, errors.Join(workload.Err(pass.Failures()), err)
}

// sendAll sends writes, and those that follow from their answers, in an order by chance. Creations keep theirs: what
// is to have the old revision comes first.
func (s *site) sendAll(ctx context.Context, pass *workload.Pass, writes []*workload.Write) {
	for len(writes) > 0 {
		k := 0
		if writes[0].Verb != write.Create {
			k = s.random.IntN(len(writes))
		}
		w := writes[k]
		s.rules.sends(w)
		object, err := s.send(ctx, &w.Write)
		writes = append(slices.Delete(slices.Clone(writes), k, k+1), pass.Answer(s.Now(), w, object, err)...)
	}
}

func (s *site) send(ctx context.Context, w *write.Write) (write.Object, error) {
	object, err := runtimeclient.Send(ctx, s.client, w)
	s.written = s.Server.Version()
	s.rules.refused = s.rules.refused || err != nil && w.Verb == write.Create
	return object, err
}

// read returns the objects of a server.
func read(t *testing.T, from *apiserver.Server) (*appsv1.StatefulSet, []*corev1.Pod, []*appsv1.ControllerRevision) {
	t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	var pods corev1.PodList
	var revisions appsv1.ControllerRevisionList
	err := errors.Join(
		from.Get(t.Context(), client.ObjectKeyFromObject(set), set),
		from.List(t.Context(), &pods), from.List(t.Context(), &revisions),
	)
	if err != nil {
		t.Fatal(err)
	}
	var all []*corev1.Pod
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	var have []*appsv1.ControllerRevision
	for i := range revisions.Items {
		have = append(have, &revisions.Items[i])
	}
	return set, all, have
}

// planned is the set as package workload plans it.
func (s *site) planned(set *appsv1.StatefulSet, pods []*corev1.Pod) *workload.Input {
	in := &workload.Input{
		Scale:     scale.Input{Now: s.Now(), Limits: limitsOf(set), Hooks: s.hooks},
		Instances: workload.Groups(pods, groupLabel, memberLabel),
		Strategy:  cmp.Or(s.strategy, workload.InPlaceIfPossible), GraceSeconds: s.grace, Repeats: s.repeats, NeedsNode: true,
	}
	if s.mode == groups {
		in.Members, in.Group, in.Restarts, in.Policy = s.layout, s.group, s.restarts, s.policy
		for n := 0; n < members && s.layout == nil; n++ {
			role := "worker"
			if n == 0 {
				role = "leader"
			}
			in.Members = append(in.Members, workload.Member{Name: strconv.Itoa(n), Role: role})
		}
	}
	if s.mode == slots || s.numbered {
		in.Scale.Slots, in.Scale.InOrder, in.Scale.UnavailableFirst = []string{}, s.inOrder, true
		for n := range *set.Spec.Replicas {
			in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", set.Name, n))
		}
		for n := range s.surge {
			in.Scale.SurgeSlots = append(in.Scale.SurgeSlots, fmt.Sprintf("%s-%d", set.Name, *set.Spec.Replicas+n))
		}
		in.Scale.Limits.MaxSurge = s.surge
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, _ error) {
		for _, c := range creations {
			template, err := in.Template(c)
			if err != nil {
				return nil, err
			}
			all = append(all, []write.Object{s.build(c, template)})
		}
		return all, nil
	}
	return in
}

func (s *site) build(c workload.Creation, template *corev1.PodTemplateSpec) *corev1.Pod {
	instance, name := c.Instance+c.Slot, c.Slot
	switch {
	case s.numbered:
		name = instance + "-" + c.Member.Name
	case c.Instance != "": // a worker
		name = c.Instance + "-" + c.Member.Name
	case c.Slot == "":
		instance = "web-" + string(rune('a'+s.created%26)) + strings.Repeat("x", s.created/26)
		name = instance + "-0"
		s.created++
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Namespace, pod.Name = "shop", name
	pod.Labels[groupLabel], pod.Labels[memberLabel] = instance, c.Member.Name
	pod.Labels[kruise.PodRevisionLabelKey] = c.Revision
	pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingNormal)
	inplace.EnsureReadinessGate(&pod.Spec, nil)
	return pod
}

// templateOf is the template of a role. An annotation of the set keeps a role as it is, another one gives the role an
// environment of its own, which only new pods take.
func templateOf(set *appsv1.StatefulSet, role string) *corev1.PodTemplateSpec {
	template := set.Spec.Template.DeepCopy()
	c := &template.Spec.Containers[0]
	if image := set.Annotations[role+".image"]; image != "" {
		c.Image = image
	}
	if value := set.Annotations[role+".env"]; value != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: "ROLE", Value: value})
	}
	return template
}

// limitsOf are the bounds of a set. One replica may be unavailable where the set does not ask for another number.
func limitsOf(set *appsv1.StatefulSet) scale.Limits {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	n := *set.Spec.Replicas
	l := scale.Limits{Replicas: n, MaxUnavailable: 1, Partition: min(*rolling.Partition, n)}
	if rolling.MaxUnavailable != nil {
		l.MaxUnavailable = rolling.MaxUnavailable.IntVal
	}
	return l
}

// change has the user change the set.
func (s *site) change(changes ...func(*appsv1.StatefulSet)) {
	s.Helper()
	objects.Change(s.Model, s.set, func(set *appsv1.StatefulSet) {
		for _, change := range changes {
			change(set)
		}
	})
}

// unsettled is what the set asks for and does not have; nil for nothing.
func (s *site) unsettled() error {
	s.Helper()
	set, pods, _ := read(s.T, s.Server)
	l := limitsOf(set)
	if n := int32(len(pods)); n != l.Replicas*s.size() {
		return fmt.Errorf("%d pods instead of %d", n, l.Replicas*s.size())
	}
	updated, revisions := int32(0), map[string]bool{}
	for _, pod := range pods {
		revisions[pod.Labels[appsv1.ControllerRevisionHashLabelKey]] = true
		if !inTraffic(pod) || pod.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStateNormal) {
			return fmt.Errorf("%s does not serve", pod.Name)
		}
		c, want := pod.Spec.Containers[0], templateOf(set, s.roleOf(pod)).Spec.Containers[0]
		if c.Image == want.Image && len(c.Env) == len(want.Env) {
			updated++
		}
	}
	if least := (l.Replicas - l.Partition) * s.size(); updated < least {
		return fmt.Errorf("%d pods are updated, want %d", updated, least)
	}
	if l.Partition == 0 && len(revisions) > 1 { // revisions may differ in what the images do not show
		return fmt.Errorf("pods have %d revisions", len(revisions))
	}
	return nil
}

// roleOf is the role of a pod.
func (s *site) roleOf(pod *corev1.Pod) string {
	for _, m := range s.layout {
		if m.Name == pod.Labels[memberLabel] {
			return m.Role
		}
	}
	return ""
}

// picture is the pods in a few characters each: the name and the release of the image; a dash for not ready, a star
// for terminating.
func (s *site) picture() string {
	s.Helper()
	var all []string
	for _, pod := range s.Pods() {
		text := strings.TrimPrefix(pod.Name, "web-") + ":" + strings.TrimPrefix(pod.Spec.Containers[0].Image, "web:")
		switch {
		case pod.DeletionTimestamp != nil:
			text += "*"
		case !inTraffic(pod):
			text += "-"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
