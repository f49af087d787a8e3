//go:build envtest

package probes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

// TestServer is about one API server, with the reconcilers and the daemon under the rights of config.
func TestServer(t *testing.T) {
	g := newGround(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *ground)
	}{
		{"results mark pods", testResults},
		{"malformed", testMalformed},
		{"the end", testEnd},
		{"policy", testPolicy},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.test(t, g) }) {
			return
		}
	}
}

// idle is a marker with a command and a page.
func (g *ground) idle() *v1alpha1.PodProbeMarker {
	m := markerOf("idle", "web", "idle", "page")
	m.Namespace, m.Generation = g.Namespace, 0
	m.Spec.Probes[1].Probe.Exec = nil
	m.Spec.Probes[1].Probe.HTTPGet = &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("page")}
	return m
}

// testResults: a command in a container and a page of a pod become conditions, labels and annotations, and a flip costs
// one write.
func testResults(t *testing.T, g *ground) {
	g.reconcile()
	g.readyNode(daemonNode)
	pod := g.runs("web-0", daemonNode, "web")
	g.daemonOn(daemonNode)
	g.runtime.Add(critest.Container{
		ID: "web-0", PodUID: string(pod.UID), PodName: pod.Name, PodNamespace: pod.Namespace, Name: "main",
	})
	g.answer("web-0", true, true)
	m := g.idle()
	g.create(m)
	g.marks(pod, "idle-idle=True idle-page=True app:web idle-idle:good idle-page:good")
	g.Until(func() error {
		if err := g.Look(m); err != nil || m.Status.MatchedPods != 1 || m.Status.ObservedGeneration != m.Generation ||
			len(m.Finalizers) != 1 {
			return fmt.Errorf("status %+v, finalizers %v, %w", m.Status, m.Finalizers, err)
		}
		return nil
	})
	g.Still()
	g.Asked()
	g.answer("web-0", false, true)
	g.marks(pod, "idle-idle=False idle-page=True app:web idle-idle:bad idle-page:good @idle-idle:bad")
	g.Still()
	if writes := g.writes(); fmt.Sprint(writes) != "[PATCH pods/web-0/status 200]" {
		t.Errorf("a flip cost %q", writes)
	}
	g.answer("web-0", false, false)
	g.marks(pod, "idle-idle=False idle-page=False app:web idle-idle:bad idle-page:bad @idle-idle:bad @idle-page:bad")
	for _, c := range pod.Status.Conditions {
		if c.Type == "example.com/idle-page" && c.Message != "HTTP probe failed with statuscode: 500" ||
			c.Type == "example.com/idle-idle" && c.Message != "busy" {
			t.Errorf("condition %+v", c)
		}
	}
	g.Until(func() error {
		if events := g.Events(pod, "KruiseProbeFailed"); len(events) != 2 {
			return fmt.Errorf("events %q", events)
		}
		return nil
	})
}

// writes are those of the manager since the last time.
func (g *ground) writes() []string {
	var writes []string
	for _, r := range g.Asked() {
		if !strings.HasPrefix(r, "GET ") {
			writes = append(writes, r)
		}
	}
	return writes
}

// testMalformed: a marker that cannot be decoded hides no other one, and has an event.
func testMalformed(t *testing.T, g *ground) {
	bad := &unstructured.Unstructured{}
	text := fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: %s, name: bad}
spec: {selector: {matchLabels: {app: web}}, probes: [{name: a, containerName: main, podConditionType: a, probe: {periodSeconds: 99999999999, tcpSocket: {port: 1}}}]}`,
		g.Namespace)
	if err := yaml.Unmarshal([]byte(text), &bad.Object); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Create(g.Context(), bad); err != nil {
		t.Log(err)
		t.Skip("API servers from 1.36 on refuse what cannot be decoded")
	}
	defer g.Gone(bad)
	g.Until(func() error {
		if events := g.Events(bad, "InvalidSpec"); len(events) == 0 {
			return fmt.Errorf("no event")
		}
		return nil
	})
	g.answer("web-0", true, true)
	g.marks(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "web-0"}},
		"idle-idle=True idle-page=True app:web idle-idle:good idle-page:good")
}

// testEnd: a deleted marker leaves the nodes, and then goes; the NodePodProbe of a node goes with the node.
func testEnd(t *testing.T, g *ground) {
	m := g.idle()
	if err := g.Client.Delete(g.Context(), m); err != nil {
		t.Fatal(err)
	}
	g.gone(m)
	n := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: daemonNode}}
	if err := g.Look(n); err != nil || len(n.Spec.PodProbes) != 0 {
		t.Errorf("the node probes %+v, %v", n.Spec.PodProbes, err)
	}
	g.Gone(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: daemonNode}})
	g.gone(n)
	g.Still()
	if failed := requests.About(g.Asked(), " 403"); len(failed) > 0 {
		t.Errorf("the manager lacks rights: %q", failed)
	}
}

// testPolicy: the policy in the place of the webhook rejects what package podprobe finds in the same specs, and no
// change of a marker that has the same fault already.
func testPolicy(t *testing.T, g *ground) {
	const good = `{name: a, containerName: main, podConditionType: example.com/a, probe: {exec: {command: ["true"]}}}`
	const selector = `{matchLabels: {app: policy}}`
	faulty := g.parse("stored", selector, strings.Replace(good, `["true"]`, `[]`, 1))
	g.create(faulty)
	g.apply("-f", "../../config/webhook/podprobemarker-policy.yaml")
	try := func(selector, probes string) (*v1alpha1.PodProbeMarker, error) {
		m := g.parse("try", selector, probes)
		return m, g.Client.Create(g.Context(), m.DeepCopy(), client.DryRunAll)
	}
	g.Until(func() error {
		if _, err := try(`{}`, good); err == nil {
			return fmt.Errorf("the policy does not decide yet")
		}
		return nil
	})
	with := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	handler := func(text string) string { return with(`exec: {command: ["true"]}`, text) }
	marks := func(text string) string { return with(`podConditionType: example.com/a`, "markerPolicy: "+text) }
	for name, c := range map[string][2]string{
		"good":               {selector, good},
		"expressions":        {`{matchExpressions: [{key: a, operator: Exists}]}`, good},
		"no selector":        {`{}`, good},
		"no probes":          {selector, ``},
		"no name":            {selector, with("name: a", `name: ""`)},
		"separator":          {selector, with("name: a", `name: "a#b"`)},
		"reserved":           {selector, with("name: a", `name: Ready`)},
		"no container":       {selector, with("containerName: main", `containerName: ""`)},
		"no effect":          {selector, with("podConditionType: example.com/a, ", ``)},
		"two of a name":      {selector, good + ", " + with("example.com/a", "example.com/b")},
		"two of a condition": {selector, good + ", " + with("name: a", "name: b")},
		"two": {
			selector, good + ", " + strings.NewReplacer("name: a", "name: b", "example.com/a", "example.com/b").Replace(good),
		},
		"no handler":             {selector, handler(``)},
		"two handlers":           {selector, handler(`exec: {command: [a]}, tcpSocket: {port: 1}`)},
		"no command":             {selector, handler(`exec: {}`)},
		"tcp":                    {selector, handler(`tcpSocket: {port: 80}`)},
		"tcp by name":            {selector, handler(`tcpSocket: {port: http-1}`)},
		"tcp elsewhere":          {selector, handler(`tcpSocket: {port: 80, host: example.com}`)},
		"port 0":                 {selector, handler(`tcpSocket: {port: 0}`)},
		"port 65536":             {selector, handler(`httpGet: {path: /, port: 65536}`)},
		"port of digits":         {selector, handler(`tcpSocket: {port: "80"}`)},
		"port of two hyphens":    {selector, handler(`tcpSocket: {port: a--b}`)},
		"port of hyphens around": {selector, handler(`tcpSocket: {port: -a}`)},
		"a long port":            {selector, handler(`tcpSocket: {port: abcdefghijklmnop}`)},
		"http":                   {selector, handler(`httpGet: {path: /, port: 80}`)},
		"https":                  {selector, handler(`httpGet: {path: /, port: 80, scheme: HTTPS}`)},
		"ftp":                    {selector, handler(`httpGet: {path: /, port: 80, scheme: FTP}`)},
		"http elsewhere":         {selector, handler(`httpGet: {path: /, port: 80, host: example.com}`)},
		"no path":                {selector, handler(`httpGet: {port: 80}`)},
		"grpc":                   {selector, handler(`grpc: {port: 9090}`)},
		"grpc of no port":        {selector, handler(`grpc: {port: 0}`)},
		"negative":               {selector, handler(`exec: {command: [a]}, periodSeconds: -1`)},
		"labels": {
			selector, marks(`[{state: Succeeded, labels: {a: b}}, {state: Failed, annotations: {a: b}}]`),
		},
		"unknown state":   {selector, marks(`[{state: Unknown, labels: {a: b}}]`)},
		"one state twice": {selector, marks(`[{state: Failed, labels: {a: b}}, {state: Failed, labels: {a: c}}]`)},
		"no marks":        {selector, marks(`[{state: Failed}]`)},
		"no policies":     {selector, marks(`[]`)},
	} {
		m, err := try(c[0], c[1])
		faults := podprobe.Validate(m)
		if (err != nil) != (len(faults) > 0) || err != nil && !strings.Contains(err.Error(), "kruisekit-podprobemarker") {
			t.Errorf("%s: the webhook finds %v, the policy %v", name, faults, err)
		}
	}
	for change, want := range map[string]bool{
		`{"metadata":{"labels":{"a":"b"}}}`:                     true,
		`{"spec":{"selector":{"matchExpressions":[]}}}`:         true,
		`{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`: false,
		`{"spec":{"probes":[]}}`:                                false,
		`{"metadata":{"finalizers":["kruise.io/other"]}}`:       true,
	} {
		err := g.Client.Patch(g.Context(), faulty.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(change)), client.DryRunAll)
		if (err == nil) != want {
			t.Errorf("%s of a marker with a fault: %v", change, err)
		}
	}
}

// parse makes a marker.
func (g *ground) parse(name, selector, probes string) *v1alpha1.PodProbeMarker {
	g.Helper()
	m := &v1alpha1.PodProbeMarker{}
	text := fmt.Sprintf(`{metadata: {namespace: %s, name: %s}, spec: {selector: %s, probes: [%s]}}`,
		g.Namespace, name, selector, probes)
	if err := yaml.UnmarshalStrict([]byte(text), m); err != nil {
		g.Fatalf("%s: %v", text, err)
	}
	return m
}
