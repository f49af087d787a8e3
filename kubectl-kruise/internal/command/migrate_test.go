package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
)

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: d, generation: 1},
  spec: {replicas: 2, selector: {matchLabels: {app: web}},
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "app:1"}]}}}}`

const replicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: default, uid: r, labels: {app: web},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}}`

const replica = `{apiVersion: v1, kind: Pod, metadata: {name: web-1-a, namespace: default, uid: p, labels: {app: web},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r, controller: true}]}, status: {phase: Running}}`

func TestMigrate(t *testing.T) {
	const create = `POST clonesets {"apiVersion":"apps.kruise.io/VERSION","kind":"CloneSet","metadata":` +
		`{"name":"web","namespace":"default"},"spec":{"replicas":REPLICAS,"scaleStrategy":{SCALE},"selector":` +
		`{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":` +
		`[{"image":"app:1","name":"app","resources":{}}]}},"updateStrategy":{UPDATE}}}`
	of := func(replicas, scale, update string) []string {
		return []string{strings.NewReplacer("REPLICAS", replicas, "SCALE", scale, "UPDATE", update).Replace(create)}
	}
	const args = "migrate CloneSet --from Deployment --src-name web --create"
	objects := []string{deployment}
	try(t, map[string]row{
		"create makes no pods": {
			version: "v1beta1", objects: objects, args: args, out: "Successfully created from Deployment/web to CloneSet/web",
			writes: of("0", `"enablePVCReuse":false`, `"rollingUpdate":{"podUpdatePolicy":"ReCreate"},"type":"RollingUpdate"`),
		},
		"create with copy": {
			version: "v1alpha1", objects: objects, args: args + " --copy", out: "Successfully created",
			writes: of("2", `"disablePVCReuse":true`, `"type":"ReCreate"`),
		},
		"migrate of another pair": {
			args: "migrate CloneSet --from Job --src-name web", err: "job to cloneset is not supported",
		},
	})
}

// A move goes on when the pods of the CloneSet are available.
func TestMigrateMoves(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version, object(t, version, deployment),
			object(t, version, strings.Replace(cloneSet, "replicas: 3", "replicas: 0", 1)))
		server.OnWrite(func(_ string, o *unstructured.Unstructured) {
			n, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
			_ = unstructured.SetNestedField(o.Object, n, "status", "availableReplicas")
		})
		got := server.Run(t, command.New, "migrate", "CloneSet", "--from", "Deployment", "--src-name", "web",
			"--interval=1ms")
		want := []string{
			`PATCH clonesets/web [{"op":"test","path":"/spec/replicas","value":0},{"op":"replace","path":"/spec/replicas","value":1}]`,
			`PATCH deployments/web [{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":1}]`,
			`PATCH clonesets/web [{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`,
			`PATCH deployments/web [{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":0}]`,
		}
		if diff := cmp.Diff(want, got.Writes); diff != "" || got.Err != nil {
			t.Errorf("%s: %v\n%s", version, got.Err, diff)
		}
		if !strings.HasSuffix(got.ErrOut, "Successfully migrated 2 replicas from Deployment/web to CloneSet/web\n") {
			t.Errorf("%s: %s", version, got.ErrOut)
		}
	}
}

// In place, the pods change their owner and nothing else.
func TestMigrateInPlace(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version, object(t, version, strings.Replace(deployment, "replicas: 2", "replicas: 1", 1)),
			object(t, version, replicaSet), object(t, version, replica))
		server.OnWrite(func(path string, o *unstructured.Unstructured) {
			switch o.GetKind() {
			case "CloneSet":
				_ = unstructured.SetNestedField(o.Object, "web-1", "status", "updateRevision")
			case "Pod":
				server.Change("clonesets/web", func(set *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(set.Object, int64(1), "status", "replicas")
				})
			}
		})
		got := server.Run(t, command.New, "migrate", "CloneSet", "--from", "Deployment", "--src-name", "web", "--in-place",
			"--interval=1ms", "--timeout-seconds=20")
		if got.Err != nil {
			t.Fatalf("%s: %v %v", version, got.Err, got.Writes)
		}
		var verbs []string
		for _, w := range got.Writes {
			verb, rest, _ := strings.Cut(w, " ")
			name, _, _ := strings.Cut(rest, " ")
			verbs = append(verbs, verb+" "+name)
		}
		want := []string{
			"POST clonesets", "DELETE deployments/web", "DELETE replicasets/web-1", "PATCH pods/web-1-a", "PATCH clonesets/web",
		}
		if diff := cmp.Diff(want, verbs); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
		pod, set := server.Object("pods/web-1-a"), server.Object("clonesets/web")
		if owner := pod.GetOwnerReferences(); len(owner) != 1 || owner[0].Kind != "CloneSet" ||
			pod.GetLabels()["controller-revision-hash"] != "web-1" {
			t.Errorf("%s: %v", version, pod.Object)
		}
		_, limited, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "scaleStrategy", "maxUnavailable")
		if limited || len(set.GetAnnotations()) != 0 {
			t.Errorf("%s: %v", version, set.Object)
		}
	}
}
