package imagepull_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/imagepull"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct{ image, name, tag, pulled, repository string }{
		"official": {"ubuntu", "ubuntu", "latest", "ubuntu:latest", "docker.io/library/ubuntu"},
		"official, spelled out": {
			image:      "docker.io/library/ubuntu:latest",
			name:       "ubuntu",
			tag:        "latest",
			pulled:     "ubuntu:latest",
			repository: "docker.io/library/ubuntu",
		},
		"the old name of the hub": {"index.docker.io/library/nginx:1", "nginx", "1", "nginx:1", "docker.io/library/nginx"},
		"of a user of the hub":    {"docker.io/a/b", "a/b", "latest", "a/b:latest", "docker.io/a/b"},
		"own registry": {
			image:      "myregistry:5000/my/image:v1",
			name:       "myregistry:5000/my/image",
			tag:        "v1",
			pulled:     "myregistry:5000/my/image:v1",
			repository: "myregistry:5000/my/image",
		},
		"own registry, no tag": {"localhost/app", "localhost/app", "latest", "localhost/app:latest", "localhost/app"},
		"digest":               {"nginx@" + digest, "nginx", digest, "nginx@" + digest, "docker.io/library/nginx"},
		"tag and digest": {
			image:      "r.example.com/app:1@" + digest,
			name:       "r.example.com/app",
			tag:        digest,
			pulled:     "r.example.com/app@" + digest,
			repository: "r.example.com/app",
		},
		"a registry in capitals": {
			image:      "R.EXAMPLE.COM/app:1",
			name:       "R.EXAMPLE.COM/app",
			tag:        "1",
			pulled:     "R.EXAMPLE.COM/app:1",
			repository: "R.EXAMPLE.COM/app",
		},
		"sha512": {
			image:      "nginx@sha512:" + strings.Repeat("a", 128),
			name:       "nginx",
			tag:        "sha512:" + strings.Repeat("a", 128),
			pulled:     "nginx@sha512:" + strings.Repeat("a", 128),
			repository: "docker.io/library/nginx",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := imagepull.Parse(test.image)
			if err != nil {
				t.Fatal(err)
			}
			if r.Name != test.name || r.Tag != test.tag || r.String() != test.pulled || r.Repository() != test.repository {
				t.Errorf("%+v, pulled as %s, of %s", r, r, r.Repository())
			}
			if again, err := imagepull.Parse(r.String()); err != nil || again != r {
				t.Errorf("read again: %+v, %v", again, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, image := range []string{
		"", "UPPER/x", "r.io/UPPER", "a b", "nginx:", ":1", "nginx@sha256:12", "nginx@md5:" + strings.Repeat("a", 32),
		"http://nginx", strings.Repeat("a", 64), strings.Repeat("a", 300), "nginx:" + strings.Repeat("1", 129),
	} {
		if r, err := imagepull.Parse(image); err == nil {
			t.Errorf("%q is %+v", image, r)
		} else if !strings.Contains(err.Error(), "image ") {
			t.Errorf("%v does not name the image", err)
		}
	}
}

func TestAmong(t *testing.T) {
	for name, test := range map[string]struct {
		name, tag string
		listed    []string
		want      bool
	}{
		"as runtimes write it": {"nginx", "latest", []string{"docker.io/library/nginx:latest"}, true},
		"a key spelled out":    {"docker.io/library/nginx", "1", []string{"nginx:1"}, true},
		"of a user":            {"test/nginx", "1.0", []string{"docker.io/test/nginx:1.0"}, true},
		"not of a user":        {"nginx", "1.0", []string{"docker.io/test/nginx:1.0"}, false},
		"another tag":          {"nginx", "2", []string{"docker.io/library/nginx:1"}, false},
		"the port":             {"r:5000/a", "1", []string{"r:5000/a:1"}, true},
		"another port":         {"r:5000/a", "1", []string{"r:5001/a:1"}, false},
		"by digest": {
			name:   "nginx",
			tag:    digest,
			listed: []string{"docker.io/library/nginx:1", "docker.io/library/nginx@" + digest},
			want:   true,
		},
		"another digest":            {"nginx", digest, []string{"docker.io/library/nginx@" + another}, false},
		"what cannot be read":       {"nginx", "1", []string{"<none>:<none>", "", "nginx:1"}, true},
		"nothing":                   {"nginx", "1", nil, false},
		"a key that cannot be read": {"NGINX", "1", []string{"NGINX:1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (imagepull.Reference{Name: test.name, Tag: test.tag}).Among(test.listed...); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
	if got := (imagepull.Reference{Name: "NGINX"}).Repository(); got != "NGINX" {
		t.Errorf("repository %q", got)
	}
}
