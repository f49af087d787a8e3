//go:build envtest

package compat

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/config/crd"
)

// testColumns compares what kubectl prints above the objects of each kind.
func testColumns(t *testing.T, s *server) {
	columns := map[schema.GroupVersionKind][][]string{}
	for _, row := range facts(t, "columns.tsv") {
		gvk := schema.FromAPIVersionAndKind(row[0], row[1])
		columns[gvk] = append(columns[gvk], row[2:])
	}
	seen := map[schema.GroupKind]bool{}
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		if seen[gvk.GroupKind()] {
			continue
		}
		seen[gvk.GroupKind()] = true
		s.write(t, m)
		for _, version := range s.versions(t, gvk.GroupKind()) {
			gvk := gvk.GroupKind().WithVersion(version)
			t.Run(version+"/"+m.plural, func(t *testing.T) {
				resource := strings.Join([]string{m.plural, version, gvk.Group}, ".")
				headers(t, s, header(columns[gvk], false), "get", resource)
				wide := header(columns[gvk], true)
				if s.crd(t, gvk.GroupKind()).Spec.Scope == apiextensionsv1.NamespaceScoped {
					wide = append([]string{"NAMESPACE"}, wide...)
				}
				headers(t, s, wide, "get", resource, "-o", "wide", "-A")
			})
		}
	}
}

// header is the first line that kubectl prints for columns of the table. Without any, the server adds the age.
func header(columns [][]string, wide bool) []string {
	names := []string{"NAME"}
	for _, c := range columns {
		if name, priority := c[0], c[2]; wide || priority == "0" {
			names = append(names, strings.ToUpper(name))
		}
	}
	if len(columns) == 0 {
		names = append(names, "AGE")
	}
	return names
}

func headers(t *testing.T, s *server, want []string, args ...string) {
	t.Helper()
	out, err := s.Kubectl(t.Context(), args...)
	if err != nil {
		t.Error(err)
		return
	}
	line, _, _ := strings.Cut(out, "\n")
	if got := strings.Fields(line); !slices.Equal(want, got) {
		t.Errorf("kubectl %s:\nwant %s\ngot  %s", strings.Join(args, " "), strings.Join(want, " "), strings.Join(got, " "))
	}
}

// TestKustomizations installs the CRDs as a user does, with a client-side apply, and uses the storage versions without
// any webhook.
func TestKustomizations(t *testing.T) {
	t.Parallel()
	hub, err := crd.Hub()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, hub)
	for _, dir := range []string{"both", "v1beta1"} {
		// The second over the first: so a platform drops the old version again.
		if out, err := s.Kubectl(t.Context(), "apply", "-k", filepath.Join("..", "..", "config", "crd", dir)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := s.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all"); err != nil {
			t.Fatal(err)
		}
	}
	s.waitForKinds(t)
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		if !slices.Contains(s.versions(t, gvk.GroupKind()), gvk.Version) {
			continue
		}
		t.Run(m.file+"/"+nameOf(fields(t, m.raw)), func(t *testing.T) {
			s.write(t, m)
			s.compare(t, "same version", fields(t, m.raw), read(t, s.resource(t, gvk), m))
		})
	}
}
