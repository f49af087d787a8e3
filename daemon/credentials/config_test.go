package credentials_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/daemon/credentials"
	"github.com/kruisekit/kruisekit/imagepull"
)

const goodConfig = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  matchImages: ["*.dkr.ecr.*.amazonaws.com"]
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get-credentials]
  env:
  - {name: AWS_PROFILE, value: example}
`

func TestConfig(t *testing.T) {
	swap := func(old, by string) string { return strings.Replace(goodConfig, old, by, 1) }
	for why, test := range map[string]struct {
		config string
		want   string // in the error; empty for none
	}{
		"as it is":               {goodConfig, ""},
		"v1beta1":                {swap("kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1"), ""},
		"v1alpha1":               {swap("kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1alpha1"), ""},
		"a later version":        {swap("kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v2"), "v2"},
		"another kind":           {swap("CredentialProviderConfig", "KubeletConfiguration"), "KubeletConfiguration"},
		"no YAML":                {"]", "decode"},
		"nothing":                {"", "not a CredentialProviderConfig"},
		"a field misspelt":       {swap("matchImages", "matchImage"), "matchImage"},
		"no providers":           {goodConfig[:strings.Index(goodConfig, "providers")], "at least one is needed"},
		"no name":                {swap("name: ecr-credential-provider", "name: ''"), "providers[0].name"},
		"a path":                 {swap("name: ecr-credential-provider", "name: ../sh"), "providers[0].name"},
		"the directory itself":   {swap("name: ecr-credential-provider", "name: .."), "providers[0].name"},
		"two of a name":          {goodConfig + goodConfig[strings.Index(goodConfig, "- name"):], "stands twice"},
		"no patterns":            {swap(`["*.dkr.ecr.*.amazonaws.com"]`, "[]"), "matchImages"},
		"an empty pattern":       {swap(`["*.dkr.ecr.*.amazonaws.com"]`, "['']"), "matchImages"},
		"no duration":            {swap("  defaultCacheDuration: 12h\n", ""), "defaultCacheDuration"},
		"a duration below zero":  {swap("12h", "-1s"), "defaultCacheDuration"},
		"a duration that is not": {swap("12h", "soon"), "decode"},
		"no protocol":            {swap("  apiVersion: credentialprovider.kubelet.k8s.io/v1\n", ""), "apiVersion"},
		"another protocol": {
			swap("credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v2"), "apiVersion",
		},
		"tokens of pods": {
			goodConfig + "  tokenAttributes: {serviceAccountTokenAudience: x, requireServiceAccount: true}\n",
			"tokenAttributes: tokens of service accounts are not supported",
		},
	} {
		t.Run(why, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(test.config), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := credentials.Open(credentials.Options{Config: path, Plugins: "/opt"})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" &&
				(err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path)):
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	k, err := credentials.Open(credentials.Options{Config: path})
	if err != nil {
		t.Fatalf("no file: %v", err)
	}
	if found, err := k.Lookup(t.Context(), "docker.io/library/nginx"); found != nil || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	if err := os.WriteFile(path, []byte(goodConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := credentials.Open(credentials.Options{Config: path}); err == nil {
		t.Error("plugins without a directory")
	}
	if _, err := credentials.Open(credentials.Options{Config: dir, Plugins: dir}); err == nil {
		t.Error("a directory is no file")
	}
}

func TestDockerFiles(t *testing.T) {
	const auths = `{"auths":{"https://index.docker.io/v1/":{"auth":"amFuZTpzM2NyZXQ="}}}`
	const old = `{"index.docker.io":{"username":"old","password":"older"}}`
	older := []imagepull.Credential{{Username: "old", Password: "older"}}
	for why, test := range map[string]struct {
		files map[string]string
		want  []imagepull.Credential
		fault string
	}{
		"none":                       {nil, nil, ""},
		"one of today":               {map[string]string{"b/config.json": auths}, jane, ""},
		"one of old":                 {map[string]string{"a/.dockercfg": old}, older, ""},
		"one of today goes first":    {map[string]string{"a/.dockercfg": old, "b/config.json": auths}, jane, ""},
		"the first directory counts": {map[string]string{"a/config.json": `{}`, "b/config.json": auths}, nil, ""},
		"one that is broken is passed": {
			map[string]string{"a/config.json": `hunter2`, "b/config.json": auths}, jane, "a/config.json",
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range test.files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			k, err := credentials.Open(credentials.Options{DockerDirs: []string{
				filepath.Join(dir, "a"), filepath.Join(dir, "b"),
			}})
			if err != nil {
				t.Fatal(err)
			}
			found, err := k.Lookup(t.Context(), "docker.io/library/nginx")
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (test.fault != "") ||
				err != nil && (!strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("error %v, want one with %q", err, test.fault)
			}
		})
	}
}

// Files are tried before plugins, and a file that changes counts at once.
func TestFilesBeforePlugins(t *testing.T) {
	b := newBench(t)
	b.configure(answering("Global", ""))
	b.options.DockerDirs = []string{b.dir}
	k := b.open()
	for _, password := range []string{"one", "two"} {
		content := `{"auths":{"a.example.com":{"username":"file","password":"` + password + `"}}}`
		if err := os.WriteFile(filepath.Join(b.dir, "config.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		want := append([]imagepull.Credential{{Username: "file", Password: password}}, jane...)
		if diff := cmp.Diff(want, b.lookup(k, "a.example.com/x")); diff != "" {
			t.Error(diff)
		}
	}
}
