package native_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// planned returns the first writes of the pods of a pass, the pods that cannot change in place, and the codes of what
// is noted.
func planned(t *testing.T, in workload.Input, codes ...string) (got []string) {
	t.Helper()
	pass, err := workload.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for _, w := range writes {
			action := string(w.Action)
			if w.Verb == write.Evict {
				action = "Evict"
			}
			got = append(got, action+" "+w.Object.GetName())
		}
	}
	for _, f := range pass.Failures() {
		if f.NotInPlace {
			got = append(got, "NotInPlace "+f.Object)
		}
	}
	return append(got, codes...)
}

func TestStatefulSet(t *testing.T) {
	rolling := func(partition int32) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition},
			}
		}
	}
	env := func(r *appsv1.ControllerRevision) {
		r.Data.Raw = []byte(
			`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2","env":[{"name":"A","value":"b"}]}]}}}}`)
	}
	cases := map[string]struct {
		set     func(*appsv1.StatefulSet)
		newest  func(*appsv1.ControllerRevision)
		rollout native.Rollout
		pods    func([]*corev1.Pod)
		want    []string
	}{
		"image: the highest ordinal goes first": {want: []string{"Update db-2"}},
		"half: a percentage is rounded down": {
			rollout: native.Rollout{MaxUnavailable: ptr.To(intstr.FromString("60%"))},
			want:    []string{"Update db-2"},
		},
		"a little: to one at least": {
			rollout: native.Rollout{MaxUnavailable: ptr.To(intstr.FromString("1%"))},
			want:    []string{"Update db-2"},
		},
		"ordered: is one at a time": {
			rollout: native.Rollout{MaxUnavailable: ptr.To(intstr.FromString("ordered"))},
			want:    []string{"Update db-2"},
		},
		"beyond: a partition may be beyond the replicas": {rollout: native.Rollout{Partition: 99}},
		"paused: no update begins":                       {rollout: native.Rollout{Paused: true}},
		"recreate: the pod is evicted": {
			rollout: native.Rollout{PodUpdatePolicy: native.ReCreate},
			want:    []string{"Evict db-2"},
		},
		"env: needs another pod": {newest: env, want: []string{"Evict db-2"}},
		"env only: which InPlaceOnly refuses": {
			newest:  env,
			rollout: native.Rollout{PodUpdatePolicy: native.InPlaceOnly},
			want:    []string{"NotInPlace db-0", "NotInPlace db-1", "NotInPlace db-2"},
		},
		"broken: a pod that does not serve goes first, and spends the budget": {
			pods: func(pods []*corev1.Pod) { pods[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			want: []string{"Update db-0"},
		},
		"not ready for long: minReadySeconds of the set counts": {
			set:  func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 10 },
			pods: func(pods []*corev1.Pod) { pods[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon()) },
			want: []string{"Update db-0"},
		},
		"rolling: a partition that keeps all pods leaves them to us": {set: rolling(3), want: []string{"Update db-2"}},
		"rolling env: another pod would have the old revision": {
			set:    rolling(3),
			newest: env,
			want:   []string{"NotInPlace db-0", "NotInPlace db-1", "NotInPlace db-2"},
		},
		"rolling to two: the built-in controller updates the rest": {set: rolling(2), want: []string{native.NoteStrategy}},
		"rolling, others: no pod could get the revision": {
			set:     rolling(9),
			rollout: native.Rollout{PodUpdatePolicy: native.ReCreate},
			want:    []string{native.NoteStrategy},
		},
		"each new pod would count as one that leaves its revision": {
			set: func(s *appsv1.StatefulSet) {
				s.Spec.Template.Annotations = map[string]string{kruise.PendingRevisionKey: "db-9"}
			},
			want: []string{native.NoteTemplate},
		},
		"not observed: the status is of another template": {
			set:  func(s *appsv1.StatefulSet) { s.Generation = 9 },
			want: []string{native.NoteNotObserved},
		},
		"not read: the cache lacks the revision": {
			set:  func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "db-9" },
			want: []string{native.NoteNotObserved},
		},
		"start: ordinals may begin elsewhere": {set: func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1}
			s.Spec.Replicas = ptr.To(int32(2))
		}, want: []string{"Update db-2"}},
		"a typing error: takes no memory": {
			set: func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To(int32(2_000_000_000)) },
		},
		"of others: pods of other owners are left alone": {
			pods: func(pods []*corev1.Pod) { pods[2].OwnerReferences = nil },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := setOf("app:2")
			set.Spec.Replicas, set.Status.UpdateRevision = ptr.To(int32(3)), "db-2"
			newest := revisionOf(2, "app:2")
			var pods []*corev1.Pod
			for k := range 3 {
				pods = append(pods, podOf(fmt.Sprintf("db-%d", k), "db-1", "app:1"))
			}
			if c.set != nil {
				c.set(set)
			}
			if c.newest != nil {
				c.newest(newest)
			}
			if c.pods != nil {
				c.pods(pods)
			}
			in, notes := native.StatefulSet(set, native.Observed{
				Now: noon(), Pods: pods, Revisions: []*appsv1.ControllerRevision{revisionOf(1, "app:1"), newest},
			}, c.rollout)
			var codes []string
			for _, n := range notes {
				codes = append(codes, n.Code)
			}
			if d := cmp.Diff(c.want, planned(t, in, codes...)); d != "" {
				t.Errorf("%s", d)
			}
		})
	}
}

// TestResources: requests of cpu and memory change in place where the cluster can, unless the rollout says otherwise.
func TestResources(t *testing.T) {
	cases := map[string]struct {
		resize    bool
		resources native.Resources
		want      []string
	}{
		"the cluster resizes pods":                    {resize: true, want: []string{"Update db-2"}},
		"it does not":                                 {want: []string{"Evict db-2"}},
		"the rollout asks for new pods":               {true, native.ResourcesRecreate, []string{"Evict db-2"}},
		"the rollout says that the cluster can do it": {false, native.ResourcesInPlace, []string{"Update db-2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, newest := setOf("app:1"), revisionOf(2, "app:1")
			set.Spec.Replicas, set.Status.UpdateRevision = ptr.To(int32(3)), "db-2"
			newest.Data.Raw = []byte(`{"spec":{"template":{"spec":{"containers":[
				{"name":"app","image":"app:1","resources":{"requests":{"cpu":"20m"}}}]}}}}`)
			older, pods := revisionOf(1, "app:1"), []*corev1.Pod(nil)
			older.Data.Raw = []byte(`{"spec":{"template":{"spec":{"containers":[
				{"name":"app","image":"app:1","resources":{"requests":{"cpu":"10m"}}}]}}}}`)
			for k := range 3 {
				pod := podOf(fmt.Sprintf("db-%d", k), "db-1", "app:1")
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
				pods = append(pods, pod)
			}
			in, _ := native.StatefulSet(set, native.Observed{
				Now: noon(), Pods: pods, Revisions: []*appsv1.ControllerRevision{older, newest},
				Installed: inplace.Installation{Resize: c.resize},
			}, native.Rollout{Resources: c.resources})
			if d := cmp.Diff(c.want, planned(t, in)); d != "" {
				t.Error(d)
			}
		})
	}
}

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

func TestDaemonSet(t *testing.T) {
	cases := map[string]struct {
		set     func(*appsv1.DaemonSet)
		pods    func([]*corev1.Pod)
		rollout native.Rollout
		want    []string
	}{
		"image: one at a time": {want: []string{"Update db-c"}},
		"most: a percentage is rounded up": {
			rollout: native.Rollout{MaxUnavailable: ptr.To(intstr.FromString("34%"))},
			want:    []string{"Update db-c", "Update db-b"},
		},
		"rolling: the built-in controller updates the pods": {
			set:  func(s *appsv1.DaemonSet) { s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType },
			want: []string{native.NoteStrategy},
		},
		"not observed: the status is of another template": {
			set:  func(s *appsv1.DaemonSet) { s.Generation = 9 },
			want: []string{native.NoteNotObserved},
		},
		"rolled back: until the revision of the template is the newest again": {
			set:  func(s *appsv1.DaemonSet) { s.Spec.Template = templateOf("app:1") },
			want: []string{native.NoteNotObserved},
		},
		"updated: the label is the hash of the revision": {
			pods: func(pods []*corev1.Pod) { pods[2].Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = "2" },
			want: []string{"Update db-b"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			of := setOf("app:2")
			set := &appsv1.DaemonSet{
				ObjectMeta: of.ObjectMeta, Spec: appsv1.DaemonSetSpec{Template: of.Spec.Template, Selector: of.Spec.Selector},
				Status: appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3},
			}
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			revisions := []*appsv1.ControllerRevision{revisionOf(1, "app:1"), revisionOf(2, "app:2")}
			for k, rev := range revisions {
				rev.Labels = map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: fmt.Sprint(k + 1)}
			}
			var pods []*corev1.Pod
			for _, name := range []string{"db-a", "db-b", "db-c"} {
				pods = append(pods, podOf(name, "1", "app:1"))
			}
			if c.set != nil {
				c.set(set)
			}
			if c.pods != nil {
				c.pods(pods)
			}
			in, notes := native.DaemonSet(set, native.Observed{Now: noon(), Pods: pods, Revisions: revisions}, c.rollout)
			var codes []string
			for _, n := range notes {
				codes = append(codes, n.Code)
			}
			if d := cmp.Diff(c.want, planned(t, in, codes...)); d != "" {
				t.Errorf("%s", d)
			}
		})
	}
}
