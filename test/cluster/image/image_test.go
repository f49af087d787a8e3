package image

import "testing"

func TestRepositoryIsWhatRuntimesAskFor(t *testing.T) {
	tests := map[string]struct{ repository, tag string }{
		"nginx":                      {"library/nginx", "latest"},
		"nginx:1.27":                 {"library/nginx", "1.27"},
		"docker.io/nginx:1":          {"library/nginx", "1"},
		"docker.io/library/nginx:1":  {"library/nginx", "1"},
		"team/app:2":                 {"team/app", "2"},
		"registry.example.com/a/b:3": {"a/b", "3"},
		"localhost:5000/a:4":         {"a", "4"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			repository, tag := split(name)
			if repository != want.repository || tag != want.tag {
				t.Errorf("%s, %s; want %s, %s", repository, tag, want.repository, want.tag)
			}
		})
	}
}
