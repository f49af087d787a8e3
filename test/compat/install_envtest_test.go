//go:build envtest

package compat

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	var all []schema.GroupVersionKind
	resources := map[schema.GroupVersionKind]string{}
	for _, m := range manifests(t) {
		kind := gvkOf(fields(t, m.raw)).GroupKind()
		if seen[kind] {
			continue
		}
		seen[kind] = true
		s.write(t, m)
		for _, version := range s.versions(t, kind) {
			gvk := kind.WithVersion(version)
			all, resources[gvk] = append(all, gvk), strings.Join([]string{m.plural, version, kind.Group}, ".")
		}
	}
	// kubectl lists the kinds of a scope at once: a process for each would take most of the time of these tests.
	for _, scope := range []apiextensionsv1.ResourceScope{apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped} {
		var kinds []schema.GroupVersionKind
		var listed []string
		for _, gvk := range all {
			if s.crd(t, gvk.GroupKind()).Spec.Scope == scope {
				kinds, listed = append(kinds, gvk), append(listed, resources[gvk])
			}
		}
		narrow, wide := headers(t, s, listed), headers(t, s, listed, "-o", "wide", "-A")
		for i, gvk := range kinds {
			t.Run(listed[i], func(t *testing.T) {
				want := header(columns[gvk], true)
				if scope == apiextensionsv1.NamespaceScoped {
					want = append([]string{"NAMESPACE"}, want...)
				}
				if diff := cmp.Diff(header(columns[gvk], false), narrow[i]); diff != "" {
					t.Errorf("kubectl get (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want, wide[i]); diff != "" {
					t.Errorf("kubectl get -o wide -A (-want +got):\n%s", diff)
				}
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

// headers returns the first line of the table that kubectl prints for each resource.
func headers(t *testing.T, s *server, resources []string, flags ...string) [][]string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), append([]string{"get", strings.Join(resources, ",")}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for table := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		line, _, _ := strings.Cut(table, "\n")
		all = append(all, strings.Fields(line))
	}
	if len(all) != len(resources) {
		t.Fatalf("kubectl prints %d tables for %d resources:\n%s", len(all), len(resources), out)
	}
	return all
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
