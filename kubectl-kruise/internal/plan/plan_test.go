package plan_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/exec"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// newServer serves a CloneSet of three pods, in one version.
func newServer(t *testing.T, version string) *apitest.Server {
	t.Helper()
	m := objects.NewModel(t, &v1beta1.CloneSetList{}, v1beta1.AddToScheme)
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), m.Server, o); err != nil {
			t.Fatal(err)
		}
	}
	ids := 0
	r, err := cloneset.New(m.Server, cloneset.Options{
		Now: m.Now, Recorder: m.Server, Live: m.Server,
		NewID: func() string { ids++; return string(rune('a' - 1 + ids)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciler = r
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}}
	set.Spec.Replicas = ptr.To(int32(3))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
	set.Default()
	m.Put(set)
	m.Advance(time.Second)
	m.Still()
	m.Look(set)
	server := apitest.New(t, version)
	if version == "v1beta1" {
		set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("CloneSet"))
		server.Put(t, set)
	} else {
		old := &v1alpha1.CloneSet{}
		if err := old.ConvertFrom(set); err != nil {
			t.Fatal(err)
		}
		old.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CloneSet"))
		server.Put(t, old)
	}
	for _, pod := range m.Pods() {
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		server.Put(t, pod)
	}
	var revisions appsv1.ControllerRevisionList
	if err := m.Server.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	for i := range revisions.Items {
		revision := &revisions.Items[i]
		revision.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
		server.Put(t, revision)
	}
	return server
}

const manifest = `
apiVersion: apps.kruise.io/VERSION
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: "web:1", command: [serve]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
`

// The command prints the same for both versions of the API, and writes nothing.
func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
		err  string
	}{
		"image":              {args: "cloneset/web --image app=web:2", code: 2},
		"image json":         {args: "cloneset/web --image *=web:2 -o json", code: 2},
		"image allowed":      {args: "cloneset/web --image app=web:2 --fail-on recreates"},
		"manifest":           {args: "-f FILE", code: 3},
		"manifest allowed":   {args: "-f FILE --fail-on stuck"},
		"no change":          {args: "cloneset/web", err: "what changes?"},
		"another container":  {args: "cloneset/web --image x=web:2", err: "there is no container x"},
		"no image":           {args: "cloneset/web --image app", err: "must be CONTAINER=IMAGE"},
		"unknown severity":   {args: "cloneset/web --image app=web:2 --fail-on all", err: "must be restarts"},
		"unknown output":     {args: "cloneset/web --image app=web:2 -o wide", err: "must be text or json"},
		"an unsupported one": {args: "pod/web-a --image app=web:2", err: "it is none of the workloads of apps.kruise.io"},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+" "+version, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "new.yaml")
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "VERSION", version)), 0o600); err != nil {
					t.Fatal(err)
				}
				args := append([]string{"plan"}, strings.Fields(strings.ReplaceAll(c.args, "FILE", file))...)
				got := newServer(t, version).Run(t, command.New, args...)
				var exit exec.CodeExitError
				code := 0
				if errors.As(got.Err, &exit) {
					code = exit.Code
				}
				if code != c.code || (got.Err != nil) != (c.code > 0 || c.err != "") {
					t.Errorf("%v, want code %d", got.Err, c.code)
				}
				if c.err != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), c.err)) {
					t.Errorf("%v, want %s", got.Err, c.err)
				}
				if len(got.Writes) > 0 {
					t.Errorf("the command writes: %v", got.Writes)
				}
				if c.err == "" {
					storytest.Compare(t, name, got.Out)
				}
			})
		}
	}
}

// A Deployment asks for a rollout in place by its annotation, or else by the label of its namespace.
func TestPlanDeployment(t *testing.T) {
	const others = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc, namespace: default, uid: set,
		labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web,
		controller: true}]}, spec: {replicas: 1, selector: {matchLabels: {app: web, pod-template-hash: abc}},
		template: {metadata: {labels: {app: web, pod-template-hash: abc}},
		spec: {containers: [{name: app, image: "web:1"}]}}}, status: {replicas: 1, availableReplicas: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-abc-x, namespace: default, uid: pod,
		labels: {app: web, pod-template-hash: abc}, creationTimestamp: "2026-01-01T00:00:00Z",
		ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: set, controller: true}]},
		spec: {nodeName: node-1, containers: [{name: app, image: "web:1"}]}, status: {phase: Running, conditions: [
		{type: ContainersReady, status: "True"}, {type: Ready, status: "True"}],
		containerStatuses: [{name: app, image: "web:1", imageID: "1", containerID: "x://1", ready: true}]}}`
	const changed = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {
		labels: {app: web}}, spec: {containers: [{name: app, image: "web:2"}]}}}}`
	for name, c := range map[string]struct {
		annotation, label string
		denied, manifest  bool
		want              string
		code              int
	}{
		"the annotation": {annotation: `{"kruisekit.dev/rollout": enabled}`, want: "is held for", code: 2},
		"the annotation of the live object": {
			annotation: `{"kruisekit.dev/rollout": enabled}`, manifest: true, want: "is held for", code: 2,
		},
		"the label":                {label: "enabled", want: "is held for", code: 2},
		"the annotation wins":      {annotation: `{"kruisekit.dev/rollout": disabled}`, label: "enabled", want: "of apps/v1"},
		"a namespace without it":   {want: "of apps/v1"},
		"a namespace not readable": {label: "enabled", denied: true, want: "of apps/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.New(t, "v1beta1")
			for text := range strings.SplitSeq(fmt.Sprintf(`{apiVersion: v1, kind: Namespace,
				metadata: {name: default, labels: {kruisekit.dev/rollout: %q}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: web, annotations: %s},
				spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
				spec: {containers: [{name: app, image: "web:1"}]}}}}
---
`, c.label, cmp.Or(c.annotation, "{}"))+others, "---\n") {
				o := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				server.Put(t, o)
			}
			server.Deny(func(r *http.Request) bool { return c.denied && r.URL.Path == "/api/v1/namespaces/default" })
			args := []string{"plan", "deployment/web", "--image", "app=web:2"}
			if c.manifest {
				args = []string{"plan", "-f", filepath.Join(t.TempDir(), "new.yaml")}
				if err := os.WriteFile(args[2], []byte(changed), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := server.Run(t, command.New, args...)
			var exit exec.CodeExitError
			if errors.As(got.Err, &exit); exit.Code != c.code || !strings.Contains(fmt.Sprint(got.Out, got.Err), c.want) {
				t.Errorf("%v, want %d %q\n%s", got.Err, c.code, c.want, got.Out)
			}
		})
	}
}

// A workload that does not exist is created.
func TestNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "VERSION", "v1beta1")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := apitest.New(t, "v1beta1").Run(t, command.New, "plan", "-f", file)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	storytest.Compare(t, "new", got.Out)
}
