package cri_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

func TestImages(t *testing.T) {
	f := &fake{images: []*criv1.Image{
		{
			Id:          "sha256:1",
			RepoTags:    []string{"docker.io/library/nginx:1"},
			RepoDigests: []string{"docker.io/library/nginx@sha256:2"},
		},
		{Id: "sha256:3"},
	}}
	r, _ := start(t, f, cri.Options{})
	nginx := cri.Image{
		ID: "sha256:1", Tags: []string{"docker.io/library/nginx:1"}, Digests: []string{"docker.io/library/nginx@sha256:2"},
	}
	got, err := r.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]cri.Image{nginx, {ID: "sha256:3"}}, got); diff != "" {
		t.Error(diff)
	}
	for _, reference := range []string{"docker.io/library/nginx:1", "docker.io/library/nginx@sha256:2", "sha256:1"} {
		got, err := r.Image(t.Context(), reference)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(nginx, got); diff != "" {
			t.Error(diff)
		}
	}
	_, err = r.Image(t.Context(), "docker.io/library/nginx:2")
	wantError(t, err, cri.ErrNotFound)
	if err != nil && !strings.Contains(err.Error(), `"docker.io/library/nginx:2"`) {
		t.Errorf("%v does not name the image", err)
	}
}

func TestPullPassesOnWhatItIsGiven(t *testing.T) {
	f := &fake{registry: func(context.Context, *criv1.PullImageRequest) (string, error) { return "sha256:1", nil }}
	r, _ := start(t, f, cri.Options{})
	all := cri.Credentials{
		Username: "u", Password: "p", IdentityToken: "i", RegistryToken: "r",
	}
	tests := map[string]struct {
		credentials cri.Credentials
		sandbox     cri.SandboxConfig
		wantAuth    string
	}{
		"nobody":      {wantAuth: ""},
		"credentials": {credentials: all, wantAuth: "u p i r"},
		"for a pod": {
			sandbox: cri.SandboxConfig{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}},
		},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			got, err := r.Pull(t.Context(), "nginx:1", tt.credentials, tt.sandbox)
			if err != nil || got != "sha256:1" {
				t.Errorf("Pull = %q, %v", got, err)
			}
			q := last[*criv1.PullImageRequest](f)
			auth := ""
			if a := q.Auth; a != nil {
				auth = strings.Join([]string{a.Username, a.Password, a.IdentityToken, a.RegistryToken},
					" ")
			}
			if auth != tt.wantAuth {
				t.Errorf("credentials are %q, want %q", auth, tt.wantAuth)
			}
			if q.Image.Image != "nginx:1" || q.SandboxConfig == nil {
				t.Errorf("asked for %v", q)
			}
			got2 := cri.SandboxConfig{Labels: q.SandboxConfig.Labels, Annotations: q.SandboxConfig.Annotations}
			if diff := cmp.Diff(tt.sandbox, got2); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What runtimes really say, shortened where it repeats.
func TestPullErrors(t *testing.T) {
	const name = "reg.example.com/authentication/required:v1"
	tests := map[string]struct {
		code codes.Code
		text string
		want error // nil: none of the package's
	}{
		"containerd, no credentials": {
			codes.Unknown,
			`failed to pull and unpack image "` + name + `": failed to resolve reference "` + name + `": pull access ` +
				`denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`,
			cri.ErrCredentials,
		},
		"containerd, wrong credentials at the token server": {
			codes.Unknown, "failed to authorize: failed to fetch oauth token: unexpected status from GET request to " +
				"https://auth.example.com/token: 401 Unauthorized", cri.ErrCredentials,
		},
		"containerd, not for this user": {
			codes.Unknown, "unexpected status from HEAD request to https://reg.example.com/v2/a/manifests/v1: 403 Forbidden",
			cri.ErrCredentials,
		},
		"containerd, hidden as if it were not there": {
			codes.NotFound, "pull access denied, repository does not exist or may require authorization: server message: " +
				"insufficient_scope: authorization failed", cri.ErrCredentials,
		},
		"CRI-O": {
			codes.Unknown, "reading manifest v1 in reg.example.com/a: unauthorized: access refused", cri.ErrCredentials,
		},
		"Docker": {
			codes.Unknown,
			"Error response from daemon: pull access denied for a, repository does not exist or may require 'docker login'",
			cri.ErrCredentials,
		},
		"Docker Hub": {codes.Unknown, "denied: requested access to the resource is denied", cri.ErrCredentials},
		"the code":   {codes.Unauthenticated, "", cri.ErrCredentials},
		"containerd, no such tag": {
			codes.NotFound, `failed to resolve reference "` + name + `": ` + name + `: not found`, cri.ErrNotFound,
		},
		"a file is not the registry": {codes.Unknown, "open /var/lib/containerd/x: permission denied", nil},
		"a repository may be called anything": {
			codes.Unknown, "unexpected status from GET request to https://reg.example.com/v2/unauthorized/manifests/denied: " +
				"500 Internal Server Error", nil,
		},
		"the registry is down, the runtime is not": {codes.Unavailable, "503 Service Unavailable", nil},
		"the runtime gives up, and says so":        {codes.Canceled, "context canceled", nil},
		"containerd has only just started":         {codes.Unavailable, "server is not initialized yet", cri.ErrUnavailable},
		"and did so without a code before":         {codes.Unknown, "server is not initialized yet", cri.ErrUnavailable},
		"a disk":                                   {codes.Unknown, "no space left on device", nil},
	}
	f := &fake{}
	r, _ := start(t, f, cri.Options{})
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			f.registry = func(context.Context, *criv1.PullImageRequest) (string, error) {
				return "", status.Error(tt.code, tt.text)
			}
			_, err := r.Pull(t.Context(), name, cri.Credentials{Password: "hunter2"}, cri.SandboxConfig{})
			if err == nil {
				t.Fatal("want an error")
			}
			wantOnly(t, err, tt.want)
			if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%v: want the image and what the runtime says", err)
			}
		})
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	c := cri.Credentials{Username: "jane", Password: "s1", IdentityToken: "s2", RegistryToken: "s3"}
	marshalled, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{
		fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q", c, c, c, c), fmt.Sprintf("%+v", struct{ C *cri.Credentials }{&c}.C),
		string(marshalled),
	} {
		for _, secret := range []string{"s1", "s2", "s3"} {
			if strings.Contains(printed, secret) {
				t.Errorf("%q has a secret", printed)
			}
		}
		if !strings.Contains(printed, "jane") {
			t.Errorf("%q does not say who", printed)
		}
	}
	if got := fmt.Sprint(cri.Credentials{}); got != "anonymous" {
		t.Errorf("nobody prints as %q", got)
	}
}

// The space of a runtime's images is that of the directory which the runtime names, and the runtime is not called for
// it.
func TestImageSpace(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is measured")
	}
	f := &fake{stores: []*criv1.FilesystemUsage{{FsId: &criv1.FilesystemIdentifier{Mountpoint: t.TempDir()}}}}
	r, _ := start(t, f, cri.Options{})
	f.mu.Lock()
	before := len(f.calls)
	f.mu.Unlock()
	spaces, err := r.ImageSpace()
	if err != nil || len(spaces) != 1 {
		t.Fatalf("%+v, %v", spaces, err)
	}
	if s := spaces[0]; s.Capacity == 0 || s.Available > s.Capacity || s.FreeInodes > s.Inodes {
		t.Errorf("%+v", s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.calls) - before; n != 0 {
		t.Errorf("%d calls of the runtime", n)
	}
}
