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
	"net/url"
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

// The page is for the browser that has opened the printed URL, and for no other page or name of the host.
func TestGuard(t *testing.T) {
	g := open(t, "v1beta1", flags{write: true}, cloneSet)
	act := action{Verb: "nothing", Kind: "CloneSet", Namespace: "default", Name: "web", UID: "web"}
	for name, row := range map[string]struct {
		change func(r *http.Request)
		get    string
		code   int
	}{
		"the page": {get: "", code: http.StatusOK},
		"a file":   {get: "app.js", code: http.StatusOK},
		"without the cookie": {
			get: "", code: http.StatusUnauthorized, change: func(r *http.Request) { r.Header.Set("Cookie", "") },
		},
		"with a wrong cookie": {
			get: "", code: http.StatusUnauthorized,
			change: func(r *http.Request) { r.Header.Set("Cookie", cookieName+"=wrong") },
		},
		"with a wrong token": {get: "?token=wrong", code: http.StatusUnauthorized},
		"outside of the path": {
			get: "", code: http.StatusNotFound, change: func(r *http.Request) { r.URL.Path = "/" },
		},
		"by another name of the host": {
			get: "", code: http.StatusMisdirectedRequest, change: func(r *http.Request) { r.Host = "example.com" },
		},
		"by another port": {
			get: "", code: http.StatusMisdirectedRequest, change: func(r *http.Request) { r.Host = "127.0.0.1:1" },
		},
		"from another port of this machine": {
			get: "api/about", code: http.StatusForbidden,
			change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		},
		"from another site": {
			get: "api/about", code: http.StatusForbidden,
			change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		},
		"a write that the page sends": {code: http.StatusBadRequest},
		"a write of another origin": {
			code: http.StatusForbidden, change: func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:3000") },
		},
		"a write without an origin": {
			code: http.StatusForbidden, change: func(r *http.Request) { r.Header.Del("Origin") },
		},
		"a write without the token": {
			code: http.StatusForbidden, change: func(r *http.Request) { r.Header.Del(tokenHeader) },
		},
		"a write as a form": {
			code:   http.StatusUnsupportedMediaType,
			change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		},
		"another method": {
			code: http.StatusMethodNotAllowed, change: func(r *http.Request) { r.Method = http.MethodPut },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := g.request(t, "api/act", act)
			if row.code == http.StatusOK || row.get != "" || row.change != nil && !strings.HasPrefix(name, "a write") &&
				name != "another method" {
				r = get(t, g, row.get)
			}
			if row.change != nil {
				page := r.URL
				if cookies := g.browser.Jar.Cookies(page); len(cookies) > 0 {
					r.AddCookie(cookies[0])
				}
				row.change(r)
			}
			client := g.browser
			if row.change != nil {
				client = &http.Client{} // whose cookies are those of the row
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			if answer.StatusCode != row.code {
				t.Errorf("status %s, want %d", answer.Status, row.code)
			}
			if got := answer.Header.Get("Content-Security-Policy"); got != policy {
				t.Errorf("Content-Security-Policy %q", got)
			}
		})
	}
	if writes := g.Writes(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}

func get(t *testing.T, g *ground, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The cookie is for this page alone, and no script reads it.
func TestCookie(t *testing.T) {
	g := open(t, "v1beta1", flags{})
	answer, err := (&http.Client{}).Do(get(t, g, "?token="+g.dashboard.secrets.token))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	cookies := answer.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies %v", cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != g.dashboard.secrets.path ||
		c.Value == g.dashboard.secrets.token {
		t.Errorf("cookie %v", c)
	}
	other := newSecrets()
	if other.path == g.dashboard.secrets.path || other.token == g.dashboard.secrets.token || len(other.token) < 40 {
		t.Errorf("secrets %v after %v", other, g.dashboard.secrets)
	}
}

// A connection beyond the limit is closed, and those before it stay.
func TestLimitOfConnections(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := limit(l, 1)
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := limited.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := dial()
	held := <-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("the second connection is served")
	}
	_, _ = first.Close(), held.Close()
	dial()
	(<-accepted).Close()
	_ = l.Close()
}

func TestBodies(t *testing.T) {
	g := open(t, "v1beta1", flags{})
	code, body := g.post(t, "api/plan", map[string]string{"manifest": strings.Repeat("#", maxBody)})
	if code != http.StatusBadRequest || !strings.Contains(body, "too large") {
		t.Errorf("large body: %d %s", code, body)
	}
	var many strings.Builder
	for range maxManifests + 1 {
		many.WriteString("---\n{apiVersion: v1, kind: Service, metadata: {name: a}}\n")
	}
	code, body = g.post(t, "api/plan", map[string]string{"manifest": many.String()})
	if code != http.StatusBadRequest || !strings.Contains(body, "20 manifests at most") {
		t.Errorf("many manifests: %d %s", code, body)
	}
}

func TestViews(t *testing.T) {
	g := open(t, "v1beta1", flags{})
	for _, query := range []url.Values{
		{},
		{"view": {"secrets"}},
		{"view": {"rollout"}, "kind": {"Secret"}, "namespace": {"default"}, "name": {"a"}},
		{"view": {"rollout"}, "kind": {"CloneSet"}, "namespace": {"other"}, "name": {"a"}},
		{"view": {"rollout"}, "kind": {"CloneSet"}, "namespace": {"default"}, "name": {"a/b"}},
		{"view": {"rollout"}, "kind": {"CloneSet"}, "name": {"a"}},
	} {
		if code, body := g.get(t, "api/events?"+query.Encode()); code != http.StatusBadRequest {
			t.Errorf("%v: %d %s", query, code, body)
		}
	}
	if code, _ := g.get(t, "api/pod?namespace=other&name=a"); code != http.StatusBadRequest {
		t.Errorf("a pod of another namespace: %d", code)
	}
}
