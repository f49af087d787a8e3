package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

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
