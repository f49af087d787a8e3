package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
)

// shop is a controller of workloads.
const shop = "ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: shop, uid: s, controller: true}]"

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: d, generation: 1},
  spec: {replicas: 2, selector: {matchLabels: {app: web}},
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "app:1"}]}}}}`

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
		"a dry run of create": {
			version: "v1beta1", objects: objects, args: args + " --dry-run=client", out: "CloneSet/web (dry run)",
		},
		"a dry run of a move": {
			version: "v1beta1", objects: []string{deployment, cloneSet}, out: "web 2 -> 0, CloneSet/web 3 -> 5 (dry run)",
			args: "migrate CloneSet --from Deployment --src-name web --dry-run=client",
		},
		"a move from a Deployment with an owner": {
			version: "v1beta1", objects: []string{strings.Replace(deployment, "uid: d", "uid: d, "+shop, 1), cloneSet},
			args: "migrate CloneSet --from Deployment --src-name web", err: "belongs to Shop/shop, which sets its replicas",
		},
		"a check of a cluster without OpenKruise": {
			args: "migrate --check --manager-namespace=kube-kruise",
			out: "Installed\n  Kubernetes v1.34.1\n  neither OpenKruise nor kruisekit\n\nCommands\n" +
				"  helm install kruise charts/kruisekit --set installation.namespace=kube-kruise\n",
		},
		"a check takes no kinds": {args: "migrate CloneSet --check", err: "unknown command"},
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
		server.Change("deployments/web", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas")
		})
		got = server.Run(t, command.New, "migrate", "CloneSet", "--from", "Deployment", "--src-name", "web",
			"--interval=1ms", "--replicas=2", "--max-surge=2")
		want = []string{
			`PATCH clonesets/web [{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":4}]`,
			`PATCH deployments/web [{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":0}]`,
		}
		if diff := cmp.Diff(want, got.Writes); diff != "" || got.Err != nil {
			t.Errorf("%s, two at a time: %v\n%s", version, got.Err, diff)
		}
	}
}
