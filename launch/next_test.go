package launch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/launch"
)

// five has a=3, b=5, c=0, e=-1 and f=3.
func five() *corev1.Pod {
	p := waiting("p_3", "p_5", "p_0", "p_-1", "p_3")
	p.Spec.Containers[3].Name, p.Spec.Containers[4].Name = "e", "f"
	return p
}

// outcome is a plan in short.
type outcome struct {
	Remove   string
	Create   []string
	Add      []string
	Complete bool
	After    time.Duration
}

func inShort(p launch.Plan) outcome {
	o := outcome{Remove: string(p.Remove), Add: p.Add, Complete: p.Complete, After: p.RequeueAfter}
	if p.Create != nil {
		o.Create = []string{}
		for k := range p.Create.Data {
			o.Create = append(o.Create, k)
		}
		slices.Sort(o.Create)
	}
	return o
}

func TestNext(t *testing.T) {
	const later = 2 * time.Minute
	is := func(k ...string) []string { return k }
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		barrier *corev1.ConfigMap
		want    outcome
	}{
		"first, empty: as the reference leaves it": {five(), barrier("u1"), outcome{Add: is("p_5")}},
		"the last: no container is left to wait": {
			pod:     with(five(), ready, "a", "b", "c", "f"),
			barrier: barrier("u1", "p_5", "p_3", "p_0"),
			want:    outcome{Add: is("p_-1"), Complete: true},
		},
		"lowest open: the lowest may start, so no container is left to wait": {
			pod:     with(five(), ready, "b"),
			barrier: barrier("u1", "p_5", "p_3", "p_0", "p_-1"),
			want:    outcome{Complete: true},
		},
		"what is missing is written before the mark, or those containers never start": {
			with(five(), ready, "b"), barrier("u1", "p_-1"),
			outcome{Add: is("p_0", "p_3", "p_5"), Complete: true},
		},
		"one priority: as in a barrier written by hand": {
			pod:  waiting("p_1", "p_1"),
			want: outcome{Create: is("p_1"), Complete: true},
		},
		"down again, lost: what has started may start again, the rest waits": {
			pod:  with(five(), ready, "a", "f"),
			want: outcome{Create: is("p_3", "p_5")},
		},
		"complete, lost: a restart would wait for ever": {
			pod:  done(with(five(), blocked, "a")),
			want: outcome{Create: is("p_-1", "p_0", "p_3", "p_5"), After: later},
		},
		"complete, key lost: a restart would wait for ever": {
			pod:     done(with(five(), blocked, "a")),
			barrier: barrier("u1", "p_5"),
			want:    outcome{Add: is("p_-1", "p_0", "p_3"), After: later},
		},
		"complete, elsewhere: the kubelet misses something else": {
			pod:     done(with(five(), blocked, "a")),
			barrier: barrier("u1", "p_5", "p_3", "p_0", "p_-1"),
			want:    outcome{After: later},
		},
		"former: the pod of a StatefulSet is back": {
			pod:     five(),
			barrier: barrier("u0", "p_5", "p_3", "p_0", "p_-1"),
			want:    outcome{Remove: "b1", Create: is("p_5")},
		},
		"former, done: its containers have started by the former barrier, which goes": {
			pod:     done(with(five(), blocked, "a")),
			barrier: barrier("u0", "p_5"),
			want:    outcome{Remove: "b1", Create: is("p_-1", "p_0", "p_3", "p_5"), After: later},
		},
		"shared: ours is enough": {five(), func() *corev1.ConfigMap {
			b := barrier("u0", "p_5")
			b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{
				APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1",
			})
			return b
		}(), outcome{}},
		"stranger: what a user made is not deleted": {five(), barrier(""), outcome{Add: is("p_5")}},
		"of another: neither is what something else owns": {five(), func() *corev1.ConfigMap {
			b := barrier("u0")
			b.OwnerReferences[0].Kind = "Deployment"
			return b
		}(), outcome{Add: is("p_5")}},
		"of another pod: neither is what a pod of another name owns": {five(), func() *corev1.ConfigMap {
			b := barrier("u0", "p_5")
			b.OwnerReferences[0].Name = "web-2"
			return b
		}(), outcome{}},
		"binary: a key is a key": {five(), func() *corev1.ConfigMap {
			b := barrier("u1")
			b.Data, b.BinaryData = nil, map[string][]byte{"p_5": nil}
			return b
		}(), outcome{}},
		"going: no other can be made before": {five(), going(barrier("u1", "p_5")), outcome{After: time.Second}},
		"released: the kubelet will look again, and if not, we do": {
			pod:     with(five(), blocked, "a", "b", "c", "e", "f"),
			barrier: barrier("u1", "p_5"),
			want:    outcome{After: later},
		},
		"the reference appends a second barrier: both keys are needed, and it can start with the lower": {
			func() *corev1.Pod {
				p := waiting("p_10", "p_5", "p_-1")
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, wait("web", "p_0"))
				return p
			}(), nil,
			outcome{Create: is("p_10", "p_5")},
		},
		"64 bits: what the reference accepts": {
			pod:  waiting("p_9223372036854775807", "p_-9223372036854775808"),
			want: outcome{Create: is("p_9223372036854775807")},
		},
		"odd spelling: the key that is written is the one that is asked for": {
			pod:  waiting("p_+07", "p_0"),
			want: outcome{Create: is("p_+07")},
		},
		"terminating: no container starts": {terminating(five()), nil, outcome{}},
		"only odd ones: nothing is made for them": {
			pod:  waiting("", "p", "p_", "p_x", "q_1", "p_99999999999999999999"),
			want: outcome{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, had := c.pod.DeepCopy(), c.barrier.DeepCopy()
			got := launch.Next(launch.Input{Pod: c.pod, Barrier: c.barrier})
			if diff := cmp.Diff(c.want, inShort(got)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, got.Notes)
			}
			if diff := cmp.Diff(pod, c.pod) + cmp.Diff(had, c.barrier); diff != "" {
				t.Errorf("the input is changed: %s", diff)
			}
			if got.Empty() != (len(c.want.Create) == 0 && len(c.want.Add) == 0 && !c.want.Complete && c.want.Remove == "") {
				t.Errorf("empty: %t", got.Empty())
			}
		})
	}
}

func going(b *corev1.ConfigMap) *corev1.ConfigMap {
	b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return b
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

func phase(p *corev1.Pod, is corev1.PodPhase) *corev1.Pod {
	p.Status.Phase = is
	return p
}

// The barrier is as the reference makes it, but for its first keys.
func TestNewBarrier(t *testing.T) {
	got := launch.Next(launch.Input{Pod: five()}).Create
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-barrier",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1"}},
		},
		Data: map[string]string{"p_5": "true"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A container that has started can be enough.
func TestStarted(t *testing.T) {
	started := func(is bool) func(*corev1.ContainerStatus) {
		return func(s *corev1.ContainerStatus) { s.Started = &is }
	}
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		rules launch.Policy
		want  []int64
	}{
		"by default":  {with(waiting("p_1", "p_0"), started(true), "a"), launch.Policy{}, []int64{0, 1}},
		"asked for":   {with(waiting("p_1", "p_0"), started(true), "a"), launch.Policy{Started: true}, []int64{0}},
		"not started": {with(waiting("p_1", "p_0"), started(false), "a"), launch.Policy{Started: true}, []int64{0, 1}},
		"ready":       {with(waiting("p_1", "p_0"), ready, "a"), launch.Policy{Started: true}, []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, launch.Pending(c.pod, c.rules)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		barrier *corev1.ConfigMap
		want    []string
	}{
		"waits": {
			with(waiting("p_1", "p_0", "x"), ready, "c"), nil, []string{"NoBarrier c", "NotUp a", "WaitsForTurn b"},
		},
		"former":   {waiting("p_1", "p_0"), barrier("u0"), []string{"FormerBarrier web", "NotUp a", "WaitsForTurn b"}},
		"stranger": {waiting("p_1", "p_0"), barrier(""), []string{"StrangeBarrier web", "NotUp a", "WaitsForTurn b"}},
		"going":    {waiting("p_1", "p_0"), going(barrier("u1")), []string{"BarrierGoing web"}},
		"lost": {
			done(with(waiting("p_1", "p_0"), blocked, "b")), nil, []string{"BarrierLost web", "NotUp a", "NotUp b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := launch.Next(launch.Input{Pod: c.pod, Barrier: c.barrier})
			if diff := cmp.Diff(c.want, codes(got.Notes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatches(t *testing.T) {
	add, err := launch.AddPatch(barrier("u1"), []string{"p_1", "p_-1"})
	if want := `{"data":{"p_-1":"true","p_1":"true"},"metadata":{"uid":"b1"}}`; string(add) != want || err != nil {
		t.Errorf("%s, %v", add, err)
	}
	complete, err := launch.CompletePatch(five(), launch.Policy{})
	want := `{"metadata":{"annotations":{"apps.kruise.io/container-launch-priority-completed":"true"},"uid":"u1"}}`
	if string(complete) != want || err != nil {
		t.Errorf("%s, %v", complete, err)
	}
}
