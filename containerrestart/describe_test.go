package containerrestart_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/inplace"
)

// owned belongs to a CloneSet.
func owned(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Controller: ptr.To(true),
	}}
}

// fed takes the variable CONF of a container from an annotation.
func fed(container int, annotation string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[container]
		c.Env = append(c.Env, corev1.EnvVar{Name: "CONF", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"},
		}})
	}
}

func priority(container int, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[container]
		c.Env = append(c.Env, corev1.EnvVar{
			Name:      kruise.ContainerLaunchBarrierEnvName,
			ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: key}},
		})
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func updating(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionFalse,
	})
}

// confHash is the hash of an environment with CONF of a value; of one without such variables for none.
func confHash(values ...string) uint64 {
	p := newPod()
	for _, v := range values {
		fed(0, "conf")(p)
		p.Annotations = map[string]string{"conf": v}
	}
	hash, err := inplace.EnvHash(&p.Spec.Containers[0], nil, p.Annotations)
	if err != nil {
		panic(err)
	}
	return hash
}

func meta(name string, restarts int, plain, env uint64) kruise.RuntimeContainerMeta {
	return kruise.RuntimeContainerMeta{
		Name:         name,
		ContainerID:  id(name, restarts),
		RestartCount: int32(restarts),
		Hashes:       kruise.RuntimeContainerHashes{PlainHash: plain, ExtractedEnvFromMetadataHash: env},
	}
}

func told(metas ...kruise.RuntimeContainerMeta) func(*corev1.Pod) {
	return annotated(kruise.RuntimeContainerMetaKey, text(kruise.RuntimeContainerMetaSet{Containers: metas}))
}

func plain(c containerrestart.Container, hash uint64) containerrestart.Container {
	c.Hash = hash
	return c
}

func TestDescribe(t *testing.T) {
	type view = containerrestart.View
	type containers = []containerrestart.Container
	both := containers{plain(up("app", 0, -60), 7), plain(up("log", 0, -60), 8)}
	none := confHash()
	// The process of app still has CONF=1, and is to have 2.
	stale := []func(*corev1.Pod){
		owned, updating, fed(0, "conf"), annotated("conf", "2"),
		told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, none)),
	}
	two := []func(*corev1.Pod){owned, updating, fed(0, "conf"), fed(1, "conf"), annotated("conf", "2")}
	pod := func(base []func(*corev1.Pod), more ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(append(slices.Clip(base), more...)...)
	}
	cases := map[string]struct {
		why     string
		view    view
		metas   []kruise.RuntimeContainerMeta // nil when nothing is written
		read    []string
		restart []string
		notes   []string
	}{
		"new": {
			why:   "what the runtime tells",
			view:  view{Pod: newPod(owned), Containers: both},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, 0), meta("log", 0, 8, 0)},
		},
		"new, with environments": {
			why:   "without variables from metadata there is nothing to read",
			view:  view{Pod: newPod(owned), Containers: both, Env: true},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, none), meta("log", 0, 8, none)},
		},
		"told already": {
			why:  "nothing to write",
			view: view{Pod: newPod(owned, told(meta("app", 0, 7, none), meta("log", 0, 8, none))), Containers: both, Env: true},
		},
		"other's pods": {why: "nobody asks about them", view: view{Pod: newPod(), Containers: both}},
		"of a built-in": {
			why: "nobody asks about them",
			view: view{
				Pod: newPod(owned, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "apps/v1" }), Containers: both,
			},
		},
		"with a SidecarSet": {
			why:   "its sidecars are updated in place",
			view:  view{Pod: newPod(annotated(kruise.SidecarSetHashKey, "{}")), Containers: both},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, 0), meta("log", 0, 8, 0)},
		},
		"being deleted": {
			why:  "it is no matter any more",
			view: view{Pod: newPod(owned, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(stamp(0)) }), Containers: both},
		},
		"no status": {
			why:  "the kubelet comes first",
			view: view{Pod: newPod(owned, func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), Containers: both},
		},
		"not in the runtime": {
			why:   "it is left out",
			view:  view{Pod: newPod(owned), Containers: both[1:]},
			metas: []kruise.RuntimeContainerMeta{meta("log", 0, 8, 0)},
		},
		"none in the runtime": {
			why:   "what was told is no longer so",
			view:  view{Pod: newPod(owned, told(meta("app", 0, 7, 0)))},
			metas: []kruise.RuntimeContainerMeta{},
		},
		"none yet": {why: "nothing is as good as nothing", view: view{Pod: newPod(owned)}},
		"not in the spec": {
			why:   "no component waits for it",
			view:  view{Pod: newPod(owned, func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }), Containers: both},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, 0)},
		},
		"in the order of the status": {
			why:   "kubelets sort it by name, the spec need not be",
			metas: []kruise.RuntimeContainerMeta{meta("log", 0, 8, 0), meta("app", 0, 7, 0)},
			view: view{
				Pod:        newPod(owned, func(p *corev1.Pod) { s := p.Status.ContainerStatuses; s[0], s[1] = s[1], s[0] }),
				Containers: both,
			},
		},
		"restarted": {
			why:   "only that container is reported again",
			metas: []kruise.RuntimeContainerMeta{meta("app", 1, 9, none), meta("log", 0, 1, 2)},
			view: view{
				Pod:        newPod(owned, told(meta("app", 0, 7, none), meta("log", 0, 1, 2))),
				Containers: append(containers{plain(up("app", 1, 5), 9)}, both...),
				Env:        true,
			},
		},
		"unreadable annotation": {
			why:   "it is written again",
			view:  view{Pod: newPod(owned, annotated(kruise.RuntimeContainerMetaKey, "{")), Containers: both},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, 0), meta("log", 0, 8, 0)},
		},

		"environment to read": {
			why:   "only where it matters",
			view:  view{Pod: newPod(owned, fed(0, "conf")), Containers: both, Env: true},
			read:  []string{id("app", 0)},
			notes: []string{containerrestart.NoteNoEnv},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, 0), meta("log", 0, 8, none)},
		},
		"environment read": {
			why: "the process tells, not the pod",
			view: view{
				Pod:          newPod(owned, fed(0, "conf"), annotated("conf", "2")),
				Containers:   both,
				Env:          true,
				Environments: map[string]map[string]string{id("app", 0): {"CONF": "1", "PATH": "/"}},
			},
			metas: []kruise.RuntimeContainerMeta{meta("app", 0, 7, confHash("1")), meta("log", 0, 8, none)},
		},
		"environment unreadable": {
			why: "the caller tries again",
			view: view{
				Pod:          newPod(owned, fed(0, "conf"), told(meta("app", 0, 7, 0), meta("log", 0, 8, none))),
				Containers:   both,
				Env:          true,
				Environments: map[string]map[string]string{id("app", 0): nil},
			},
			read:  []string{id("app", 0)},
			notes: []string{containerrestart.NoteNoEnv},
		},
		"environment of one that ended": {
			why: "there is no process to read",
			view: view{
				Pod:        newPod(owned, fed(0, "conf"), told(meta("app", 0, 7, 0), meta("log", 0, 8, none))),
				Containers: containers{plain(down("app", 0, -60), 7), both[1]},
				Env:        true,
			},
		},

		"annotation changed in place": {
			why:     "the container restarts",
			view:    view{Pod: newPod(stale...), Containers: both, Env: true},
			restart: []string{"app"},
		},
		"gate off": {why: "nothing is compared", view: view{Pod: newPod(stale...), Containers: both}},
		"annotation patched": {
			why: "nobody took the pod out of traffic",
			view: view{
				Pod: pod(stale, func(p *corev1.Pod) { p.Status.Conditions[3].Status = "True" }), Containers: both, Env: true,
			},
		},
		"being stopped": {
			why:  "no container is stopped twice",
			view: view{Pod: newPod(stale...), Containers: both, Env: true, Stopping: []string{id("app", 0)}},
		},
		"ended on its own": {
			why:  "it starts with the new environment",
			view: view{Pod: newPod(stale...), Containers: containers{plain(down("app", 0, -60), 7), both[1]}, Env: true},
		},
		"right environment": {
			why: "nothing to do", view: view{Pod: pod(stale, annotated("conf", "1")), Containers: both, Env: true},
		},
		"same variable twice": {
			why: "no start would help", view: view{Pod: pod(stale, func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "CONF", Value: "fix"})
			}), Containers: both, Env: true}, notes: []string{containerrestart.NoteNoEnv},
		},

		"two": {
			why: "without priorities all at once",
			view: view{
				Pod:        pod(two, told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("1")))),
				Containers: both,
				Env:        true,
			},
			restart: []string{"app", "log"},
		},
		"two in order": {
			why: "the higher priority first",
			view: view{
				Pod: pod(two, priority(0, "p_-1"), priority(1, "p_5"),
					told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("1")))),
				Containers: both,
				Env:        true,
			},
			restart: []string{"log"},
			notes:   []string{containerrestart.NoteLaunchOrder},
		},
		"one is starting": {
			why: "the next waits for it",
			view: view{
				Pod: pod(two, priority(0, "p_-1"), priority(1, "p_5"),
					told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("1")))),
				Containers: containers{both[0], plain(down("log", 0, -60), 8)},
				Env:        true,
			},
			notes: []string{containerrestart.NoteLaunchOrder},
		},
		"one is not ready": {
			why: "the next waits for that too", notes: []string{containerrestart.NoteLaunchOrder},
			view: view{
				Pod: pod(two, priority(0, "p_-1"), priority(1, "p_5"), func(p *corev1.Pod) {
					p.Status.ContainerStatuses[1].Ready = false
				}, told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("2")))),
				Containers: both,
				Env:        true,
			},
		},
		"one is up": {
			why: "now the next",
			view: view{
				Pod: pod(two, priority(0, "p_-1"), priority(1, "p_5"),
					told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("2")))),
				Containers: both,
				Env:        true,
			},
			restart: []string{"app"},
		},
		"no priority": {
			why: "it waits for nobody",
			view: view{
				Pod:        pod(two, priority(1, "p_5"), told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash("1")))),
				Containers: both,
				Env:        true,
			},
			restart: []string{"app", "log"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := text(tc.view)
			got, err := containerrestart.Describe(tc.view)
			if err != nil {
				t.Fatal(err)
			}
			if text(tc.view) != before {
				t.Error("the view was changed")
			}
			want := ""
			if tc.metas != nil {
				want = text(kruise.RuntimeContainerMetaSet{Containers: tc.metas})
			}
			var restart []string
			for _, k := range got.Restart {
				restart = append(restart, k.Container)
			}
			if diff := cmp.Diff([]any{want, tc.read, tc.restart, tc.notes}, []any{
				got.Annotation, got.Read, restart, codes(got.Notes),
			}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// TestDescribeKill is how a container is stopped that no request is about.
func TestDescribeKill(t *testing.T) {
	p := newPod(owned, updating, fed(0, "conf"), annotated("conf", "2"),
		told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, confHash())))
	hook := httpHook(corev1.HTTPGetAction{Port: port("web"), Path: "bye"})
	cases := map[string]struct {
		why         string
		termination *int64
		deletion    *int64
		want        containerrestart.Kill
	}{
		"nothing noted": {"the least that a container gets", nil, nil, containerrestart.Kill{Grace: 2 * time.Second}},
		"its pod":       {"what the kubelet noted", ptr.To[int64](30), nil, containerrestart.Kill{Grace: 30 * time.Second}},
		"a deletion":    {"it is sooner", ptr.To[int64](30), ptr.To[int64](5), containerrestart.Kill{Grace: 5 * time.Second}},
		"no time":       {"none for the hook", ptr.To[int64](0), nil, containerrestart.Kill{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := plain(up("app", 0, -60), 7)
			app.PreStop, app.Ports, app.TerminationGrace, app.DeletionGrace = &hook, p.Spec.Containers[0].Ports, tc.termination,
				tc.deletion
			d, err := containerrestart.Describe(containerrestart.View{
				Pod: p, Containers: []containerrestart.Container{app, plain(up("log", 0, -60), 8)}, Env: true,
			})
			if err != nil || len(d.Restart) != 1 {
				t.Fatalf("got %+v, %v", d, err)
			}
			tc.want.Container, tc.want.ContainerID, tc.want.Text = "app", id("app", 0),
				"Stopping container app by container meta restarter"
			if tc.want.Grace > 0 {
				tc.want.Hook = &containerrestart.Hook{HTTP: &containerrestart.HTTPGet{URL: "http://10.0.0.7:8080/bye"}}
			}
			if diff := cmp.Diff(tc.want, d.Restart[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// TestDescribedCompletes closes the circle: what is described is what an in-place update waits for.
func TestDescribedCompletes(t *testing.T) {
	p := newPod(owned, updating, fed(0, "conf"), annotated("conf", "2"), annotated(kruise.InPlaceUpdateStateKey,
		`{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"updateEnvFromMetadata":true}`))
	view := containerrestart.View{Pod: p, Env: true, Environments: map[string]map[string]string{
		id("app", 0): {"CONF": "1"}, id("app", 1): {"CONF": "2"},
	}}
	for restarts, want := range []bool{false, true} {
		p.Status.ContainerStatuses[0] = running("app", restarts, 5)
		view.Containers = []containerrestart.Container{up("app", restarts, 5), up("log", 0, -60)}
		d, err := containerrestart.Describe(view)
		if err != nil {
			t.Fatal(err)
		}
		annotated(kruise.RuntimeContainerMetaKey, d.Annotation)(p)
		if completed, note := inplace.Completed(p, inplace.Policy{}); completed != want || (len(d.Restart) == 0) != want {
			t.Errorf("after %d restarts: completed %v, %v; restart %v", restarts, completed, note, d.Restart)
		}
	}
}
