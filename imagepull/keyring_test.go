package imagepull_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

func auth(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func dockerConfig(name, data string) *corev1.Secret {
	return secret("shop", name, corev1.SecretTypeDockerConfigJson, data)
}

func TestLookup(t *testing.T) {
	one := func(key string) []*corev1.Secret {
		return []*corev1.Secret{dockerConfig("a", `{"auths":{"`+key+`":{"username":"u","password":"p"}}}`)}
	}
	u := []string{"u:p"}
	for name, test := range map[string]struct {
		secrets    []*corev1.Secret
		repository string
		want       []string
	}{
		"the hub":                         {one("https://index.docker.io/v1/"), "docker.io/library/nginx", u},
		"the hub, by its other name":      {one("https://index.docker.io/v1/"), "index.docker.io/library/nginx", u},
		"the hub, without a host":         {one("index.docker.io"), "team/nginx", u},
		"the hub, one word":               {one("index.docker.io"), "nginx", u},
		"the hub's key is not for others": {one("https://index.docker.io/v1/"), "r.example.com/nginx", nil},
		"nor for a host with a port":      {one("index.docker.io"), "r:5000/nginx", nil},
		"a repository of the hub":         {one("docker.io/library/nginx"), "docker.io/library/nginx", u},
		"another of the hub":              {one("docker.io/library/nginx"), "docker.io/library/redis", nil},
		"a path that is not begun with":   {one("registry.private.com/nginx"), "registry.private.com/app/x", nil},
		"a path begun with":               {one("r.example.com/team"), "r.example.com/team/app", u},
		"a version and a path":            {one("https://r.example.com/v2/team"), "r.example.com/team/app", u},
		"a version without a slash":       {one("https://r.example.com/v2"), "r.example.com/team/app", nil},
		"a bare slash":                    {one("http://r.example.com/"), "r.example.com/app", u},
		"the port":                        {one("r.example.com:5000"), "r.example.com:5000/app", u},
		"another port":                    {one("r.example.com:5000"), "r.example.com/app", nil},
		"any part of a host":              {one("*.example.com"), "r.example.com/app", u},
		"a part of a part":                {one("r*.example.com"), "r1.example.com/app", u},
		"no more than one part":           {one("*.example.com"), "a.b.example.com/app", nil},
		"a pattern that is none":          {one("[.example.com"), "r.example.com/app", nil},
		"a key that is no host":           {one("%zz"), "r.example.com/app", nil},
		"a repository that is none":       {one("r.example.com"), "%zz", nil},
		"no repository":                   {one("index.docker.io"), "", nil},
		"other types say nothing": {
			[]*corev1.Secret{secret("shop", "a", corev1.SecretTypeOpaque, `{"auths":{"r.example.com":{"username":"u"}}}`)},
			"r.example.com/app", nil,
		},
		"empty secrets say nothing": {
			[]*corev1.Secret{nil, {Type: corev1.SecretTypeDockercfg}, dockerConfig("a", ""), dockerConfig("b", "{}")},
			"r.example.com/app", nil,
		},
		"entries without anything": {
			[]*corev1.Secret{dockerConfig("a", `{"auths":{"r.example.com":{"email":"x@y"}}}`)}, "r.example.com/app", nil,
		},
		"the old format": {
			[]*corev1.Secret{secret("shop", "a", corev1.SecretTypeDockercfg, `{"r.example.com":{"auth":"`+auth("u:p")+`"}}`)},
			"r.example.com/app", u,
		},
		"the old format, with the new word": {
			[]*corev1.Secret{
				secret("shop", "a", corev1.SecretTypeDockercfg, `{"auths":{"r.example.com":{"auth":"`+auth("u:p")+`"}}}`),
			}, "r.example.com/app", nil,
		},
		"auth counts more than the words": {
			[]*corev1.Secret{
				dockerConfig("a", `{"auths":{"r.example.com":{"username":"x","password":"y","auth":"`+auth("u:p:q")+`"}}}`),
			},
			"r.example.com/app",
			[]string{"u:p:q"},
		},
		"auth without padding": {
			[]*corev1.Secret{
				dockerConfig("a", `{"auths":{"r.example.com":{"auth":"`+strings.TrimRight(auth("u:p1"), "=")+`"}}}`),
			},
			"r.example.com/app",
			[]string{"u:p1"},
		},
		"tokens are kept": {
			[]*corev1.Secret{dockerConfig("a", `{"auths":{"r.example.com":{"identitytoken":"i","registrytoken":"r"}}}`)},
			"r.example.com/app",
			[]string{":ir"},
		},
		"the more specific first": {
			[]*corev1.Secret{
				dockerConfig("a",
					`{"auths":{"r.example.com":{"username":"host"},"r.example.com/team":{"username":"team"},"*.example.com":{"username":"any"}}}`),
			},
			"r.example.com/team/app",
			[]string{"team:", "host:", "any:"},
		},
		"secrets in their order, each once": {
			[]*corev1.Secret{
				dockerConfig("a", `{"auths":{"r.example.com":{"username":"2"}}}`),
				dockerConfig("b", `{"auths":{"https://r.example.com":{"username":"1"},"r.example.com":{"username":"2"}}}`),
			},
			"r.example.com/app",
			[]string{"2:", "1:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := imagepull.NewKeyring(test.secrets...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range ring.Lookup(test.repository) {
				got = append(got, c.Username+":"+c.Password+c.IdentityToken+c.RegistryToken)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
}

// What a job brings comes before what the node has, also where only Docker Hub's last resort serves.
func TestKeyringThen(t *testing.T) {
	job, err := imagepull.NewKeyring(dockerConfig("a", `{"auths":{"index.docker.io":{"username":"job"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	node, err := imagepull.ReadKeyring([]byte(`{"docker.io/library":{"username":"node"}}`), corev1.SecretTypeDockercfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range job.Then(node).Then(imagepull.Keyring{}).Lookup("docker.io/library/nginx") {
		got = append(got, c.Username)
	}
	if !slices.Equal(got, []string{"job", "node"}) {
		t.Error(got)
	}
	if got := (imagepull.Keyring{}).Lookup("nginx"); got != nil {
		t.Error("an empty keyring has", got)
	}
}

// An error names where to look, and nothing of what is secret. The other secrets count.
func TestKeyringErrors(t *testing.T) {
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"no JSON": {
			dockerConfig("a", `{"auths": hunter2`),
			"secret shop/a, key .dockerconfigjson: not a docker configuration: no JSON at byte 11",
		},
		"no object": {
			dockerConfig("a", `["hunter2"]`),
			"secret shop/a, key .dockerconfigjson: not a docker configuration: a value of the wrong type at byte 1",
		},
		"a number": {
			secret("shop", "a", corev1.SecretTypeDockercfg, `{"r":{"password":12345678}}`),
			"secret shop/a, key .dockercfg: not a docker configuration: a value of the wrong type at byte 25",
		},
		"no base64": {
			dockerConfig("a", `{"auths":{"https://hunter2@r.example.com/v1/":{"auth":"hunter2!"}}}`),
			`secret shop/a, key .dockerconfigjson: auths["r.example.com"].auth: not in base64`,
		},
		"no colon": {
			secret("shop", "a", corev1.SecretTypeDockercfg, `{"r":{"auth":"`+auth("hunter2")+`"}}`),
			`secret shop/a, key .dockercfg: ["r"].auth: not of the form user:password`,
		},
		"a key of no host": {
			dockerConfig("a", `{"auths":{"hunter2%zz":{"auth":"!"}}}`),
			`secret shop/a, key .dockerconfigjson: auths["?"].auth: not in base64`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := imagepull.NewKeyring(dockerConfig("good", `{"auths":{"r":{"username":"u"}}}`), test.secret)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if got := ring.Lookup("r/app"); len(got) != 1 || got[0].Username != "u" {
				t.Errorf("credentials %+v beside a malformed secret, want those of the good one", got)
			}
		})
	}
	if _, err := imagepull.ReadKeyring([]byte("{}"), "Opaque"); err == nil {
		t.Error("a format that nobody knows")
	}
	if _, err := imagepull.ReadKeyring([]byte("["), corev1.SecretTypeDockercfg); err == nil {
		t.Error("half a file")
	}
}

func TestMatches(t *testing.T) {
	for pattern, want := range map[string]bool{
		"*.example.com": true, "*.example.com/team": true, "*.*.com": true, "*.example.org": false, "%zz": false,
	} {
		if got := imagepull.Matches(pattern, "r.example.com/team/app"); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
	if imagepull.Matches("*", "%zz") {
		t.Error("no repository")
	}
}
