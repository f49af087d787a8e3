package inplace_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/inplace"
)

func TestSameImage(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"equal: of course":                        {a: "x", b: "x", want: true},
		"no tag: means latest":                    {a: "nginx", b: "nginx:latest", want: true},
		"an official image, whole":                {a: "nginx:1.25", b: "docker.io/library/nginx:1.25", want: true},
		"of an organisation":                      {a: "org/app:1", b: "docker.io/org/app:1", want: true},
		"older name of the hub":                   {a: "index.docker.io/library/nginx", b: "nginx", want: true},
		"library of another registry":             {a: "quay.io/library/nginx", b: "quay.io/nginx"},
		"deeper library: it is an organisation's": {a: "library/a/b", b: "a/b"},
		"a port is no tag: a tag follows the last slash": {
			a: "localhost:5000/app", b: "localhost:5000/app:latest", want: true,
		},
		"localhost: it is a registry without a dot":       {a: "localhost/app", b: "docker.io/localhost/app"},
		"another tag: it may be another image":            {a: "nginx:1", b: "nginx:2"},
		"another registry: it may be another image":       {a: "a.io/nginx:1", b: "b.io/nginx:1"},
		"another path: it may be another image":           {a: "org/nginx:1", b: "nginx:1"},
		"one digest: a tag says nothing of a digest":      {a: "nginx:1@sha256:abc", b: "nginx:1"},
		"two digests: they differ":                        {a: "nginx@sha256:abc", b: "nginx@sha256:abd"},
		"same digest, other tag: tags are no matter then": {a: "nginx:1@sha256:abc", b: "nginx:2@sha256:abc", want: true},
		"docker's ID: an older runtime wrote it so": {
			a: "docker-pullable://nginx@sha256:abc", b: "nginx@sha256:abc", want: true,
		},
		"empty: it is no image": {a: "", b: "latest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := inplace.SameImage(tc.a, tc.b); got != tc.want || inplace.SameImage(tc.b, tc.a) != got {
				t.Errorf("%q and %q: want %v both ways, got %v", tc.a, tc.b, tc.want, got)
			}
		})
	}
}
