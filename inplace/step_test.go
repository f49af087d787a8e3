package inplace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// oneImage is the state of an image update of c1, as the reference writes it.
const oneImage = `{"revision":"web-2","updateTimestamp":"2026-11-21T11:59:50Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},` +
	`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:59:50Z","containers":["c1"]}]}`

// resized is the state of an update of c1's resources.
const resized = `{"revision":"web-2","updateTimestamp":"2026-11-21T11:59:50Z","lastContainerStatuses":null,` +
	`"updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:59:50Z","containers":["c1"]}]}`

func stateText(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, kruise.InPlaceUpdateStateKey, text)
		underWay(p)
	}
}

// underWay closes the readiness gate, as the write before a change does.
func underWay(p *corev1.Pod) {
	if len(p.Status.Conditions) > 2 {
		condition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
	}
}

func marked(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { condition(p, kruise.InPlaceUpdateReady).Status = status }
}

func TestStep(t *testing.T) {
	t1 := template(container("c1", "app:1"))
	sized := template(container("c1", "app:1", requests("cpu", "800")))
	pending := func(reason string, generation int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Generation = 2
			p.Status.ContainerStatuses[0].Resources.Requests = amounts("cpu", "1")
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, ObservedGeneration: generation,
			})
		}
	}
	cases := map[string]struct {
		of    *corev1.PodTemplateSpec
		pod   []func(*corev1.Pod)
		rules inplace.Policy
		now   time.Duration
		want  string // verdict, subresource, time and code
	}{
		"no gate: there is nothing to make ready": {
			of:   with(t1, noGate),
			pod:  []func(*corev1.Pod){marked(corev1.ConditionFalse)},
			want: "Complete",
		},
		"no condition: a new pod becomes ready for the first time": {
			of:   t1,
			pod:  []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:2] }},
			want: "Write status",
		},
		"ready: there is nothing left": {of: t1, want: "Complete"},
		"infeasible: a feasible update may still come": {
			of:   sized,
			pod:  []func(*corev1.Pod){stateText(resized), pending("Infeasible", 2)},
			want: "Wait 10m0s InPlaceResizeInfeasible",
		},
		"infeasible, an older answer: the node has not seen this spec": {
			of:   sized,
			pod:  []func(*corev1.Pod){stateText(resized), pending("Infeasible", 1)},
			want: "Wait 10m0s InPlaceResize",
		},
		"deferred: there may be room later": {
			of:   sized,
			pod:  []func(*corev1.Pod){stateText(resized), pending("Deferred", 2)},
			want: "Wait 10m0s InPlaceResizeDeferred",
		},
		"there is nothing in it, and without removing it the update would never be complete": {
			of: t1,
			pod: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: ""}
			}},
			want: "Write ",
		},
		"grace without state: the begin is unknown": {
			of: t1,
			pod: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: "{}"}
			}},
			want: "error apps.kruise.io/inplace-update-state",
		},
		"grace with unreadable metadata: a user must look": {
			of: t1,
			pod: []func(*corev1.Pod){stateText(oneImage), func(p *corev1.Pod) {
				p.Annotations[kruise.InPlaceUpdateGraceKey] = `{"metaDataPatch":"MQ=="}`
			}},
			want: "error apps.kruise.io/inplace-update-grace",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(tc.of, "web-2")
			for _, f := range tc.pod {
				f(pod)
			}
			before := pod.DeepCopy()
			a, err := inplace.Next(inplace.Update{Pod: pod}, tc.rules, noon().Add(tc.now))
			if got := told(a, err); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
			if d := cmp.Diff(before, pod); d != "" {
				t.Errorf("the pod is changed:\n%s", d)
			}
			if a.Verdict == inplace.Write {
				next := applied(t, pod, a)
				if a, err := inplace.Next(inplace.Update{Pod: next}, tc.rules, noon().Add(tc.now)); err != nil ||
					a.Verdict != inplace.Complete {
					t.Errorf("then: want nothing, got %v, %v", a, err)
				}
			}
		})
	}
}

// told is an action in short.
func told(a inplace.Action, err error) string {
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "metadata.annotations["):
		key, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "metadata.annotations["), "]")
		return "error " + key
	case err != nil:
		return err.Error()
	case a.Verdict == inplace.Write:
		return "Write " + a.Write.Subresource
	case a.Verdict == inplace.Wait:
		return fmt.Sprintf("Wait %v %s", a.After, a.Notes[0].Code)
	case len(a.Notes) > 0:
		return string(a.Verdict) + " " + a.Notes[0].Code
	}
	return string(a.Verdict)
}

func TestStepGrace(t *testing.T) {
	t1 := template(container("c1", "app:1"))
	grace := func(seconds int, more string) string {
		return fmt.Sprintf(`{"revision":"web-2","containerImages":{"c1":"app:2"},"graceSeconds":%d%s}`, seconds, more)
	}
	state := `{"revision":"web-2","updateTimestamp":"2026-11-21T11:59:50Z","lastContainerStatuses":null,"updateImages":true}`
	cases := map[string]struct {
		key, grace  string
		revision    string
		after       time.Duration
		image       string
		parts       map[string]string
		annotations func(map[string]string)
	}{
		"not over: 20 of 30 seconds are left":            {grace: grace(30, ""), after: 20 * time.Second},
		"over: the change is due":                        {grace: grace(5, ""), image: "app:2"},
		"overtaken: another revision has its own change": {grace: grace(5, ""), revision: "web-3", image: "app:1"},
		"short revision: some pods carry only the hash in the name of their revision": {
			grace:    grace(5, ""),
			revision: "2",
			image:    "app:2",
		},
		"no seconds: there is nothing to wait for": {grace: grace(0, ""), image: "app:2"},
		"clock far behind: a state from the future says nothing of when it began": {
			grace: grace(5, ""),
			image: "app:2",
			annotations: func(a map[string]string) {
				a[kruise.InPlaceUpdateStateKey] = `{"revision":"web-2","updateTimestamp":"2036-11-21T11:59:50Z"}`
			},
		},
		"metadata: it waits as a patch": {
			grace: grace(5,
				`,"metaDataPatch":"eyJtZXRhZGF0YSI6eyIkc2V0RWxlbWVudE9yZGVyL2ZpbmFsaXplcnMiOltdLCJsYWJlbHMiOnsiYXBwIjpudWxsLCJuZXciOiJ4In19fQ=="`),
			image: "app:2",
			parts: map[string]string{"new": "x"},
		},
		"unknown containers: a container that the pod does not have is forgotten": {
			grace: grace(5, `,"containerRefMetadata":{"c9":{"labels":{"x":"y"}}}`),
			image: "app:2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(t1, "web-2")
			marked(corev1.ConditionFalse)(pod)
			key := kruise.InPlaceUpdateGraceKey
			if tc.key != "" {
				key = tc.key
			}
			pod.Annotations = map[string]string{key: tc.grace, kruise.InPlaceUpdateStateKey: state}
			if tc.annotations != nil {
				tc.annotations(pod.Annotations)
			}
			if tc.revision != "" {
				pod.Labels[kruise.PodRevisionLabelKey] = tc.revision
			}
			a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
			if err != nil {
				t.Fatal(err)
			}
			if tc.after > 0 {
				if a.Verdict != inplace.Wait || a.After != tc.after || len(a.Notes) == 0 {
					t.Errorf("want to wait %v, got %v", tc.after, a)
				}
				return
			}
			next := applied(t, pod, a)
			if done, n := inplace.Completed(pod, inplace.Policy{}); done || n.Code != inplace.NoteGrace {
				t.Errorf("complete before it began: %v", n)
			}
			if got := next.Spec.Containers[0].Image; got != tc.image || next.Annotations[key] != "" {
				t.Errorf("want %s, got %s, %v", tc.image, got, next.Annotations)
			}
			s := stateOf(t, next)
			if tc.image == "app:2" &&
				(!s.UpdateTimestamp.Equal(&stateOf(t, pod).UpdateTimestamp) || len(s.ContainerBatchesRecord) != 1) {
				t.Errorf("want the time kept and a batch, got %+v", s)
			}
			for key, value := range tc.parts {
				if next.Labels[key] != value {
					t.Errorf("labels: %v", next.Labels)
				}
			}
		})
	}
}

// TestRollbackInGrace: the pod ends ready, with the image that it never left.
func TestRollbackInGrace(t *testing.T) {
	for _, name := range []string{"nginx", "localhost:5000/nginx"} {
		from := template(container("c1", name))
		to := with(from, image(0, "app:2"))
		pod := running(from, "web-1")
		for range 2 {
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: diff(t, from, to), Revision: "web-2", GraceSeconds: 60},
				inplace.Policy{}, noon())
			if err != nil {
				t.Fatal(err)
			}
			pod = applied(t, pod, a)
		}
		for i := 0; ; i++ {
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: diff(t, to, from), Revision: "web-1"}, inplace.Policy{},
				noon().Add(time.Second))
			if err != nil || i > 2 {
				t.Fatal(a, err)
			}
			if a.Verdict == inplace.Complete {
				break
			}
			pod = applied(t, pod, a)
		}
		if condition(pod, kruise.InPlaceUpdateReady).Status != corev1.ConditionTrue || pod.Spec.Containers[0].Image != name {
			t.Errorf("%s: got %s", name, encoded(t, pod))
		}
		if done, n := inplace.Completed(pod, inplace.Policy{}); !done {
			t.Errorf("%s: not complete: %v", name, n)
		}
	}
}
