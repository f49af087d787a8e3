package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// ground is a dashboard over a cluster, and a browser that has opened the printed URL.
type ground struct {
	*apitest.Server

	dashboard *server
	url       string // of the page
	browser   *http.Client
}

// open serves a dashboard of the namespace default, or of all.
func open(t *testing.T, version string, o flags, objects ...string) *ground {
	t.Helper()
	g := &ground{Server: apitest.New(t, version)}
	for _, text := range objects {
		g.Put(t, object(t, version, text))
	}
	config := genericclioptions.NewConfigFlags(true)
	dir, namespace := t.TempDir(), "default"
	config.APIServer, config.CacheDir, config.Namespace = &g.URL, &dir, &namespace
	cmd := &cobra.Command{}
	ctx, cancel := context.WithCancel(t.Context())
	cmd.SetContext(ctx)
	c := target.Command{
		Command: cmd, IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Factory: cmdutil.NewFactory(config),
	}
	s, err := o.server(c)
	if err != nil {
		t.Fatal(err)
	}
	s.interval = time.Millisecond
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.host = l.Addr().String()
	ended := make(chan error)
	go func() { ended <- s.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	g.dashboard, g.browser = s, &http.Client{Jar: jar, Transport: &http.Transport{}}
	g.url = "http://" + s.host + s.secrets.path
	if code, body := g.get(t, "?token="+s.secrets.token); code != http.StatusOK {
		t.Fatalf("exchange of the token: %d %s", code, body)
	}
	return g
}

func object(t *testing.T, version, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "VERSION", version)))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

func (g *ground) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g.do(t, r)
}

// post sends what the page sends.
func (g *ground) post(t *testing.T, path string, body any) (int, string) {
	t.Helper()
	return g.do(t, g.request(t, path, body))
}

func (g *ground) request(t *testing.T, path string, body any) *http.Request {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+path, strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "http://"+g.dashboard.host)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(tokenHeader, g.dashboard.secrets.write)
	return r
}

func (g *ground) do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	answer, err := g.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// events are the messages of a view.
type events struct {
	t       *testing.T
	scanner *bufio.Scanner
	tables  map[string]Change
	close   func()
}

// follow opens a view.
func (g *ground) follow(t *testing.T, query string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"api/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := g.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("events of %s: %s", query, answer.Status)
	}
	scanner := bufio.NewScanner(answer.Body)
	scanner.Buffer(nil, 1<<26)
	return &events{t: t, scanner: scanner, tables: map[string]Change{}, close: cancel}
}

// next reads one message, and returns its changes.
func (e *events) next() map[string]Change {
	e.t.Helper()
	for e.scanner.Scan() {
		data, is := strings.CutPrefix(e.scanner.Text(), "data: ")
		if !is {
			continue
		}
		changes := map[string]Change{}
		if err := json.Unmarshal([]byte(data), &changes); err != nil {
			e.t.Fatal(err)
		}
		for name, c := range changes {
			known := e.tables[name]
			if known.Set == nil {
				known.Set = map[string]json.RawMessage{}
			}
			maps.Copy(known.Set, c.Set)
			for _, key := range c.Gone {
				delete(known.Set, key)
			}
			known.Loaded, known.Note = c.Loaded, c.Note
			e.tables[name] = known
		}
		return changes
	}
	e.t.Fatalf("the events have ended: %v, known %v", e.scanner.Err(), e.tables)
	return nil
}

// until reads messages until what is known fits, and returns the changes of the last.
func (e *events) until(fits func(tables map[string]Change) bool) map[string]Change {
	e.t.Helper()
	for {
		if changes := e.next(); fits(e.tables) {
			return changes
		}
	}
}

func has(table, key, text string) func(map[string]Change) bool {
	return func(tables map[string]Change) bool { return strings.Contains(string(tables[table].Set[key]), text) }
}

func versions() []string { return []string{"v1alpha1", "v1beta1"} }

const cloneSet = `
apiVersion: apps.kruise.io/VERSION
kind: CloneSet
metadata: {name: web, namespace: default, uid: web, generation: 4}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "app:2"}]}
status: {observedGeneration: 4, replicas: 3, updatedReplicas: 1, readyReplicas: 3, updateRevision: web-2}
`

func podText(name, revision string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: default
  labels: {app: web, controller-revision-hash: %s}
  ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web, uid: web, controller: true}]
spec: {nodeName: node-1, containers: [{name: app, image: "app:1"}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`, name, revision)
}

const budget = `
apiVersion: policy.kruise.io/VERSION
kind: PodUnavailableBudget
metadata: {name: guard, namespace: default}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}
status: {totalReplicas: 3, desiredAvailable: 2, currentAvailable: 3, unavailableAllowed: 1}
`
