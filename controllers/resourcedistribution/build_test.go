package resourcedistribution

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/test/rig/patches"
	"github.com/kruisekit/kruisekit/write"
)

const (
	secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}`
	// right is a copy of secret as the reference leaves it.
	right = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"pull","uid":"1","resourceVersion":"2",` +
		`"ownerReferences":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"ResourceDistribution","name":"registry","uid":"me",` +
		`"controller":true,"blockOwnerDeletion":true}]},"type":"Opaque","data":{"user":"cmVhZGVy"}}`
)

func owner(resource string) *resourceDistribution {
	d := &resourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "registry", UID: "me", Generation: 1}}
	d.Spec.Resource = runtime.RawExtension{Raw: []byte(resource)}
	return d
}

func built(t testing.TB, raw string) *resource {
	t.Helper()
	r, err := newResource(owner(raw))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func object(t testing.TB, raw string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(raw), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// after returns the object after writes, as an API server stores it.
func after(t testing.TB, live *unstructured.Unstructured, writes []*write.Write) *unstructured.Unstructured {
	t.Helper()
	for _, w := range writes {
		switch w.Verb {
		case write.Delete:
			if p := w.DeleteOptions().Preconditions; *p.UID != live.GetUID() || *p.ResourceVersion != live.GetResourceVersion() {
				t.Fatalf("the deletion tests %v", p)
			}
			live = nil
		case write.Create:
			if live != nil {
				t.Fatal("the object exists")
			}
			made, ok := w.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("creates %T", w.Object)
			}
			live = object(t, text(t, made.Object))
			live.SetUID("new")
			live.SetResourceVersion("9")
		case write.Patch:
			data, err := w.Data()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := patches.Apply([]byte(text(t, live.Object)), w.Type, data, nil)
			if err != nil {
				t.Fatal(err)
			}
			live = withoutEmpty(object(t, string(raw)))
		default:
			t.Fatalf("sends %s", w)
		}
	}
	return live
}

func text(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// withoutEmpty drops null and empty fields, as API servers do.
func withoutEmpty(o *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := o.Object["metadata"].(map[string]any)
	for _, fields := range []map[string]any{o.Object, metadata} {
		for key, value := range fields {
			if m, ok := value.(map[string]any); value == nil || ok && len(m) == 0 {
				delete(fields, key)
			}
		}
	}
	return o
}

// What is written where an object has the name.
func TestWrites(t *testing.T) {
	replace := strings.NewReplacer
	for name, c := range map[string]struct {
		resource, live string
		verbs          string
		fails          conditionType
	}{
		"nothing":                 {secret, ``, "create", ""},
		"a copy of the reference": {secret, right, "", ""},
		"false is absent":         {secret, replace(`"type"`, `"immutable":false,"type"`).Replace(right), "", ""},
		"other data":              {secret, replace(`cmVhZGVy`, `eA==`).Replace(right), "patch", ""},
		"more data":               {secret, replace(`"data":{`, `"data":{"more":"eA==",`).Replace(right), "patch", ""},
		"no data":                 {secret, replace(`"data":{"user":"cmVhZGVy"}`, `"data":{}`).Replace(right), "patch", ""},
		"labels of others":        {secret, replace(`"name":"pull"`, `"name":"pull","labels":{"theirs":"1"}`).Replace(right), "", ""},
		"a missing label":         {replace(`"name":"pull"`, `"name":"pull","labels":{"a":"b"}`).Replace(secret), right, "patch", ""},
		"another type":            {replace(`"stringData"`, `"type":"a/b","stringData"`).Replace(secret), right, "delete create", ""},
		"immutable": {
			secret, replace(`"type"`, `"immutable":true,"type"`).Replace(right), "delete create", "",
		},
		"labels of an immutable copy": {
			replace(`"name":"pull"}`, `"name":"pull","labels":{"a":"b"}},"immutable":true`).Replace(secret),
			replace(`"type"`, `"immutable":true,"type"`).Replace(right), "patch", "",
		},
		"foreign":           {secret, replace(`"me"`, `"other"`).Replace(right), "", "ConflictOccurred"},
		"without an owner":  {secret, replace(`"controller":true,`, ``).Replace(right), "", "ConflictOccurred"},
		"held by finalizer": {secret, replace(`"uid":"1"`, `"uid":"1","deletionTimestamp":"2030-01-01T00:00:00Z"`).Replace(right), "", "UpdateResourceFailed"},
		"own annotations": {
			replace(`"name":"pull"`, `"name":"pull","annotations":{"kruise.io/resourcedistribution.resource.hashcode":"x"}`).Replace(secret),
			right, "", "",
		},
		"itself as another owner": {
			replace(`"name":"pull"`,
				`"name":"pull","ownerReferences":[{"apiVersion":"v1","kind":"A","name":"b","uid":"me"}]`).Replace(secret), right, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var live *unstructured.Unstructured
			if c.live != "" {
				live = object(t, c.live)
			}
			writes, failed := built(t, c.resource).writes("shop", live)
			var verbs []string
			for _, w := range writes {
				verbs = append(verbs, strings.ToLower(string(w.Verb)))
			}
			if got := strings.Join(verbs, " "); got != c.verbs {
				t.Errorf("sends %q, want %q", got, c.verbs)
			}
			if (failed != nil) != (c.fails != "") || failed != nil && failed.condition != c.fails {
				t.Errorf("fails with %+v, want %s", failed, c.fails)
			}
		})
	}
}

// An update keeps what others have added, and removes what the resource no longer has.
func TestUpdateKeeps(t *testing.T) {
	r := built(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"team":"web"},`+
		`"annotations":{"note":"new"},"finalizers":["b/b","b/b"],`+
		`"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"declared","uid":"2"}]},"data":{"user":"eA=="}}`)
	live := object(t, right)
	live.SetLabels(map[string]string{"team": "db", "theirs": "1", "former": "2"})
	live.SetAnnotations(map[string]string{
		"theirs": "1", "former": "2", keysAnnotation: `{"labels":["team","former"],"annotations":["former"]}`,
	})
	live.SetFinalizers([]string{"a/a"})
	own(live, metav1.OwnerReference{APIVersion: "v1", Kind: "A", Name: "theirs", UID: "3"})
	writes, _ := r.writes("shop", live)
	got := after(t, live, writes)
	want := object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"pull","uid":"1","resourceVersion":"2",`+
		`"labels":{"team":"web","theirs":"1"},"annotations":{"theirs":"1","note":"new",`+
		`"kruise.io/resourcedistribution.resource.keys":"{\"labels\":[\"team\"],\"annotations\":[\"note\"]}",`+
		`"kruise.io/resourcedistribution.resource.from":"registry","kruise.io/resourcedistribution.resource.hashcode":"`+
		r.hash+`"},"finalizers":["a/a","b/b"],"ownerReferences":[`+
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ResourceDistribution","name":"registry","uid":"me",`+
		`"controller":true,"blockOwnerDeletion":true},{"apiVersion":"v1","kind":"A","name":"theirs","uid":"3"},`+
		`{"apiVersion":"v1","kind":"A","name":"declared","uid":"2"}]},"type":"Opaque","data":{"user":"eA=="}}`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}

// Whatever an own object is like, the writes make a copy of it that needs no further write and has the content of the
// resource. Labels of others stay, unless the object is created again.
func TestConverges(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	some := func(all ...string) string { return all[r.IntN(len(all))] }
	for range 3000 {
		kind := some("Secret", "ConfigMap")
		body := func() string {
			if kind == "ConfigMap" {
				return some(``, `,"data":{"k":"x"}`, `,"data":{"l":"y"},"binaryData":{"k":"eA=="}`) + some(``, `,"immutable":true`)
			}
			return `,"type":` + some(`"a/b"`, `"Opaque"`) + some(``, `,"data":{"k":"eA=="}`, `,"data":{"l":null}`) +
				some(``, `,"immutable":true`, `,"immutable":false`)
		}
		labels := some(``, `,"labels":{"a":"1"}`, `,"labels":{"b":"2"},"annotations":{"c":"3"}`)
		wanted := built(t, fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"pull"%s}%s}`, kind, labels, body()))
		var live *unstructured.Unstructured
		if r.IntN(5) > 0 {
			live = object(t, fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"pull","namespace":"shop","uid":"1",`+
				`"resourceVersion":"2"}%s}`, kind, strings.ReplaceAll(body(), "null", `""`)))
			own(live, *metav1.NewControllerRef(wanted.owner, gvk()))
			live.SetLabels(map[string]string{"theirs": "1", "a": some("1", "x")})
			live.SetAnnotations(map[string]string{keysAnnotation: some(`{"labels":["a"]}`, `{`, ``)})
		}
		writes, failed := wanted.writes("shop", live)
		uid := types.UID("")
		if live != nil {
			uid = live.GetUID()
		}
		got := after(t, live, writes)
		if again, _ := wanted.writes("shop", got); failed != nil || len(again) > 0 || len(writes) > 2 {
			t.Fatalf("seed %d: %v after %v, %v makes %v", seed, again, writes, failed, got)
		}
		if diff := cmp.Diff(text(t, content(wanted.Unstructured)), text(t, content(got))); diff != "" {
			t.Fatalf("seed %d: the content (-want +got):\n%s", seed, diff)
		}
		if got.GetUID() == uid && got.GetLabels()["theirs"] != "1" || !metav1.IsControlledBy(got, wanted.owner) {
			t.Fatalf("seed %d: the copy is %v", seed, got)
		}
	}
}
