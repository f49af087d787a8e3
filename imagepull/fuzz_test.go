package imagepull_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "nginx", "docker.io/library/nginx:latest", "localhost:5000/a/b@" + digest, "a:1@" + digest, "[::1]:5000/a",
		"UPPER/x", "A.b/c:d", "docker.io/library/a/b", strings.Repeat("a", 64), "<none>:<none>", "@", ":", "/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, image string) {
		r, err := imagepull.Parse(image)
		if err != nil {
			return
		}
		again, err := imagepull.Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %+v, which is %+v, %v", image, r, again, err)
		}
		if spelled, err := imagepull.Parse(strings.Replace(r.String(), r.Name, r.Repository(), 1)); err != nil ||
			spelled != r {
			t.Errorf("%q is %+v, spelled out %+v, %v", image, r, spelled, err)
		}
		if !r.Among(image) || r.Tag == "" || r.Digested() != strings.Contains(r.String(), "@") {
			t.Errorf("%q is %+v", image, r)
		}
	})
}

func FuzzKeyring(f *testing.F) {
	for _, data := range []string{
		`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}`,
		`{"r:5000/a":{"username":"u","password":"p","identitytoken":"i"}}`,
		`{"auths":{"*.x":{"auth":"!"}}}`, `{"[":{"username":"u"},"%zz":{"username":"u"}}`, `{"auths":null}`, `[]`, `{`, "",
	} {
		f.Add([]byte(data), "docker.io/library/nginx", true)
		f.Add([]byte(data), "r:5000/a/b", false)
	}
	f.Fuzz(func(t *testing.T, data []byte, repository string, modern bool) {
		format := corev1.SecretTypeDockercfg
		if modern {
			format = corev1.SecretTypeDockerConfigJson
		}
		ring, err := imagepull.NewKeyring(secret("shop", "a", format, string(data)))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "secret shop/a, key .dockerc") || ring.Lookup(repository) != nil {
				t.Errorf("%v does not say where, or there is half a keyring", err)
			}
			return
		}
		found := ring.Lookup(repository)
		if slices.Contains(found, imagepull.Credential{}) {
			t.Error("a credential that says nothing")
		}
		if len(data) == 0 {
			return
		}
		file, err := imagepull.ReadKeyring(data, format)
		if err != nil || !slices.Equal(file.Lookup(repository), found) {
			t.Errorf("a file says otherwise: %v", err)
		}
		if twice := ring.Then(file).Lookup(repository); !slices.Equal(twice, slices.Concat(found, found)) {
			t.Errorf("%d and %d make %d", len(found), len(found), len(twice))
		}
	})
}

// FuzzNode has plans made for whatever an API server stores.
func FuzzNode(f *testing.F) {
	busy := nodeImage("n1", lists("nginx:1", 3, "a"), lists("nginx:2", 0), did("nginx:1", 3, failed),
		did("nginx:2", 1, pulling))
	f.Add([]byte(jsonOf(busy)), []byte(jsonOf(pullJob("a", "nginx:1", deadline(5)))))
	f.Add([]byte(jsonOf(busy)), []byte(jsonOf(pullJob("b", "nginx@"+digest, never, parallel(-1)))))
	f.Add([]byte(`{"spec":{"images":{"":{"tags":[{},{"tag":"1"}]}}},"status":{"imageStatuses":{"":{}}}}`),
		[]byte(`{"metadata":{"uid":"u"},"spec":{"image":"a"}}`))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		n, j := &v1beta1.NodeImage{}, &v1beta1.ImagePullJob{}
		if json.Unmarshal(x, n) != nil || json.Unmarshal(y, j) != nil {
			return
		}
		before := jsonOf(n) + jsonOf(j)
		u := imagepull.Upkeep{
			Node: clusterNode(), Image: n, Now: noon(), OwnerGone: func(corev1.ObjectReference) bool { return true },
		}
		if plan := imagepull.Maintain(u); plan.Update != nil && plan.Status != nil {
			t.Error("two writes at once")
		}
		work := imagepull.Work(n, nil)
		for i, p := range work.Start {
			if p, turn := p.Next(noon()); turn.Do == imagepull.DoTry && turn.Timeout <= 0 || turn.Do == imagepull.DoWait ||
				(turn.Do == imagepull.DoStop) != p.Ended() {
				t.Errorf("%+v", turn)
			}
			work.Start[i] = p.Succeed("x", noon())
		}
		if again := imagepull.Work(n, work.Start); len(again.Start) > 0 {
			t.Errorf("started twice: %s", names(again.Start))
		}
		r := request(j, "s")
		if changed, err := r.Apply(n); err == nil && changed != nil {
			if again, err := r.Apply(changed); err != nil || again != nil {
				t.Errorf("applied twice: %v, %v", jsonOf(again), err)
			}
			if plan, err := r.Review(nodes(changed)); err == nil && slices.Contains(plan.Update, n.Name) {
				t.Error("applied, and the plan updates it again")
			}
		}
		if jsonOf(n)+jsonOf(j) != before {
			t.Error("the input has changed")
		}
	})
}
