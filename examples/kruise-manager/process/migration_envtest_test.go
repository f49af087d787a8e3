//go:build envtest

package process_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/config/crd/storage"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/migrate"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/document"
)

// removal has the CRDs without the older version.
const removal = "../../../config/crd/v1beta1"

// inEtcd counts the objects of each kind by the version in which etcd holds them, and the writes of those of kinds with
// two versions.
func inEtcd(t *testing.T, c *cluster.Cluster) (held map[string]map[string]int, writes int) {
	t.Helper()
	held = map[string]map[string]int{}
	for _, prefix := range []string{"/registry/apps.kruise.io/", "/registry/policy.kruise.io/"} {
		encode := base64.StdEncoding.EncodeToString
		end := prefix[:len(prefix)-1] + "0" // the byte after the slash
		ask := fmt.Sprintf(`{"key":%q,"range_end":%q}`, encode([]byte(prefix)), encode([]byte(end)))
		response, err := http.Post(c.Etcd+"/v3/kv/range", "application/json", strings.NewReader(ask))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct {
			KVs []struct {
				Value   []byte
				Version int `json:",string"`
			}
		}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		for _, kv := range answer.KVs {
			var object metav1.TypeMeta
			if err := json.Unmarshal(kv.Value, &object); err != nil {
				t.Fatal(err)
			}
			if held[object.Kind] == nil {
				held[object.Kind] = map[string]int{}
			}
			if held[object.Kind][object.GroupVersionKind().Version]++; !single(object.Kind) {
				writes += kv.Version
			}
		}
	}
	return held, writes
}

// single are the kinds with one version.
func single(kind string) bool {
	return slices.Contains([]string{"EphemeralJob", "NodePodProbe", "PodProbeMarker"}, kind)
}

// sent counts requests by method.
type sent struct {
	mu       sync.Mutex
	requests map[string]int
}

func (s *sent) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(q *http.Request) (*http.Response, error) {
		method := q.Method
		if strings.Contains(q.URL.Path, "/customresourcedefinitions/") {
			method += " CRD"
		}
		s.mu.Lock()
		s.requests[method]++
		s.mu.Unlock()
		return next.RoundTrip(q)
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transport) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// denial is a policy of the cluster that refuses each write of one object.
const denial = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: denial}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps.kruise.io], apiVersions: ["*"], operations: [UPDATE], resources: [daemonsets/status]}
  validations:
  - {expression: "object.metadata.name != 'agent'", message: it has a fault}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: denial}
spec: {policyName: denial, validationActions: [Deny]}
`

// deny has the API server refuse writes of one object, until the returned function is called.
func deny(t *testing.T, c *cluster.Cluster) (admit func()) {
	t.Helper()
	file := write(t, denial)
	until := func(denied bool) {
		cluster.Eventually(t, func(ctx context.Context) error {
			_, err := c.Kubectl(ctx, "patch", "daemonsets.apps.kruise.io", "agent", "-n", "fixtures", "--subresource=status",
				"--type=merge", "-p={}", "--dry-run=server")
			if denied != (err != nil) {
				return fmt.Errorf("denied: %v, %w", denied, err)
			}
			return nil
		})
	}
	applyAll(t, c, "-f", file)
	until(true)
	return func() {
		if _, err := c.Kubectl(t.Context(), "delete", "-f", file); err != nil {
			t.Fatal(err)
		}
		until(false)
	}
}

// testMigration rewrites what was left, with the rights of config/migration, beside two replicas that run.
func (in *inherited) testMigration(t *testing.T, c *cluster.Cluster) {
	before, written := inEtcd(t, c)
	objects, older := 0, 0
	for kind, versions := range before {
		if !single(kind) {
			objects, older = objects+versions["v1alpha1"]+versions["v1beta1"], older+versions["v1alpha1"]
		}
	}
	if older < 10 { // reconcilers have written the status of others
		t.Fatalf("etcd holds %d objects in the older version: %v", older, before)
	}
	_, err := c.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", removal)
	if want := `status.storedVersions[0]: Invalid value: "v1alpha1": missing from spec.versions`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("CRDs without the older version are applied: %v", err)
	}
	applyAll(t, c, "-k", "../../../config/migration") // no controller runs its Job
	was := in.kept(t)

	counted := &sent{requests: map[string]int{}}
	config := clientrest.CopyConfig(c.Config)
	config.Impersonate = clientrest.ImpersonationConfig{
		UserName: "system:serviceaccount:kruise-system:kruise-storage-migration",
	}
	config.Wrap(counted.wrap)
	o := migrate.Options{QPS: 1000, Storage: storage.Options{Settle: time.Second, PageSize: 3}}
	var out bytes.Buffer
	o.Storage.DryRun = true
	cluster.Eventually(t, func(ctx context.Context) error { // once the role has an effect
		out.Reset()
		return migrate.Run(ctx, config, o, &out)
	})
	if after, _ := inEtcd(t, c); !cmp.Equal(before, after) {
		t.Errorf("a dry run has written (-before +after):\n%s", cmp.Diff(before, after))
	}
	o.Storage.DryRun, counted.requests = false, map[string]int{}
	admit := deny(t, c)
	err = migrate.Run(t.Context(), config, o, &out)
	if want := "rewrite daemonsets.apps.kruise.io fixtures/agent: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("an object is refused, and the migration ends with %v", err)
	}
	t.Logf("%d of %d objects were stored in the older version; requests %v\n%s",
		older, objects, counted.requests, out.String())
	if n := counted.requests[http.MethodPatch]; n > objects {
		t.Errorf("%d patches of %d objects", n, objects)
	}
	if held, _ := inEtcd(t, c); held["DaemonSet"]["v1alpha1"] != 1 || held["ImagePullJob"]["v1alpha1"] != 0 {
		t.Errorf("etcd holds DaemonSets as %v and ImagePullJobs as %v", held["DaemonSet"], held["ImagePullJob"])
	}
	admit()
	if err := migrate.Run(t.Context(), config, o, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}

	after, _ := inEtcd(t, c)
	for kind, versions := range after {
		if versions["v1alpha1"] > 0 && !single(kind) {
			t.Errorf("etcd holds %s as %v", kind, versions)
		}
	}
	if stored, err := c.Kubectl(t.Context(), "get", "crd", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.storedVersions}{"\n"}{end}`); err != nil ||
		strings.Count(stored, `["v1beta1"]`) != 15 || strings.Count(stored, "v1alpha1") != 3 {
		t.Errorf("the stored versions are %s, %v", stored, err)
	}
	cluster.Eventually(t, func(context.Context) error { return rest(t, map[string]float64{}, nil) })
	if diff := cmp.Diff(was, in.kept(t)); diff != "" {
		t.Errorf("the migration changed (-before +after):\n%s", diff)
	}
	// One write for each object that was stored in the older version: reconcilers have written nothing.
	if _, now := inEtcd(t, c); now-written != older {
		t.Errorf("%d writes, and %d objects were stored in the older version", now-written, older)
	}
}

// testRemoval applies the CRDs without the older version, as step 3 of the removal does, while no replica runs.
func testRemoval(t *testing.T, c *cluster.Cluster) {
	apply := []string{"apply", "--server-side", "--force-conflicts", "-k", removal}
	if _, err := c.Kubectl(t.Context(), append(apply, "--dry-run=server")...); err == nil ||
		!strings.Contains(err.Error(), "spec.conversion") {
		t.Errorf("CRDs that keep a CA without its webhook: %v", err)
	}
	commands, err := document.Commands("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(commands, func(args []string) bool { return slices.Equal(args[:2], []string{"patch", "crd"}) })
	if at < 0 {
		t.Fatal("the guide does not patch the CRDs")
	}
	if _, err := c.Kubectl(t.Context(), commands[at]...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), apply...); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, func(ctx context.Context) error {
		names, err := c.Kubectl(ctx, "get", "clonesets.apps.kruise.io,sidecarsets,podunavailablebudgets", "-A", "-o", "name")
		if err == nil && (!strings.Contains(names, "cloneset.apps.kruise.io/web") ||
			!strings.Contains(names, "sidecarset.apps.kruise.io/fixtures-hot")) {
			err = fmt.Errorf("found %q", names)
		}
		return err
	})
}
