package credentials_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/daemon/credentials"
	"github.com/kruisekit/kruisekit/imagepull"
)

// script is the plugin of the tests. It appends the request to the file in RUNS, and does what its first argument says.
//
//nolint:lll // a line of a shell script
const script = `#!/bin/sh
cat >>"$RUNS"
echo >>"$RUNS"
case $1 in
answer) printf '%s' "$2" ;;
password) printf '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{"*.example.com":{"username":"u","password":"%s%s"}}}' "$BASE" "$PASSWORD" ;;
fail) echo '{"auth":{"x":{"password":"hunter2"}}}'; echo no cloud here >&2; exit 3 ;;
flood) head -c 2000000 /dev/zero ;;
hang) exec sleep 1000 ;;
esac
`

// bench is a directory with plugins, and a clock.
type bench struct {
	*testing.T
	dir     string
	now     time.Time
	options credentials.Options
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	b.options = credentials.Options{
		Config: filepath.Join(b.dir, "config.yaml"), Plugins: b.dir, Now: func() time.Time { return b.now },
		Env: []string{"PATH=" + os.Getenv("PATH"), "RUNS=" + b.runs(), "BASE=base-"},
	}
	return b
}

func (b *bench) runs() string { return filepath.Join(b.dir, "runs") }

// requests are how often each image was asked for, and the rest of the last request.
func (b *bench) requests() []string {
	b.Helper()
	data, err := os.ReadFile(b.runs())
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return strings.Fields(string(data))
}

// configure writes a configuration with the given providers, whose program is the script.
func (b *bench) configure(providers ...map[string]any) {
	b.Helper()
	for _, p := range providers {
		if err := os.WriteFile(filepath.Join(b.dir, p["name"].(string)), []byte(script), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": providers,
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.options.Config, data, 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) open() *credentials.Keyring {
	b.Helper()
	k, err := credentials.Open(b.options)
	if err != nil {
		b.Fatal(err)
	}
	return k
}

func (b *bench) lookup(k *credentials.Keyring, repository string) []imagepull.Credential {
	b.Helper()
	found, err := k.Lookup(b.Context(), repository)
	if err != nil {
		b.Errorf("look up %s: %v", repository, err)
	}
	return found
}

const protocol = "credentialprovider.kubelet.k8s.io/v1"

// plugin is a provider for the hosts of example.com that holds for an hour.
func plugin(name string, args ...string) map[string]any {
	return map[string]any{
		"name": name, "matchImages": []string{"*.example.com"}, "defaultCacheDuration": "1h",
		"apiVersion": protocol, "args": args,
	}
}

// answering gives user and password for everything that it is asked for.
func answering(cacheKey, more string) map[string]any { return answeringIn(protocol, cacheKey, more) }

func answeringIn(version, cacheKey, more string) map[string]any {
	return plugin("answering", "answer",
		`{"kind":"CredentialProviderResponse","apiVersion":"`+version+`","cacheKeyType":"`+cacheKey+`"`+more+
			`,"auth":{"*.example.com":{"username":"jane","password":"s3cret"}}}`)
}

var jane = []imagepull.Credential{{Username: "jane", Password: "s3cret"}}

func TestPluginSpeaksTheProtocol(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t)
			p := answeringIn("credentialprovider.kubelet.k8s.io/"+version, "Image", "")
			p["apiVersion"] = "credentialprovider.kubelet.k8s.io/" + version
			b.configure(p)
			k := b.open()
			if diff := cmp.Diff(jane, b.lookup(k, "a.example.com/team/app")); diff != "" {
				t.Error(diff)
			}
			if found := b.lookup(k, "docker.io/library/nginx"); found != nil {
				t.Errorf("%v for what the plugin is not for", found)
			}
			want := []string{
				fmt.Sprintf(`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/%s","image":"a.example.com/team/app"}`,
					version),
			}
			if diff := cmp.Diff(want, b.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each case looks up the same repositories, and says how often the plugin was run.
func TestPluginAnswersAreRemembered(t *testing.T) {
	for why, test := range map[string]struct {
		cacheKey, duration string
		wait               time.Duration
		runs               int
	}{
		"for an image":                      {"Image", "", 0, 3},
		"for a registry":                    {"Registry", "", 0, 2},
		"for all":                           {"Global", "", 0, 1},
		"for all, just not over":            {"Global", "", time.Hour - 1, 1},
		"for all, over":                     {"Global", "", time.Hour, 2},
		"for all, over, as the answer says": {"Global", `,"cacheDuration":"10m"`, 10 * time.Minute, 2},
		"for no time":                       {"Global", `,"cacheDuration":"0s"`, 0, 8},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t)
			b.configure(answering(test.cacheKey, test.duration))
			k := b.open()
			for range 2 {
				for _, repository := range []string{"a.example.com/x", "a.example.com/x", "a.example.com/y", "b.example.com/x"} {
					if diff := cmp.Diff(jane, b.lookup(k, repository)); diff != "" {
						t.Error(diff)
					}
				}
				b.now = b.now.Add(test.wait)
			}
			if runs := len(b.requests()); runs != test.runs {
				t.Errorf("the plugin was run %d times, want %d", runs, test.runs)
			}
		})
	}
}

// After a refusal the plugin is asked again, for what was refused alone.
func TestForget(t *testing.T) {
	b := newBench(t)
	b.configure(answering("Image", ""))
	k := b.open()
	b.lookup(k, "a.example.com/x")
	b.lookup(k, "a.example.com/y")
	k.Forget("a.example.com/x")
	b.lookup(k, "a.example.com/x")
	b.lookup(k, "a.example.com/y")
	if runs := len(b.requests()); runs != 3 {
		t.Errorf("the plugin was run %d times", runs)
	}
}

// No credentials are an answer too.
func TestPluginKnowsNothing(t *testing.T) {
	b := newBench(t)
	b.configure(plugin("p", "answer",
		`{"kind":"CredentialProviderResponse","apiVersion":"`+protocol+`","cacheKeyType":"Image"}`))
	k := b.open()
	for range 2 {
		if found := b.lookup(k, "a.example.com/x"); found != nil {
			t.Errorf("found %v", found)
		}
	}
	if runs := len(b.requests()); runs != 1 {
		t.Errorf("the plugin was run %d times", runs)
	}
}

func TestPluginEnvironment(t *testing.T) {
	b := newBench(t)
	p := plugin("p", "password")
	p["env"] = []map[string]string{{"name": "PASSWORD", "value": "mine"}}
	b.configure(p)
	want := []imagepull.Credential{{Username: "u", Password: "base-mine"}}
	if diff := cmp.Diff(want, b.lookup(b.open(), "a.example.com/x")); diff != "" {
		t.Error(diff)
	}
}

// A plugin that fails takes nothing from another, and its error has nothing that may be secret.
func TestPluginFails(t *testing.T) {
	response := func(kind, version, rest string) []string {
		return []string{"answer", fmt.Sprintf(`{"kind":%q,"apiVersion":%q,%s}`, kind, version, rest)}
	}
	const secret = `"auth":{"a.example.com":{"username":"u","password":"hunter2"}}`
	for why, test := range map[string]struct {
		args []string
		want string
	}{
		"it ends with an error":   {[]string{"fail"}, "exit status 3: no cloud here"},
		"it says too much":        {[]string{"flood"}, "longer than"},
		"it says no JSON":         {[]string{"answer", `hunter2`}, "no JSON"},
		"it says nothing":         {[]string{"silent"}, "no JSON"},
		"a value of another type": {[]string{"answer", `{"auth":["hunter2"]}`}, "wrong type"},
		"another kind":            {response("Other", protocol, `"cacheKeyType":"Image",`+secret), `with a "Other"`},
		"another version": {
			response("CredentialProviderResponse", "v9", `"cacheKeyType":"Image",`+secret), `of "v9"`,
		},
		"holds for what is unknown": {
			response("CredentialProviderResponse", protocol, `"cacheKeyType":"Pod",`+secret), `cacheKeyType "Pod"`,
		},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t)
			b.configure(plugin("broken", test.args...), answering("Image", ""))
			found, err := b.open().Lookup(t.Context(), "a.example.com/x")
			if diff := cmp.Diff(jane, found); diff != "" {
				t.Error(diff)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "ask plugin broken: ") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v has a password", err)
			}
		})
	}
	t.Run("it is not there", func(t *testing.T) {
		b := newBench(t)
		b.configure(plugin("absent"))
		if err := os.Remove(filepath.Join(b.dir, "absent")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.open().Lookup(t.Context(), "a.example.com/x"); err == nil {
			t.Error("want an error")
		}
	})
}

func TestPluginHangs(t *testing.T) {
	b := newBench(t)
	b.configure(plugin("p", "hang"))
	b.options.Timeout = 50 * time.Millisecond
	if _, err := b.open().Lookup(t.Context(), "a.example.com/x"); err == nil ||
		!strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("error %v", err)
	}
	b.options.Timeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.open().Lookup(ctx, "a.example.com/x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// Pulls of one repository that begin together have the plugin run once.
func TestPluginRunsOnceAtATime(t *testing.T) {
	b := newBench(t)
	b.configure(answering("Image", ""))
	k := b.open()
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()

			if diff := cmp.Diff(jane, b.lookup(k, "a.example.com/x")); diff != "" {
				t.Error(diff)
			}
		}()
	}
	all.Wait()
	if runs := len(b.requests()); runs != 1 {
		t.Errorf("the plugin was run %d times", runs)
	}
}
