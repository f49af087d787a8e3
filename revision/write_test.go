package revision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

func TestWrite(t *testing.T) {
	metadata := metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web"}}
	numbered := func(n int64) *appsv1.ControllerRevision {
		r := stored("web-a", n, image("i:1"))
		r.UID = "7"
		return r
	}
	cases := map[string]struct {
		why    string
		have   []*appsv1.ControllerRevision
		newest int64
		verb   write.Verb
		patch  string
	}{
		"new": {"a new template is stored with the metadata", nil, 1, write.Create, ""},
		"rolled back": {
			why:    "the older revision becomes the newest, unless another writer has changed its number",
			have:   []*appsv1.ControllerRevision{numbered(1), stored("web-b", 4, image("i:2"))},
			newest: 5,
			verb:   write.Patch,
			patch:  `[{"op":"test","path":"/metadata/uid","value":"7"},{"op":"test","path":"/revision","value":1},{"op":"replace","path":"/revision","value":5}]`,
		},
		"stored": {"nothing is written", []*appsv1.ControllerRevision{numbered(3)}, 3, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := revision.Resolve(revision.Input{Owner: "web", Data: image("i:1"), Have: c.have})
			newest, w := r.Write(metadata)
			if newest.Revision != c.newest || newest.Name != r.Name || string(newest.Data.Raw) != string(image("i:1")) {
				t.Errorf("%s: newest is %v", c.why, newest)
			}
			if w == nil {
				if c.verb != "" {
					t.Errorf("%s: no write", c.why)
				}
				return
			}
			data, err := w.Data()
			if diff := cmp.Diff(c.patch, string(data)); diff != "" || err != nil || w.Verb != c.verb {
				t.Errorf("%s: %s, %v (-want +got):\n%s", c.why, w.Verb, err, diff)
			}
			if c.verb == write.Create && (newest.Namespace != "ns" || newest.Labels["app"] != "web" || metadata.Name != "") {
				t.Errorf("%s: %v of %v", c.why, newest, metadata)
			}
			again := revision.Resolve(revision.Input{
				Owner: "web", Data: image("i:1"), Have: append(c.have[min(len(c.have), 1):len(c.have):len(c.have)], newest),
			})
			if again.Verdict != revision.Use {
				t.Errorf("%s: after the write the verdict is %s", c.why, again.Verdict)
			}
		})
	}
}

func TestControlledBy(t *testing.T) {
	owner := &metav1.ObjectMeta{UID: "mine"}
	controlled := func(name string, uid string, controller bool) appsv1.ControllerRevision {
		r := *stored(name, 1, nil)
		r.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: types.UID(uid), Controller: ptr.To(controller)}}
		return r
	}
	items := []appsv1.ControllerRevision{
		controlled("a", "mine", true), controlled("b", "foreign", true), controlled("c", "mine", false), *stored("d", 1, nil),
	}
	got := revision.ControlledBy(owner, items)
	if len(got) != 1 || got[0] != &items[0] {
		t.Errorf("controlled are %v, want the first", got)
	}
}
