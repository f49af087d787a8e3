package inplace_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestBeginTestsWhatItSaw has another writer come between the look and the write.
func TestBeginTestsWhatItSaw(t *testing.T) {
	one := template(container("c1", "app:1", requests("cpu", "1")))
	notReady := func(p *corev1.Pod) {
		condition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
		condition(p, corev1.PodReady).Status = corev1.ConditionFalse
	}
	cases := map[string]struct {
		to     *corev1.PodTemplateSpec
		pod    func(*corev1.Pod) // before the look
		then   func(*corev1.Pod) // after it
		refuse bool
	}{
		"another pod of that name: it is another one's": {
			to:     with(one, image(0, "app:2")),
			then:   func(p *corev1.Pod) { p.UID = "other" },
			refuse: true,
		},
		"led on to another revision: the change is not from there": {
			to:  with(one, image(0, "app:2")),
			pod: notReady,
			then: func(p *corev1.Pod) {
				p.Labels[kruise.PodRevisionLabelKey] = "web-9"
			},
			refuse: true,
		},
		"back in traffic: it was to restart out of traffic": {
			to:  with(one, image(0, "app:2")),
			pod: notReady,
			then: func(p *corev1.Pod) {
				condition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionTrue
			},
			refuse: true,
		},
		"restarted: what ran before would be recorded wrongly": {
			to:  with(one, image(0, "app:2")),
			pod: notReady,
			then: func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].ImageID = "other"
			},
			refuse: true,
		},
		"restarted with the same image: what ran before would be recorded wrongly": {
			to:  with(one, image(0, "app:2")),
			pod: notReady,
			then: func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].ContainerID = "containerd://c1-1"
			},
			refuse: true,
		},
		"first annotations: they would be lost": {to: with(one, label("a", "1")), then: func(p *corev1.Pod) {
			p.Annotations = map[string]string{"theirs": "stays"}
		}, refuse: true},
		"first finalizers: they would be lost": {
			to:     with(one, finalizers("a/b")),
			then:   func(p *corev1.Pod) { p.Finalizers = []string{"theirs/stays"} },
			refuse: true,
		},
		"first condition: there would be two of that type": {
			to:  with(one, image(0, "app:2")),
			pod: func(p *corev1.Pod) { p.Status.Conditions = nil },
			then: func(p *corev1.Pod) {
				p.ResourceVersion = "11"
			},
			refuse: true,
		},
		"another label: it is no matter": {
			to: with(one, label("a", "1")), then: func(p *corev1.Pod) { p.Labels["theirs"] = "stays" },
		},
		"not ready by itself: the kubelet is always welcome": {
			to:  with(one, image(0, "app:2")),
			pod: notReady,
			then: func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].Ready = false
				condition(p, corev1.ContainersReady).Status = corev1.ConditionFalse
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(one, "web-1")
			if tc.pod != nil {
				tc.pod(pod)
			}
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: diff(t, one, tc.to), Revision: "web-2"},
				inplace.Policy{}, noon())
			if err != nil || a.Verdict != inplace.Write {
				t.Fatalf("want a write, got %v, %v", a, err)
			}
			pod = pod.DeepCopy()
			tc.then(pod)
			stored := &corev1.Pod{}
			if err := json.Unmarshal([]byte(encoded(t, pod)), stored); err != nil {
				t.Fatal(err)
			}
			next, refused, err := apply(stored, a.Write)
			if err != nil || (refused != nil) != tc.refuse {
				t.Fatalf("refused: %v, %v", refused, err)
			}
			if next != nil && next.Labels["theirs"] != stored.Labels["theirs"] {
				t.Errorf("lost: %v, %v", next.Labels, next.Annotations)
			}
		})
	}
}

// TestBeginGrace parks the change, of which nothing is written but the revision.
func TestBeginGrace(t *testing.T) {
	from := template(container("c1", "app:1", fed("CONF", "metadata.labels['conf']"), requests("cpu", "1")))
	to := with(from, image(0, "app:2"), label("conf", "2"), label("new", "x"), func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2")
	})
	u := inplace.Update{Pod: running(from, "web-1"), Change: diff(t, from, to), Revision: "web-2", GraceSeconds: 30}
	for range 2 {
		a, err := inplace.Next(u, inplace.Policy{}, noon())
		if err != nil {
			t.Fatal(err)
		}
		u.Pod = applied(t, u.Pod, a)
	}
	want := `{"revision":"web-2","containerImages":{"c1":"app:2"},"containerRefMetadata":{"c1":{"labels":{"conf":"2"}}},"containerResources":{"c1":{"requests":{"cpu":"2"}}},` +
		`"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsibmV3IjoieCJ9fX0=","updateEnvFromMetadata":true,"graceSeconds":30}`
	if got := u.Pod.Annotations[kruise.InPlaceUpdateGraceKey]; got != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}
	if c := u.Pod.Spec.Containers[0]; c.Image != "app:1" || u.Pod.Labels["new"] != "" ||
		u.Pod.Labels[kruise.PodRevisionLabelKey] != "web-2" {
		t.Errorf("something is written before its time: %s, %v", c.Image, u.Pod.Labels)
	}
	if s := stateOf(t, u.Pod); !s.UpdateImages || !s.UpdateResources || !s.UpdateEnvFromMetadata ||
		len(s.ContainerBatchesRecord) > 0 {
		t.Errorf("got %+v", s)
	}
	if a, err := inplace.Next(u, inplace.Policy{}, noon().Add(500*time.Millisecond)); err != nil ||
		a.Verdict != inplace.Wait || a.After != 30*time.Second {
		t.Errorf("want to wait for the end in whole seconds, got %v, %v", a, err)
	}
}
