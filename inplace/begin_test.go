package inplace_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// TestBegin looks at the pod that the first write of the pod itself makes. Writes before it are applied.
func TestBegin(t *testing.T) {
	one := template(container("c1", "app:1"))
	two := template(container("c1", "app:1"), container("c2", "app:1"))
	first := template(container("c1", "app:1", launch(20)), container("c2", "app:1", launch(10)))
	cases := map[string]struct {
		why      string
		from, to *corev1.PodTemplateSpec
		pod      func(*corev1.Pod)
		update   inplace.Update
		rules    inplace.Policy
		writes   []string // subresources before the pod itself
		want     string   // state
		check    func(*testing.T, *corev1.Pod)
	}{
		"image": {
			why:    "what ran is recorded, one batch, and nothing to check before another",
			from:   one,
			to:     with(one, image(0, "app:2")),
			writes: []string{"status"},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1","containerID":"containerd://c1-0","image":"app:1"}},` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c1"]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if pod.Spec.Containers[0].Image != "app:2" || pod.Labels[kruise.PodRevisionLabelKey] != "web-2" {
					t.Errorf("want the new image and revision, got %s", encoded(t, pod))
				}
			},
		},
		"label": {
			why:  "nothing restarts, so the pod stays in traffic; the batch is empty",
			from: one,
			to:   with(one, label("a/b~c", "1"), annotate("x", "y")),
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":[]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if pod.Labels["a/b~c"] != "1" || pod.Labels["app"] != "web" || pod.Annotations["x"] != "y" {
					t.Errorf("got %v, %v", pod.Labels, pod.Annotations)
				}
			},
		},
		"removed label and finalizers": {
			why:  "metadata of other writers stays",
			from: with(one, label("old", "1"), finalizers("a/b", "c/d")),
			to:   with(one, finalizers("c/d", "e/f")),
			pod: func(p *corev1.Pod) {
				p.Finalizers = append(p.Finalizers, "other/one")
				p.Labels["others"] = "stay"
			},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":[]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if _, has := pod.Labels["old"]; has || pod.Labels["others"] != "stay" {
					t.Errorf("labels: %v", pod.Labels)
				}
				if d := cmp.Diff([]string{"c/d", "other/one", "e/f"}, pod.Finalizers); d != "" {
					t.Error(d)
				}
			},
		},
		"revision only": {
			why: "nothing is done, so nothing is recorded", from: one, to: one,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if pod.Labels[kruise.PodRevisionLabelKey] != "web-2" {
					t.Errorf("labels: %v", pod.Labels)
				}
			},
		},
		"labels of the update": {
			why:  "they go with the first write, and what is said of the revision holds over the template",
			from: with(one, label(kruise.PodRevisionLabelKey, "x")),
			to:   with(one, label(kruise.PodRevisionLabelKey, "y"), image(0, "app:2")),
			update: inplace.Update{
				Labels: map[string]string{"lifecycle": "Updating"}, Annotations: map[string]string{"at": "noon"},
			},
			writes: []string{"status"},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1","containerID":"containerd://c1-0","image":"app:1"}},` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c1"]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if pod.Labels[kruise.PodRevisionLabelKey] != "web-2" || pod.Labels["lifecycle"] != "Updating" ||
					pod.Annotations["at"] != "noon" {
					t.Errorf("got %v, %v", pod.Labels, pod.Annotations)
				}
			},
		},
		"own revision label": {
			why:   "some workloads have another",
			from:  one,
			to:    with(one, label("a", "1")),
			rules: inplace.Policy{Keys: &kruise.Keys{Revision: "own/revision"}},
			want:  `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":[]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if pod.Labels["own/revision"] != "web-2" || pod.Labels[kruise.PodRevisionLabelKey] != "web-1" {
					t.Errorf("labels: %v", pod.Labels)
				}
			},
		},
		"resources": {
			why:    "the resize is sent before the pod itself, and alone",
			from:   template(container("c1", "app:1", requests("cpu", "1"))),
			to:     template(container("c1", "app:1", requests("cpu", "2"))),
			writes: []string{"resize"},
			want:   `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c1"]}]}`,
		},
		"no container status": {
			why:    "there is nothing to record of a pod that has not started",
			from:   one,
			to:     with(one, image(0, "app:2")),
			writes: []string{"status"},
			pod:    func(p *corev1.Pod) { p.Status.ContainerStatuses, p.Status.Phase = nil, corev1.PodPending },
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c1"]}]}`,
		},
		"overtaking a batch": {
			why: "what a later batch was to bring, and the new change does not undo, comes now; " +
				"the state is of the new update",
			from: two,
			to:   with(two, label("a", "1")),
			pod: func(p *corev1.Pod) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, kruise.InPlaceUpdateStateKey,
					`{"revision":"web-1","updateTimestamp":"2026-11-21T11:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},`+
						`"updateImages":true,"nextContainerImages":{"c2":"app:7"},"preCheckBeforeNext":{"containersRequiredReady":["c1"]},"containerBatchesRecord":[{"timestamp":"2026-11-21T11:00:00Z","containers":["c1"]}]}`)
				p.Spec.Containers[0].Image = "app:7"
			},
			writes: []string{"status"},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"},"c2":{"imageID":"id-of-app:1","containerID":"containerd://c2-0","image":"app:1"}},` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c2"]}]}`,
		},
		"overtaking an image of one container by a label": {
			why:  "the container whose image the node has not started is still waited for",
			from: one,
			to:   with(one, label("a", "1")),
			pod: func(p *corev1.Pod) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, kruise.InPlaceUpdateStateKey,
					`{"revision":"web-1","updateTimestamp":"2026-11-21T11:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},`+
						`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:00:00Z","containers":["c1"]}]}`)
				p.Spec.Containers[0].Image = "app:7"
			},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":[]}]}`,
		},
		"overtaking a resize of one container by another's image": {
			why:  "the container that the node has not resized is still waited for",
			from: template(container("c1", "app:1", requests("cpu", "2")), container("c2", "app:1")),
			to:   template(container("c1", "app:1", requests("cpu", "2")), container("c2", "app:2")),
			pod: func(p *corev1.Pod) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, kruise.InPlaceUpdateStateKey,
					`{"revision":"web-1","updateTimestamp":"2026-11-21T11:00:00Z","lastContainerStatuses":null,`+
						`"updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:00:00Z","containers":["c1"]}]}`)
				p.Status.ContainerStatuses[0].Resources.Requests = amounts("cpu", "1")
			},
			writes: []string{"status"},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c2":{"imageID":"id-of-app:1","containerID":"containerd://c2-0","image":"app:1"}},"updateResources":true,` +
				`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:00:00Z","containers":["c1"]},{"timestamp":"2026-11-21T12:00:00Z","containers":["c2"]}]}`,
		},
		"legacy state": {
			why: "the older key is gone with the next write", from: one, to: with(one, label("a", "1")),
			pod: func(p *corev1.Pod) {
				p.Annotations = map[string]string{kruise.InPlaceUpdateStateKeyOld: `{"revision":"web-1"}`}
			},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":[]}]}`,
			check: func(t *testing.T, pod *corev1.Pod) {
				t.Helper()
				if _, has := pod.Annotations[kruise.InPlaceUpdateStateKeyOld]; has {
					t.Error("the older key is still there")
				}
			},
		},
		"two priorities": {
			why:    "the lower one is written down for later",
			from:   first,
			to:     with(first, image(0, "app:2"), image(1, "app:2")),
			writes: []string{"status"},
			want: `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1","containerID":"containerd://c1-0","image":"app:1"}},` +
				`"updateImages":true,"nextContainerImages":{"c2":"app:2"},"preCheckBeforeNext":{"containersRequiredReady":["c1"]},"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["c1"]}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(tc.from, "web-1")
			if tc.pod != nil {
				tc.pod(pod)
			}
			tc.update.Change, tc.update.Revision = diff(t, tc.from, tc.to), "web-2"
			var writes []string
			for {
				tc.update.Pod = pod
				a, err := inplace.Next(tc.update, tc.rules, noon())
				if err != nil {
					t.Fatalf("%s: %v", tc.why, err)
				}
				pod = applied(t, pod, a)
				if a.Write.Subresource == write.Main {
					break
				}
				writes = append(writes, a.Write.Subresource)
			}
			if d := cmp.Diff(tc.writes, writes); d != "" {
				t.Errorf("%s: writes (-want +got):\n%s", tc.why, d)
			}
			if d := cmp.Diff(tc.want, pod.Annotations[kruise.InPlaceUpdateStateKey]); d != "" {
				t.Errorf("%s: state (-want +got):\n%s", tc.why, d)
			}
			if tc.check != nil {
				tc.check(t, pod)
			}
		})
	}
}

func TestBeginDecides(t *testing.T) {
	one := template(container("c1", "app:1"))
	change := diff(t, one, with(one, image(0, "app:2")))
	bad := errors.New("an error")
	cases := map[string]struct {
		why    string
		pod    func(*corev1.Pod)
		update func(*inplace.Update)
		want   inplace.Verdict
		err    error
	}{
		"already there": {
			why:  "from there on Begin is Step",
			pod:  func(p *corev1.Pod) { p.Labels[kruise.PodRevisionLabelKey] = "web-2" },
			want: inplace.Complete,
		},
		"going away": {
			why:  "a pod that is deleted is not updated",
			pod:  func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon()} },
			want: inplace.Ignore,
		},
		"ended": {
			why:  "no container starts in it any more",
			pod:  func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
			want: inplace.Recreate,
		},
		"no change": {
			why:    "an error of Diff that was overlooked must not pass for an update",
			update: func(u *inplace.Update) { u.Change = nil },
			err:    bad,
		},
		"no revision": {
			why: "a pod without revision would count as updated", update: func(u *inplace.Update) { u.Revision = "" }, err: bad,
		},
		"unreadable state": {
			why: "a user must look",
			pod: func(p *corev1.Pod) { p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: "{"} },
			err: bad,
		},
		"unreadable grace": {
			why: "a user must look",
			pod: func(p *corev1.Pod) { p.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: "{"} },
			err: bad,
		},
		"unreadable metadata": {why: "a user must look", pod: func(p *corev1.Pod) {
			p.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: `{"metaDataPatch":"e30x"}`}
		}, err: bad},
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
			a, err := inplace.Next(u, inplace.Policy{}, noon())
			if a.Verdict != tc.want || (err != nil) != (tc.err != nil) {
				t.Errorf("%s: want %q, got %v, %v", tc.why, tc.want, a, err)
			}
		})
	}
}

// TestBeginUnready: a pod with a gate leaves traffic for what restarts a container, and for nothing else by default.
func TestBeginUnready(t *testing.T) {
	sized := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi")),
		container("c2", "app:1", requests("cpu", "1")))
	cpu := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Requests["cpu"] = amounts("cpu", "2")["cpu"]
	}
	memory := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Requests["memory"] = amounts("memory", "2Gi")["memory"]
	}
	restarts := func(at int, name corev1.ResourceName) *corev1.PodTemplateSpec {
		return with(sized, func(p *corev1.PodTemplateSpec) { restartsOn(name)(&p.Spec.Containers[at]) })
	}
	feeds := template(container("c1", "app:1", fed("CONF", "metadata.labels['conf']")))
	reference := inplace.Policy{Unready: inplace.UnreadyAlways}
	cases := map[string]struct {
		why    string
		from   *corev1.PodTemplateSpec
		change func(*corev1.PodTemplateSpec)
		rules  inplace.Policy
		want   bool
	}{
		"image": {
			why: "the container restarts", from: sized, change: image(0, "app:2"), want: true,
		},
		"image, as the reference": {
			why: "the container restarts", from: sized, change: image(0, "app:2"), rules: reference, want: true,
		},
		"image, no gate": {
			why: "nothing could take the pod out", from: with(sized, noGate), change: image(0, "app:2"), rules: reference,
		},
		"label": {why: "nothing restarts", from: sized, change: label("a", "1")},
		"label, as the reference": {
			why: "it takes pods out for every such change", from: sized, change: label("a", "1"), rules: reference, want: true,
		},
		"label, as the reference, no gate": {
			why: "nothing could take the pod out", from: with(sized, noGate), change: label("a", "1"), rules: reference,
		},
		"variable": {
			why: "the daemon restarts the container", from: feeds, change: label("conf", "1"), want: true,
		},
		"cpu": {
			why: "not required is the policy without one", from: sized, change: cpu, rules: reference,
		},
		"cpu that restarts": {
			why: "the policy says so", from: restarts(0, "cpu"), change: cpu, rules: reference, want: true,
		},
		"cpu that restarts, no gate": {
			why: "nothing could take the pod out", from: with(restarts(0, "cpu"), noGate), change: cpu, rules: reference,
		},
		"memory where cpu restarts": {
			why: "another resource's policy does not count", from: restarts(0, "cpu"), change: memory, rules: reference,
		},
		"cpu where another restarts": {
			why: "another container's policy does not count", from: restarts(1, "cpu"), change: cpu, rules: reference,
		},
		"cpu and label, as the reference": {
			why:    "plain metadata may change with resources",
			from:   sized,
			change: func(p *corev1.PodTemplateSpec) { cpu(p); label("a", "1")(p) },
			rules:  reference,
		},
		"cpu and image": {
			why:    "the container restarts for its image",
			from:   sized,
			change: func(p *corev1.PodTemplateSpec) { cpu(p); image(0, "app:2")(p) },
			want:   true,
		},
		"image that is there already": {
			why: "nothing restarts for what it runs", from: sized, change: label("a", "1"), rules: inplace.Policy{},
		},
		"nothing at all": {
			why: "nothing restarts", from: sized, change: func(*corev1.PodTemplateSpec) {},
		},
		"nothing at all, as the reference": {
			why:    "nothing happens, so no traffic is lost",
			from:   sized,
			change: func(*corev1.PodTemplateSpec) {},
			rules:  reference,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(tc.from, "web-1")
			a, err := inplace.Next(inplace.Update{
				Pod: pod, Change: diff(t, tc.from, with(tc.from, tc.change)), Revision: "web-2",
			}, tc.rules, noon())
			if err != nil || a.Verdict != inplace.Write {
				t.Fatalf("%s: want a write, got %v, %v", tc.why, a, err)
			}
			if got := a.Write.Subresource == write.Status; got != tc.want {
				t.Errorf("%s: want %v, got %v", tc.why, tc.want, got)
			}
		})
	}
}
