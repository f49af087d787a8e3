package inplace_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

const (
	ranC1    = `"c1":{"imageID":"id-of-app:1","containerID":"containerd://c1-0","image":"app:1"}`
	ranC2    = `"c2":{"imageID":"id-of-app:1","containerID":"containerd://c2-0","image":"app:1"}`
	isImages = `"updateImages":true,`
)

// begun is the state of an update to web-2 that begins at noon.
func begun(last, more, batches string) string {
	return fmt.Sprintf(`{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":%s,%s`+
		`"containerBatchesRecord":[%s]}`, last, more, batches)
}

func batchAt(hour int, containers string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-21T%d:00:00Z","containers":[%s]}`, hour, containers)
}

// underWayTo is a state of an update to web-1 that began at eleven.
func underWayTo(parts string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, kruise.InPlaceUpdateStateKey,
			`{"revision":"web-1","updateTimestamp":"2026-11-21T11:00:00Z",`+parts+
				`,"containerBatchesRecord":[`+batchAt(11, `"c1"`)+`]}`)
	}
}

// TestBegin looks at the pod that the first write of the pod itself makes. Writes before it are applied.
func TestBegin(t *testing.T) {
	one := template(container("c1", "app:1"))
	two := template(container("c1", "app:1"), container("c2", "app:1"))
	first := template(container("c1", "app:1", launch(20)), container("c2", "app:1", launch(10)))
	sized := template(container("c1", "app:1", requests("cpu", "2")), container("c2", "app:1"))
	runs7 := func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:7" }
	cases := map[string]struct {
		from, to *corev1.PodTemplateSpec
		pod      []func(*corev1.Pod)
		update   inplace.Update
		rules    inplace.Policy
		want     string            // state
		labels   map[string]string // of the pod afterwards, but for its own; empty where one is gone
	}{
		"what ran is recorded, one batch, and nothing to check before another": {
			from: one, to: with(one, image(0, "app:2")),
			want: begun("{"+ranC1+"}", isImages, batchAt(12, `"c1"`)),
		},
		"where nothing restarts the batch is empty": {
			from: one, to: with(one, label("a/b~c", "1"), annotate("x", "y")),
			want: begun("null", "", batchAt(12, "")), labels: map[string]string{"a/b~c": "1", "app": "web"},
		},
		"metadata of other writers stays": {
			from: with(one, label("old", "1"), finalizers("a/b", "c/d")), to: with(one, finalizers("c/d", "e/f")),
			pod: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Finalizers, p.Labels["others"] = append(p.Finalizers, "other/one"), "stay"
			}},
			want: begun("null", "", batchAt(12, "")), labels: map[string]string{"old": "", "others": "stay"},
		},
		"labels of the update go with the first write, and the revision holds over the template": {
			from:   with(one, label(kruise.PodRevisionLabelKey, "x")),
			to:     with(one, label(kruise.PodRevisionLabelKey, "y"), image(0, "app:2")),
			update: inplace.Update{Labels: map[string]string{"lifecycle": "Updating"}},
			want:   begun("{"+ranC1+"}", isImages, batchAt(12, `"c1"`)),
			labels: map[string]string{"lifecycle": "Updating", kruise.PodRevisionLabelKey: "web-2"},
		},
		"some workloads have another label of the revision": {
			from: one, to: with(one, label("a", "1")), rules: inplace.Policy{Keys: &kruise.Keys{Revision: "own/revision"}},
			want:   begun("null", "", batchAt(12, "")),
			labels: map[string]string{"own/revision": "web-2", kruise.PodRevisionLabelKey: "web-1"},
		},
		"there is nothing to record of a pod that has not started": {
			from: one, to: with(one, image(0, "app:2")),
			pod: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Phase = nil, corev1.PodPending
			}},
			want: begun("null", isImages, batchAt(12, `"c1"`)),
		},
		"what a later batch was to bring, and the new change does not undo, comes now": {
			from: two, to: with(two, label("a", "1")),
			pod: []func(*corev1.Pod){runs7, underWayTo(`"lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},` +
				isImages + `"nextContainerImages":{"c2":"app:7"},"preCheckBeforeNext":{"containersRequiredReady":["c1"]}`)},
			want: begun(`{"c1":{"imageID":"id-of-app:1"},`+ranC2+`}`, isImages, batchAt(12, `"c2"`)),
		},
		"a container whose image the node has not started is still waited for": {
			from: one, to: with(one, label("a", "1")),
			pod: []func(*corev1.Pod){runs7, underWayTo(
				`"lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},"updateImages":true`)},
			want: begun(`{"c1":{"imageID":"id-of-app:1"}}`, isImages, batchAt(12, "")),
		},
		"a container that the node has not resized is still waited for": {
			from: sized, to: with(sized, image(1, "app:2")),
			pod: []func(*corev1.Pod){underWayTo(`"lastContainerStatuses":null,"updateResources":true`), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].Resources.Requests = amounts("cpu", "1")
			}},
			want: begun("{"+ranC2+"}", `"updateResources":true,`+isImages, batchAt(11, `"c1"`)+","+batchAt(12, `"c2"`)),
		},
		"the lower priority is written down for later": {
			from: first, to: with(first, image(0, "app:2"), image(1, "app:2")),
			want: begun("{"+ranC1+"}", isImages+`"nextContainerImages":{"c2":"app:2"},`+
				`"preCheckBeforeNext":{"containersRequiredReady":["c1"]},`, batchAt(12, `"c1"`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(tc.from, "web-1")
			for _, f := range tc.pod {
				f(pod)
			}
			tc.update.Change, tc.update.Revision = diff(t, tc.from, tc.to), "web-2"
			for a := (inplace.Action{}); a.Step != inplace.StepChange; {
				var err error
				tc.update.Pod = pod
				if a, err = inplace.Next(tc.update, tc.rules, noon()); err != nil {
					t.Fatal(err)
				}
				pod = applied(t, pod, a)
			}
			if d := cmp.Diff(tc.want, pod.Annotations[kruise.InPlaceUpdateStateKey]); d != "" {
				t.Errorf("state (-want +got):\n%s", d)
			}
			for key, want := range tc.labels {
				if got := pod.Labels[key]; got != want {
					t.Errorf("label %s: %q, want %q", key, got, want)
				}
			}
			left, err := lacks(pod, tc.to, everything())
			if whole := tc.pod == nil && stateOf(t, pod).NextContainerImages == nil; err != nil || whole && !left.Empty() {
				t.Errorf("the pod lacks %v, %v", left, err)
			}
		})
	}
}

func TestBeginDecides(t *testing.T) {
	one := template(container("c1", "app:1"))
	change := diff(t, one, with(one, image(0, "app:2")))
	cases := map[string]struct {
		pod    func(*corev1.Pod)
		update func(*inplace.Update)
		want   inplace.Verdict // empty for an error
	}{
		"a pod of the revision has no update": {
			pod: func(p *corev1.Pod) { p.Labels[kruise.PodRevisionLabelKey] = "web-2" }, want: inplace.Complete,
		},
		"a pod that is deleted is not updated": {
			pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon()} }, want: inplace.Ignore,
		},
		"no container starts in a pod that has ended": {
			pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, want: inplace.Recreate,
		},
		"an error of Diff that was overlooked is no update": {update: func(u *inplace.Update) { u.Change = nil }},
		"a pod without a revision would count as updated":   {update: func(u *inplace.Update) { u.Revision = "" }},
		"an unreadable state":                               {pod: annotation(kruise.InPlaceUpdateStateKey, "{")},
		"an unreadable grace period":                        {pod: annotation(kruise.InPlaceUpdateGraceKey, "{")},
		"unreadable metadata":                               {pod: annotation(kruise.InPlaceUpdateGraceKey, `{"metaDataPatch":"e30x"}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := inplace.Update{Pod: running(one, "web-1"), Change: change, Revision: "web-2"}
			if tc.pod != nil {
				tc.pod(u.Pod)
			}
			if tc.update != nil {
				tc.update(&u)
			}
			if a, err := inplace.Next(u, inplace.Policy{}, noon()); a.Verdict != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("want %q, got %v, %v", tc.want, a, err)
			}
		})
	}
}

// TestBeginUnready: a pod with a gate leaves traffic for what restarts a container, and for nothing else by default.
func TestBeginUnready(t *testing.T) {
	sized := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi")),
		container("c2", "app:1", requests("cpu", "1")))
	resize := func(name corev1.ResourceName, amount string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Requests[name] = amounts("x", amount)["x"]
		}
	}
	cpu, memory := resize("cpu", "2"), resize("memory", "2Gi")
	restarts := func(at int, name corev1.ResourceName) *corev1.PodTemplateSpec {
		return with(sized, func(p *corev1.PodTemplateSpec) { restartsOn(name)(&p.Spec.Containers[at]) })
	}
	both := func(p *corev1.PodTemplateSpec) { cpu(p); label("a", "1")(p) }
	feeds := template(container("c1", "app:1", fed("CONF", "metadata.labels['conf']")))
	always := inplace.Policy{Unready: inplace.UnreadyAlways}
	cases := map[string]struct {
		from   *corev1.PodTemplateSpec
		change func(*corev1.PodTemplateSpec)
		rules  inplace.Policy
		want   bool
	}{
		"an image restarts the container": {from: sized, change: image(0, "app:2"), want: true},
		"nothing takes a pod out that has no gate": {
			from: with(sized, noGate), change: image(0, "app:2"), rules: always,
		},
		"a label restarts nothing": {from: sized, change: label("a", "1")},
		"the reference takes pods out for a label": {
			from: sized, change: label("a", "1"), rules: always, want: true,
		},
		"the daemon restarts a container for a variable": {from: feeds, change: label("conf", "1"), want: true},
		"a resize without a policy restarts nothing":     {from: sized, change: cpu, rules: always},
		"a resize restarts where its policy says so": {
			from: restarts(0, "cpu"), change: cpu, rules: always, want: true,
		},
		"the policy of another resource does not count":  {from: restarts(0, "cpu"), change: memory, rules: always},
		"the policy of another container does not count": {from: restarts(1, "cpu"), change: cpu, rules: always},
		"plain metadata may change with resources":       {from: sized, change: both, rules: always},
		"nothing restarts for a revision alone": {
			from: sized, change: func(*corev1.PodTemplateSpec) {}, rules: always,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := inplace.Next(inplace.Update{
				Pod: running(tc.from, "web-1"), Change: diff(t, tc.from, with(tc.from, tc.change)), Revision: "web-2",
			}, tc.rules, noon())
			if err != nil || a.Verdict != inplace.Write {
				t.Fatalf("want a write, got %v, %v", a, err)
			}
			if got := a.Write.Subresource == write.Status; got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}
