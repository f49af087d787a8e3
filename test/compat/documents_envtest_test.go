//go:build envtest

package compat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/document"
)

// existing are the objects that the documents name, beside the samples.
const existing = `
apiVersion: apps.kruise.io/v1beta1
kind: NodeImage
metadata: {name: node-1}
---
apiVersion: apps.kruise.io/v1alpha1
kind: NodePodProbe
metadata: {name: node-1}
---
apiVersion: v1
kind: Namespace
metadata: {name: kruise-system}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: kruise-manager, namespace: kruise-system}
`

// typed are the pages of kinds that tests on real nodes type, until they delete their sample.
var typed = []string{
	"broadcastjob.md", "daemonset.md", "ephemeraljob.md", "podprobemarker.md", "statefulset.md", "uniteddeployment.md",
}

// TestDocumentedCommands runs every command of the pages that no test on real nodes types: kubectl and the API server
// accept each of them, in the order of the page. What a command shows of pods that run is for the tests on real nodes.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Private: true, CRDDirs: []string{"../../config/crd/bases"}})
	run := func(t *testing.T, args ...string) {
		t.Helper()
		if slices.Contains(args, "delete") {
			args = append(args, "--wait=false") // there are no controllers that would finish it
		}
		if out, err := c.Kubectl(t.Context(), args...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "existing.yaml")
	if err := os.WriteFile(file, []byte(existing), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "apply", "-f", "../../config/samples", "-f", file)
	pages, err := filepath.Glob("../../docs/kinds/*.md")
	if err != nil || len(pages) < 9 {
		t.Fatalf("%d pages of kinds, %v", len(pages), err)
	}
	deploy := []string{"apply", "--server-side", "--force-conflicts", "-k", "../../config/default"}
	for _, path := range append(pages, "../../docs/deletion-protection.md", "../../docs/takeover.md",
		"../../docs/operations.md", "../../docs/install.md") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if !strings.Contains(path, "kinds") && !strings.Contains(path, "protection") {
				run(t, deploy...)
			}
			commands, err := document.Commands(path)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(typed, filepath.Base(path)) {
				at := slices.IndexFunc(commands, func(args []string) bool { return args[0] == "delete" })
				commands = commands[at+1:]
			}
			for _, args := range commands {
				run(t, args...)
				if strings.Contains(path, "kinds") && slices.Contains(args, "delete") {
					run(t, "apply", "-f", "../../config/samples", "-f", file) // the page goes on about them
				}
			}
		})
	}
}
