//go:build envtest

package podprobemarker_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestAdmission shares one API server, with the generated configuration.
func TestAdmission(t *testing.T) {
	bad := newMarker(t, "default", probe)
	unstructured.RemoveNestedField(bad.Object, "spec", "selector", "matchLabels")
	g := reviewtest.Start(t, reviewtest.Input{Resources: []string{"podprobemarkers"}, Setup: serve(podprobemarker.Options{}), Bad: bad})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	k := reviewtest.Kind{Name: "podprobemarker", New: patched, Versions: []string{"v1alpha1"}}
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Creations", func(t *testing.T) { testCreations(t, g) })
	t.Run("Warnings", func(t *testing.T) { testWarnings(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Off", func(t *testing.T) { k.Off(t, g, serve(podprobemarker.Options{Off: true}), 403) })
}

// serve serves the webhook.
func serve(o podprobemarker.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, _ client.Client) error {
		w := podprobemarker.New(o)
		mgr.GetWebhookServer().Register(podprobemarker.Path, reviewtest.ExceptEarly(w.Validate))
		return nil
	}
}

// newMarker is a marker of probes, which are JSON.
func newMarker(t *testing.T, namespace, probes string) *unstructured.Unstructured {
	t.Helper()
	return patched(t, "v1alpha1", namespace, `{"spec":{"probes":[`+probes+`]}}`)
}

// patched is a valid marker that is changed by a merge patch.
func patched(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	plain := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"PodProbeMarker","metadata":{"generateName":"m-","namespace":%q},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"probes":[%s]}}`, version, namespace, probe)
	m := &unstructured.Unstructured{}
	if err := m.UnmarshalJSON([]byte(plaintest.Patched(t, plain, patch))); err != nil {
		t.Fatal(err)
	}
	return m
}

// with is the valid probe with a replacement in it.
func with(from, to string) string { return strings.Replace(probe, from, to, 1) }

// handler is the valid probe with another handler.
func handler(text string) string { return with(`"exec":{"command":["true"]}`, text) }

// marks is the valid probe with a marker policy in place of the condition.
func marks(text string) string {
	return with(`"podConditionType":"example.com/a"`, `"markerPolicy":`+text)
}

// testManifests applies the manifests of the reference's API unchanged, and once more as an update of something else. Markers have no
// defaults: what is stored is what was sent.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, m := range reviewtest.Manifests(t, "v1alpha1", "podprobemarkers.yaml") {
		m.SetNamespace(namespace)
		sent := plaintest.Encode(t, m.Object["spec"])
		if err := g.Client.Create(t.Context(), m, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", m.GetName(), err)
		}
		if diff := cmp.Diff(sent, plaintest.Encode(t, m.Object["spec"])); diff != "" {
			t.Errorf("%s is stored with another spec (-sent +stored):\n%s", m.GetName(), diff)
		}
		m.SetLabels(map[string]string{"touched": "true"})
		if err := g.Client.Update(t.Context(), m); err != nil {
			t.Errorf("%s: update: %v", m.GetName(), err)
		}
	}
	for _, m := range reviewtest.Manifests(t, "v1alpha1", "podprobemarkers.refused.yaml") {
		m.SetNamespace(namespace)
		reviewtest.Refused(t, g.Client.Create(t.Context(), m), 400, "spec.probes[2].probe.httpGet.host", "spec.probes[3].probe.tcpSocket.host")
	}
}

// testCreations: the webhook rejects every fault of a new marker with 400 and its path.
func testCreations(t *testing.T, g *reviewtest.Ground) {
	const at = "spec.probes[0]."
	namespace := g.Namespace(t)
	for name, c := range map[string]struct {
		probes string
		paths  []string
	}{
		"a condition":            {probe, nil},
		"marks":                  {marks(`[{"state":"Succeeded","labels":{"a":"b"}},{"state":"Failed","annotations":{"a":"b"}}]`), nil},
		"a page":                 {handler(`"httpGet":{"path":"/","port":"http"}`), nil},
		"a port":                 {handler(`"tcpSocket":{"port":80}`), nil},
		"two probes":             {probe + "," + strings.NewReplacer(`"a"`, `"b"`, "example.com/a", "example.com/b").Replace(probe), nil},
		"no probes":              {``, []string{"spec.probes"}},
		"a separator":            {with(`"a"`, `"a#b"`), []string{at + "name"}},
		"no name":                {with(`"a"`, `""`), []string{at + "name"}},
		"a reserved name":        {with(`"a"`, `"Initialized"`), []string{at + "name"}},
		"no container":           {with(`"main"`, `""`), []string{at + "containerName"}},
		"a name twice":           {probe + "," + with("example.com/a", "example.com/b"), []string{"spec.probes[1].name"}},
		"a condition twice":      {probe + "," + with(`"a"`, `"b"`), []string{"spec.probes[1].podConditionType"}},
		"no effect":              {with(`"podConditionType":"example.com/a",`, ``), []string{at + "podConditionType"}},
		"a malformed condition":  {with("example.com/a", "#5invalid"), []string{at + "podConditionType"}},
		"no handler":             {handler(``), []string{at + "probe"}},
		"two handlers":           {handler(`"exec":{"command":["a"]},"tcpSocket":{"port":1}`), []string{at + "probe.tcpSocket"}},
		"no command":             {handler(`"exec":{}`), []string{at + "probe.exec.command"}},
		"no path":                {handler(`"httpGet":{"port":80}`), []string{at + "probe.httpGet.path"}},
		"port 0":                 {handler(`"tcpSocket":{"port":0}`), []string{at + "probe.tcpSocket.port"}},
		"port 65536":             {handler(`"httpGet":{"path":"/","port":65536}`), []string{at + "probe.httpGet.port"}},
		"a long name of a port":  {handler(`"tcpSocket":{"port":"abcdefghijklmnop"}`), []string{at + "probe.tcpSocket.port"}},
		"a host":                 {handler(`"tcpSocket":{"port":1,"host":"example.com"}`), []string{at + "probe.tcpSocket.host"}},
		"a scheme":               {handler(`"httpGet":{"path":"/","port":80,"scheme":"FTP"}`), []string{at + "probe.httpGet.scheme"}},
		"a header":               {handler(`"httpGet":{"path":"/","port":80,"httpHeaders":[{"name":"a b","value":""}]}`), []string{at + "probe.httpGet.httpHeaders[0].name"}},
		"negative numbers":       {handler(`"exec":{"command":["a"]},"periodSeconds":-1,"failureThreshold":-1`), []string{at + "probe.periodSeconds", at + "probe.failureThreshold"}},
		"an unknown state":       {marks(`[{"state":"Unknown","labels":{"a":"b"}}]`), []string{at + "markerPolicy[0].state"}},
		"a state twice":          {marks(`[{"state":"Failed","labels":{"a":"b"}},{"state":"Failed","labels":{"a":"c"}}]`), []string{at + "markerPolicy[1].state"}},
		"no marks":               {marks(`[{"state":"Failed"}]`), []string{at + "markerPolicy[0].labels"}},
		"a malformed label":      {marks(`[{"state":"Failed","labels":{"a":"b c"}}]`), []string{at + "markerPolicy[0].labels"}},
		"a malformed annotation": {marks(`[{"state":"Failed","annotations":{"a b":"c"}}]`), []string{at + "markerPolicy[0].annotations"}},
		"faults of two probes":   {with(`"a"`, `""`) + "," + with(`["true"]`, `[]`), []string{at + "name", "spec.probes[1].probe.exec.command", "spec.probes[1].podConditionType"}},
	} {
		t.Run(name, func(t *testing.T) {
			reviewtest.Judged(t, g.Client.Create(t.Context(), newMarker(t, namespace, c.probes), client.DryRunAll), 400, c.paths...)
		})
	}
	for name, selector := range map[string]any{
		"an empty selector":    map[string]any{},
		"a malformed selector": map[string]any{"matchLabels": map[string]any{"a": "b c"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMarker(t, namespace, probe)
			m.Object["spec"].(map[string]any)["selector"] = selector
			path := map[bool]string{true: "spec.selector", false: "spec.selector.matchLabels"}[name == "an empty selector"]
			reviewtest.Refused(t, g.Client.Create(t.Context(), m, client.DryRunAll), 400, path)
		})
	}
}

// testWarnings: a condition that is valid and is never written is a warning.
func testWarnings(t *testing.T, g *reviewtest.Ground) {
	warnings, err := g.Warnings(t, newMarker(t, g.Namespace(t), with("example.com/a", "Ready")))
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.probes[0].podConditionType: ") {
		t.Errorf("warnings %q, %v", warnings, err)
	}
}

// testUpdates: the selector is immutable, and a fault that the stored marker has rejects no update.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	valid := newMarker(t, namespace, probe)
	faulty := newMarker(t, namespace, with(`["true"]`, `[]`))
	faulty.SetGenerateName("")
	faulty.SetName(reviewtest.Early)
	faulty.SetFinalizers([]string{"example.com/hold"})
	for _, m := range []*unstructured.Unstructured{valid, faulty} {
		if err := g.Client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		marker *unstructured.Unstructured
		change string
		paths  []string
	}{
		"other probes":          {valid, `{"spec":{"probes":[` + with(`"true"`, `"false"`) + `]}}`, nil},
		"a label":               {valid, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		"another selector":      {valid, `{"spec":{"selector":{"matchLabels":{"app":"db"}}}}`, []string{"spec.selector"}},
		"a new fault":           {valid, `{"spec":{"probes":[]}}`, []string{"spec.probes"}},
		"a stored fault":        {faulty, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		"a fault beside it":     {faulty, `{"spec":{"selector":{"matchLabels":{"app":"db"}}}}`, []string{"spec.selector"}},
		"a new fault beside it": {faulty, `{"spec":{"probes":[` + strings.Replace(with(`["true"]`, `[]`), `"main"`, `""`, 1) + `]}}`, []string{"spec.probes[0].containerName"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := client.RawPatch(types.MergePatchType, []byte(c.change))
			reviewtest.Judged(t, g.Client.Patch(t.Context(), c.marker.DeepCopy(), change, client.DryRunAll), 400, c.paths...)
		})
	}
	t.Run("status", func(t *testing.T) {
		m := faulty.DeepCopy()
		change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1,"matchedPods":2}}`))
		if err := g.Client.Status().Patch(t.Context(), m, change); err != nil {
			t.Error(err)
		}
	})
	t.Run("finalizer", func(t *testing.T) { g.Leave(t, faulty) })
}
