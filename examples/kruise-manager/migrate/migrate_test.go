package migrate

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/config/crd/storage"
)

func TestParse(t *testing.T) {
	o, err := Parse(nil)
	if want := (Options{QPS: 20, Storage: storage.Options{Settle: 90 * time.Second}}); err != nil || !cmp.Equal(o, want) {
		t.Errorf("the defaults are %+v, %v", o, err)
	}
	o, err = Parse([]string{"--dry-run", "--qps=5", "--settle=2m", "--kubeconfig=x"})
	want := Options{Kubeconfig: "x", QPS: 5, Storage: storage.Options{DryRun: true, Settle: 2 * time.Minute}}
	if err != nil || !cmp.Equal(o, want) {
		t.Errorf("the options are %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"--qps=0"}, {"--settle=0s"}, {"clonesets"}, {"--feature-gates=x"}} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if _, err := Parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) || !strings.Contains(Usage(), "-dry-run") {
		t.Errorf("the help is %q, %v", Usage(), err)
	}
}

func TestLine(t *testing.T) {
	of := func(r storage.Result) storage.Result {
		r.Target = storage.Target{CRD: "carts", Version: "v1beta1"}
		return r
	}
	for want, p := range map[string]storage.Progress{
		"waiting 1m15s before the first write: API servers may still write older versions of carts": {
			Result: of(storage.Result{}), Wait: 75 * time.Second,
		},
		"carts: 7 of 12 objects rewritten": {Result: of(storage.Result{Objects: 7}), Total: 12},
		"carts: 7 of 12 objects rewritten, 2 failed": {
			Result: of(storage.Result{Objects: 7, Failed: 2}), Total: 12,
		},
		"carts: 3 of 3 objects rewritten, then an error": {
			Result: of(storage.Result{Objects: 3, Err: errors.New("no answer")}), Total: 3,
		},
		"carts: 12 of 12 objects rewritten, only v1beta1 is stored": {
			Result: of(storage.Result{Objects: 12, Pruned: true}), Total: 12,
		},
	} {
		if got := line(p); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestTable(t *testing.T) {
	target := func(crd string) storage.Target { return storage.Target{CRD: crd, Version: "v1beta1"} }
	both := []string{"v1alpha1", "v1beta1"}
	results := []storage.Result{
		{Target: target("carts"), Stored: both, Objects: 12, Pruned: true},
		{Target: target("desks"), Stored: both, Objects: 2, Failed: 1},
		{Target: target("lamps"), Stored: both, Err: errors.New("no answer")},
		{Target: target("sofas")},
		{Target: target("tables"), Stored: []string{"v1beta1"}},
	}
	var out bytes.Buffer
	if err := table(&out, results, false); err != nil {
		t.Fatal(err)
	}
	//nolint:dupword // columns of a table
	want := `CRD     STORED            STORAGE  OBJECTS  RESULT
carts   v1alpha1,v1beta1  v1beta1  12       rewritten
desks   v1alpha1,v1beta1  v1beta1  3        1 failed
lamps   v1alpha1,v1beta1  v1beta1  -        failed
sofas   -                 v1beta1  -        not installed
tables  v1beta1           v1beta1  -        nothing to do
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	out.Reset()
	if err := table(&out, []storage.Result{{Target: target("carts"), Stored: both, Objects: 12}}, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "12       to be rewritten\n") {
		t.Errorf("the table of a dry run is\n%s", out.String())
	}
}

// The role in config/migration has the rights for all kinds that are migrated, and no other.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../../../config/migration/rights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got rbacv1.ClusterRole
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(document, "\nkind: ClusterRole\n") {
			if err := yaml.UnmarshalStrict([]byte(document), &got); err != nil {
				t.Fatal(err)
			}
		}
	}
	targets, err := Targets()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	lists, patches := map[string][]string{}, map[string][]string{}
	for _, target := range targets {
		plural, group, _ := strings.Cut(target.CRD, ".")
		names = append(names, target.CRD)
		lists[group] = append(lists[group], plural)
		patches[group] = append(patches[group], plural+"/status")
	}
	slices.Sort(names)
	rule := func(group, verb string, resources, names []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: resources, ResourceNames: names, Verbs: []string{verb},
		}
	}
	const apps, policy, definitions = "apps.kruise.io", "policy.kruise.io", "apiextensions.k8s.io"
	want := []rbacv1.PolicyRule{
		rule(definitions, "get", []string{"customresourcedefinitions"}, names),
		rule(definitions, "patch", []string{"customresourcedefinitions/status"}, names),
		rule(apps, "list", lists[apps], nil), rule(apps, "patch", patches[apps], nil),
		rule(policy, "list", lists[policy], nil), rule(policy, "patch", patches[policy], nil),
	}
	if diff := cmp.Diff(want, got.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
