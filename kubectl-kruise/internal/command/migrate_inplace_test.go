package command_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// settled is a world of two pods: a Deployment with its ReplicaSet, or a StatefulSet.
type settled struct {
	kind, source, target string
	args                 []string
	objects              []string
	// pods are the names of the pods, and holder the UID of what controls them.
	pods   []string
	holder string
}

const (
	spec = `spec: {replicas: 2, selector: {matchLabels: {app: web}},
	template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "app:1"}]}}}`
	counts = `status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, updateRevision: r-1}`
	held   = `{apiVersion: v1, kind: Pod, metadata: {name: NAME, namespace: default, uid: NAME,
	labels: {app: web, pod-template-hash: r-1, controller-revision-hash: r-1},
	ownerReferences: [{apiVersion: apps/v1, kind: KIND, name: SET, uid: UID, controller: true}]}, status: {phase: Running}}`
)

func heldPod(name, kind, set, uid string) string {
	return strings.NewReplacer("NAME", name, "KIND", kind, "SET", set, "UID", uid).Replace(held)
}

func settledDeployment() settled {
	return settled{
		kind: "Deployment", source: "deployments/web", target: "clonesets/web", holder: "r",
		args: []string{"migrate", "CloneSet", "--from", "Deployment", "--src-name", "web", "--in-place"},
		pods: []string{"web-a", "web-b"}, objects: []string{
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: d, generation: 1}, " +
				spec + ", " + counts + "}",
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: default, uid: r,
				labels: {app: web, pod-template-hash: r-1},
				ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, ` +
				spec + ", status: {replicas: 2}}",
			heldPod("web-a", "ReplicaSet", "web-1", "r"), heldPod("web-b", "ReplicaSet", "web-1", "r"),
		},
	}
}

func settledStatefulSet() settled {
	return settled{
		kind: "StatefulSet", source: "apps/v1/namespaces/default/statefulsets/web",
		target: "apps.kruise.io/VERSION/namespaces/default/statefulsets/web", holder: "d",
		args: []string{"migrate", "StatefulSet", "--from", "StatefulSet", "--src-name", "web"},
		pods: []string{"web-0", "web-1"}, objects: []string{
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: default, uid: d, generation: 1}, " +
				strings.Replace(spec, "replicas", `persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, replicas`, 1) +
				", " + counts + "}",
			heldPod("web-0", "StatefulSet", "web", "d"), heldPod("web-1", "StatefulSet", "web", "d"),
		},
	}
}

// serve returns a server with the world and with the reconciler of the target, which counts the pods that it owns.
func (w settled) serve(t *testing.T, version string) *apitest.Server {
	t.Helper()
	server := apitest.New(t, version)
	for _, text := range w.objects {
		server.Put(t, object(t, version, text))
	}
	server.OnWrite(func(_ string, o *unstructured.Unstructured) {
		if o.GetKind() == "CloneSet" || kinds.Is(o, "StatefulSet") {
			_ = unstructured.SetNestedField(o.Object, "r-2", "status", "updateRevision")
		}
		if o.GetKind() != "Pod" {
			return
		}
		owned := int64(0)
		for _, name := range w.pods {
			if pod := server.Object("pods/" + name); pod != nil && ownedBy(pod) == "uid-of-web" {
				owned++
			}
		}
		server.Change(strings.ReplaceAll(w.target, "VERSION", version), func(set *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(set.Object, owned, "status", "replicas")
		})
	})
	return server
}

func ownedBy(pod *unstructured.Unstructured) string {
	return string(ptr.Deref(metav1.GetControllerOf(pod), metav1.OwnerReference{}).UID)
}

func (w settled) run(t *testing.T, server *apitest.Server, args ...string) apitest.Result {
	t.Helper()
	return server.Run(t, command.New, slices.Concat(w.args, []string{"--interval=1ms", "--timeout-seconds=1"}, args)...)
}

// verbsOf are the writes without their bodies, and without dry runs.
func verbsOf(writes []string) (verbs []string) {
	for _, w := range writes {
		verb, rest, _ := strings.Cut(w, " ")
		if name, rest, _ := strings.Cut(rest, " "); !strings.HasPrefix(rest, "(dry run)") {
			verbs = append(verbs, verb+" "+name)
		}
	}
	return verbs
}

// acts checks that the target has all pods that live, and replaces and updates pods.
func (w settled) acts(t *testing.T, server *apitest.Server, version string) {
	t.Helper()
	set := server.Object(strings.ReplaceAll(w.target, "VERSION", version))
	if server.Object(w.source) != nil || set == nil {
		t.Fatalf("the source is not gone, or the target is: %v", set)
	}
	_, limited, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "scaleStrategy", "maxUnavailable")
	if limited || kinds.Paused(set) || set.GetAnnotations()["kruisekit.dev/migrating-from"] != "" {
		t.Errorf("the target does not act: %v", set.Object)
	}
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	if w.kind == "StatefulSet" && policy != "Delete" {
		t.Errorf("the policy of claims is %q", policy)
	}
	for _, name := range w.pods {
		pod := server.Object("pods/" + name)
		if pod != nil && (ownedBy(pod) != "uid-of-web" || pod.GetLabels()["controller-revision-hash"] != "r-2") {
			t.Errorf("pod %v", pod.Object)
		}
	}
}

// Pods change their owner and nothing else: those of a StatefulSet before it is deleted.
func TestMigrateInPlace(t *testing.T) {
	for _, version := range versions() {
		for _, row := range []struct {
			settled
			want []string
		}{
			{settledDeployment(), []string{
				"POST clonesets", "DELETE deployments/web", "DELETE replicasets/web-1", "PATCH pods/web-a", "PATCH pods/web-b",
				"PATCH clonesets/web",
			}},
			{settledStatefulSet(), []string{
				"POST statefulsets", "PATCH pods/web-0", "PATCH pods/web-1", "DELETE statefulsets/web", "PATCH statefulsets/web",
			}},
		} {
			server := row.serve(t, version)
			got := row.run(t, server)
			if diff := cmp.Diff(row.want, verbsOf(got.Writes)); diff != "" || got.Err != nil {
				t.Fatalf("%s %s: %v\n%s", version, row.kind, got.Err, diff)
			}
			row.acts(t, server, version)
			if n := strings.Count(got.ErrOut, "The way back"); n != 3 {
				t.Errorf("%d ways back in\n%s", n, got.ErrOut)
			}
			if again := row.run(t, server); again.Err != nil || len(again.Writes) > 0 {
				t.Errorf("a call after the migration: %v %v", again.Err, again.Writes)
			}
		}
	}
}

// A state in which pods would be lost, restart, or count as updated that are not, is refused before the first write.
func TestMigrateInPlaceRefuses(t *testing.T) {
	deployment, statefulSet := settledDeployment(), settledStatefulSet()
	for name, row := range map[string]struct {
		world    settled
		old, new string // a replacement in the objects
		more     string // another object
		want     string
	}{
		"a rollout that is paused half way": {
			deployment, "updatedReplicas: 2", "updatedReplicas: 1", "", "wants 2 replicas, has 2, and 1 are updated",
		},
		"a change that the controller has not seen": {
			deployment, "observedGeneration: 1", "observedGeneration: 0", "", "has not observed its last change",
		},
		"a pod that is not ready": {statefulSet, "readyReplicas: 2", "readyReplicas: 1", "", "1 ready"},
		"an owner":                {deployment, "uid: d, generation: 1", "uid: d, generation: 1, " + shop, "", "to Shop/shop"},
		"a second ReplicaSet with pods": {
			world: deployment, more: strings.NewReplacer("web-1", "web-0", "uid: r,", "uid: q,").Replace(deployment.objects[1]),
			want: "has pods of ReplicaSet/web-1, too",
		},
		"the ReplicaSet of another Deployment": {
			world: deployment, more: strings.NewReplacer("web-1", "x", "uid: r,", "uid: x,", "uid: d", "uid: e").Replace(
				deployment.objects[1]), want: "ReplicaSet/x has the labels that Deployment/web selects",
		},
		"a pod that terminates": {
			deployment, "uid: web-a,", `uid: web-a, deletionTimestamp: "2026-01-01T00:00:00Z",`, "", "pod web-a terminates",
		},
		"a pod of a Job": {
			world: deployment, more: heldPod("batch-a", "Job", "batch", "j"), want: "and belongs to Job/batch",
		},
		"a pod without a controller": {
			world: statefulSet, want: "and no controller",
			more: strings.ReplaceAll(heldPod("x", "K", "k", "k"), "controller: true", ""),
		},
		"a pod of an older template": {
			statefulSet, "controller-revision-hash: r-1", "controller-revision-hash: r-0", "", "pod web-1 has an older template",
		},
		"another target": {
			world: statefulSet, more: strings.NewReplacer("apps/v1", "apps.kruise.io/VERSION", "app:1", "app:0").Replace(
				statefulSet.objects[0]), want: "StatefulSet.apps.kruise.io/web exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			row.world.objects = slices.Clone(row.world.objects)
			for i := range row.world.objects {
				row.world.objects[i] = strings.ReplaceAll(row.world.objects[i], row.old, row.new)
			}
			server := row.world.serve(t, "v1beta1")
			if row.more != "" {
				server.Put(t, object(t, "v1beta1", row.more))
			}
			for _, dryRun := range []string{"none", "server", "client"} {
				got := row.world.run(t, server, "--dry-run="+dryRun)
				if got.Err == nil || !strings.Contains(got.Err.Error(), row.want) || len(got.Writes) > 0 {
					t.Errorf("--dry-run=%s: %v, want %q; writes %v", dryRun, got.Err, row.want, got.Writes)
				}
			}
		})
	}
}

// A target of the name must be the one that an interrupted call made of the source as the source is now.
func TestMigrateInPlaceKeepsToItsTarget(t *testing.T) {
	for name, change := range map[string]func(*apitest.Server, string){
		"the target has another size": func(s *apitest.Server, target string) {
			s.Change(target, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas")
			})
		},
		"the source has another spec": func(s *apitest.Server, _ string) {
			s.Change("deployments/web", func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, int64(2), "spec", "minReadySeconds")
			})
		},
	} {
		w := settledDeployment()
		server := w.serve(t, "v1beta1")
		server.Deny(func(r *http.Request) bool { return r.Method == http.MethodDelete })
		if got := w.run(t, server); got.Err == nil || server.Object(w.target) == nil {
			t.Fatalf("%s: %v", name, got.Err)
		}
		server.Deny(nil)
		change(server, w.target)
		if got := w.run(t, server); got.Err == nil || !strings.Contains(got.Err.Error(), "not what they were") ||
			len(got.Writes) > 0 {
			t.Errorf("%s: %v %v", name, got.Err, got.Writes)
		}
	}
}

// A dry run prints the fate of each pod. On the server it finds what the API server refuses, and stores nothing.
func TestMigrateInPlaceRehearses(t *testing.T) {
	for _, w := range []settled{settledDeployment(), settledStatefulSet()} {
		server := w.serve(t, "v1beta1")
		for _, dryRun := range []string{"client", "server"} {
			got := w.run(t, server, "--dry-run="+dryRun)
			if n := strings.Count(got.Out, "keeps running, and changes its owner (dry run)"); n != 2 || got.Err != nil ||
				len(verbsOf(got.Writes)) > 0 || (dryRun == "server") != (len(got.Writes) > 3) {
				t.Errorf("%s %s: %v, %q, writes %v", w.kind, dryRun, got.Err, got.Out, got.Writes)
			}
		}
		server.Deny(func(r *http.Request) bool { return r.Method == http.MethodPatch })
		got := w.run(t, server)
		if verbs := verbsOf(got.Writes); got.Err == nil || len(verbs) != 1 || server.Object(w.source) == nil {
			t.Errorf("%s: pods must not be patched: %v, writes %v", w.kind, got.Err, verbs)
		}
	}
}

// A call that fails at one of its writes prints the way back, and the next call goes on.
func TestMigrateInPlaceGoesOn(t *testing.T) {
	for _, w := range []settled{settledDeployment(), settledStatefulSet()} {
		failures := 0
		for ; ; failures++ {
			server := w.serve(t, "v1alpha1")
			writes := 0
			server.Deny(func(r *http.Request) bool {
				if r.Method != http.MethodGet {
					writes++
				}
				return writes == failures+1 && r.Method != http.MethodGet
			})
			first := w.run(t, server)
			server.Deny(nil)
			if first.Err == nil {
				break
			}
			if failures > 0 && !strings.Contains(first.Err.Error(), "The way back: \n  ") {
				t.Errorf("%s, write %d: %v", w.kind, failures, first.Err)
			}
			if got := w.run(t, server); got.Err != nil {
				t.Errorf("%s, write %d: %v after %v", w.kind, failures, got.Err, first.Err)
			}
			w.acts(t, server, "v1alpha1")
		}
		if failures < 8 {
			t.Errorf("%s: %d writes", w.kind, failures)
		}
	}
}

// A pod that ends meanwhile, or a reconciler that does not count in time, leaves a target that replaces pods.
func TestMigrateInPlaceEndsWithoutAPod(t *testing.T) {
	for name, end := range map[string]func(*apitest.Server){
		"a pod is gone": func(s *apitest.Server) { s.Delete("pods/web-b") },
		"a pod has failed": func(s *apitest.Server) {
			s.Change("pods/web-b", func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, string(corev1.PodFailed), "status", "phase")
			})
		},
	} {
		w := settledDeployment()
		server := w.serve(t, "v1beta1")
		ended := false
		server.Deny(func(*http.Request) bool {
			if server.Object("replicasets/web-1") == nil && !ended {
				ended = true
				end(server)
			}
			return false
		})
		w.pods = w.pods[:1]
		if got := w.run(t, server); got.Err != nil || !ended {
			t.Errorf("%s: %v", name, got.Err)
		}
		w.acts(t, server, "v1beta1")
	}
	w := settledDeployment()
	server := w.serve(t, "v1beta1")
	server.OnWrite(func(_ string, o *unstructured.Unstructured) {
		if o.GetKind() == "CloneSet" {
			_ = unstructured.SetNestedField(o.Object, "r-2", "status", "updateRevision")
		}
	})
	if got := w.run(t, server); got.Err == nil || !strings.Contains(got.Err.Error(), "timed out") {
		t.Errorf("%v", got.Err)
	}
	w.acts(t, server, "v1beta1")
}
