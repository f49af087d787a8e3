package command_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
)

func TestOperate(t *testing.T) {
	web := []string{cloneSet, podOf("web-a"), sidecarSet}
	marked := strings.Replace(cloneSet, "generation: 4",
		"generation: 4, annotations: {kruisekit.dev/paused-by-pause-all: 'true'}", 1)
	const pause = `{"op":"test","path":"/metadata/annotations","value":null},` +
		`{"op":"add","path":"/metadata/annotations","value":{"kruisekit.dev/paused-by-pause-all":"true"}}`
	try(t, map[string]row{
		"protect": {
			objects: web, args: "protect cloneset/web", out: "cloneset.apps.kruise.io/web protected",
			writes: []string{`PATCH clonesets/web [{"op":"test","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels",` +
				`"value":{"policy.kruise.io/delete-protection":"Always"}}]`},
		},
		"protect with dependents": {
			objects: web, args: "protect cloneset/web --cascading", out: "cloneset.apps.kruise.io/web protected",
			writes: []string{`PATCH clonesets/web [{"op":"test","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels",` +
				`"value":{"policy.kruise.io/delete-protection":"Cascading"}}]`},
		},
		"unprotect what is not protected": {
			objects: web, args: "unprotect cloneset/web", out: "cloneset.apps.kruise.io/web unprotected",
		},
		"protect a pod": {objects: web, args: "protect pod/web-a", err: "Pod cannot be protected"},
		"pause-all pauses and marks": {
			version: "v1beta1", objects: web, args: "pause-all", out: "cloneset.apps.kruise.io/web paused\n",
			writes: []string{`PATCH clonesets/web [` + pause +
				`,{"op":"add","path":"/spec/updateStrategy","value":{"rollingUpdate":{"paused":true}}}]`},
		},
		"pause-all of all namespaces pauses SidecarSets, too": {
			version: "v1alpha1", objects: web, args: "pause-all -A", out: "sidecarset.apps.kruise.io/s paused\n",
			writes: []string{
				`PATCH clonesets/web [` + pause + `,{"op":"add","path":"/spec/updateStrategy","value":{"paused":true}}]`,
				`PATCH sidecarsets/s [` + pause + `,{"op":"add","path":"/spec/updateStrategy","value":{"paused":true}}]`,
			},
		},
		"pause-all resumes what it has marked": {
			objects: []string{marked}, args: "pause-all --resume", out: "cloneset.apps.kruise.io/web resumed",
			writes: []string{`PATCH clonesets/web [{"op":"remove","path":"/metadata/annotations/kruisekit.dev~1paused-by-pause-all"}]`},
		},
		"restart of nothing": {objects: []string{cloneSet}, args: "restart cloneset/web", err: "no pods to restart"},
		"pull without waiting": {
			args: "pull app:2 -l gpu=yes --wait=false", out: "imagepulljob.apps.kruise.io/pull-x created",
			writes: []string{`POST imagepulljobs {"apiVersion":"apps.kruise.io/VERSION","kind":"ImagePullJob",` +
				`"metadata":{"generateName":"pull-","namespace":"default"},"spec":{"completionPolicy":` +
				`{"ttlSecondsAfterFinished":600,"type":"Always"},"image":"app:2","parallelism":10,` +
				`"pullPolicy":{"timeoutSeconds":600},"selector":{"matchLabels":{"gpu":"yes"}}}}`},
		},
	})
}

// A restart goes on with the next pod when the request for the first has completed.
func TestRestartInBatches(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version)
		for _, text := range []string{cloneSet, podOf("web-a"), podOf("web-b")} {
			server.Put(t, object(t, version, text))
		}
		server.OnWrite(func(_ string, o *unstructured.Unstructured) {
			_ = unstructured.SetNestedMap(o.Object, map[string]any{
				"phase": "Completed", "completionTime": "2026-01-01T00:00:00Z",
			}, "status")
		})
		got := server.Run(t, command.New, "restart", "cloneset/web", "--interval=1ms", "--containers=c1")
		if got.Err != nil || got.Out != "cloneset.apps.kruise.io/web containers restarted\n" || len(got.Writes) != 2 {
			t.Fatalf("%s: %+v", version, got)
		}
		want := "Restart progress: 0 of 2 pods, 1 under way\nRestart progress: 1 of 2 pods, 1 under way\n" +
			"Restart progress: 2 of 2 pods, 0 under way\n"
		if got.ErrOut != want {
			t.Errorf("%s: %q", version, got.ErrOut)
		}
	}
}

// A pull ends with the job, and names the nodes that failed.
func TestPullFollowsTheJob(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version, object(t, version, `{apiVersion: apps.kruise.io/VERSION, kind: NodeImage, metadata: {name: n1},
			spec: {images: {app: {tags: [{tag: "2"}]}}},
			status: {imageStatuses: {app: {tags: [{tag: "2", phase: Failed, message: no space}]}}}}`))
		server.OnWrite(func(_ string, o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, map[string]any{
				"desired": int64(1), "failed": int64(1), "failedNodes": []any{"n1"}, "completionTime": "2026-01-01T00:00:00Z",
			}, "status")
		})
		got := server.Run(t, command.New, "pull", "app:2", "--interval=1ms")
		want := "Pull of app:2: 0 of 1 nodes succeeded, 0 active, 1 failed\n  n1 ···················· Failed no space\n"
		if got.Err == nil || !strings.Contains(got.Err.Error(), "1 nodes failed: n1") || got.ErrOut != want {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// unhealthy is the event of a kubelet that quotes the output of a probe.
const unhealthy = `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, type: Warning, reason: Unhealthy,
  source: {component: kubelet, host: n1}, involvedObject: {kind: Pod, namespace: default, name: web-a},
  message: "Readiness probe failed: DB_PASSWORD=s3cret"}`

func TestDiagnose(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version)
		manager := strings.Replace(podOf("manager-0"), "namespace: default", "namespace: kruise-system", 1)
		for _, text := range []string{cloneSet, podOf("web-a"), sidecarSet, unhealthy, manager} {
			server.Put(t, object(t, version, text))
		}
		file := filepath.Join(t.TempDir(), "bundle")
		got := server.Run(t, command.New, "diagnose", "-o", file)
		if got.Err != nil || len(got.Writes) != 0 {
			t.Fatalf("%s: %+v", version, got)
		}
		files := unpack(t, file)
		if !strings.Contains(files["objects/clonesets.apps.kruise.io.yaml"], "name: A\n            value: (removed)") {
			t.Errorf("%s: %s", version, files["objects/clonesets.apps.kruise.io.yaml"])
		}
		if !strings.Contains(files["events.txt"], "Pod default/web-a Unhealthy: (removed)") {
			t.Errorf("%s: %s", version, files["events.txt"])
		}
		names := slices.Collect(maps.Keys(files))
		for _, name := range []string{
			"version.yaml", "events.txt", "objects/pods.yaml", "objects/sidecarsets.apps.kruise.io.yaml",
			"logs/manager-0-c1.log", "logs/manager-0-log-2.log",
		} {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no %s among %v", version, name, names)
			}
		}
		if !strings.Contains(got.ErrOut, "Not packed: CustomResourceDefinition.apiextensions.k8s.io") {
			t.Errorf("%s: %s", version, got.ErrOut)
		}
		all := filepath.Join(t.TempDir(), "all")
		if got := server.Run(t, command.New, "diagnose", "-A", "-o", all); got.Err != nil {
			t.Fatalf("%s: %+v", version, got)
		}
		everywhere := unpack(t, all)
		for _, resource := range []string{"nodeimages", "nodepodprobes", "resourcedistributions"} {
			name := "objects/" + resource + ".apps.kruise.io.yaml"
			if _, ok := everywhere[name]; !ok || slices.Contains(names, name) {
				t.Errorf("%s: %s must be packed with -A only", version, name)
			}
		}
	}
}

// unpack returns the files of a bundle.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, packed := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "kruise-diagnose/")] = string(data)
	}
}
