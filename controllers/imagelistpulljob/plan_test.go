package imagelistpulljob

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// A list that the webhook would reject makes no jobs. The faults themselves are in the tables of package validation.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"valid":         {`{"images":["a"]}`, ""},
		"no images":     {`{"images":[]}`, "spec.images: Required"},
		"one bad image": {`{"images":["Not An Image","a",""]}`, ""},
		"bad and twice": {`{"images":["Not An Image","a","a"]}`, "spec.images[2]: Duplicate"},
		"parallelism":   {`{"images":["a"],"parallelism":"50%"}`, "spec.parallelism: Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			list := &v1beta1.ImageListPullJob{}
			if err := json.Unmarshal([]byte(`{"spec":`+c.spec+`}`), list); err != nil {
				t.Fatal(err)
			}
			list.Default()
			err := invalid(list)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The name of a job follows from its list, template and image, so that a job that exists is met.
func TestCreations(t *testing.T) {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ahead", UID: "uid-ahead"}}
	list.Spec.Images = []string{"a", "b"}
	list.Default()
	s := &snapshot{list: list, now: time.Unix(0, 0)}
	p := newPlan(s)
	first, err := p.creations()
	if err != nil || len(first) != 2 || first[0].GetName() == first[1].GetName() || p.met ||
		p.label(stored.Kind{}) == nil {
		t.Fatalf("creates %v, met %t, %v", first, p.met, err)
	}
	leaving := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: first[0].GetName(), DeletionTimestamp: &metav1.Time{Time: s.now},
	}}
	s.jobs = []*v1beta1.ImagePullJob{leaving}
	p = newPlan(s)
	again, err := p.creations()
	if err != nil || len(again) != 1 || again[0].GetName() != first[1].GetName() || !p.met {
		t.Errorf("while a job leaves: creates %v, met %t, %v", again, p.met, err)
	}
	list.Labels = map[string]string{"controller-revision-hash": p.Hash}
	if w := newPlan(s).label(stored.Kind{}); w != nil {
		t.Errorf("the label is written again: %v", w)
	}
}
